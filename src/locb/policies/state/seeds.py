"""Seed users: the users around whom LOCB builds clusters and ELOC builds neighbourhoods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from locb.common.arrays import Ints
from locb.common.validation import ParameterError, ParameterName, check_int
from locb.policies.parameters import DEFAULT_SEEDS


def choose_seeds(n_users: int, n_seeds: int | None, seeds: Iterable[int] | None, rng: np.random.Generator) -> Ints:
    """Return the seed users: ``seeds`` if given, else ``n_seeds`` random users in ascending order.

    If neither is given, the number is ``DEFAULT_SEEDS``, or ``n_users`` if that is smaller. Raises a ValueError if both
    are given or a value is invalid.
    """
    if seeds is None:
        count = min(DEFAULT_SEEDS, n_users) if n_seeds is None else check_int("n_seeds", n_seeds, 1)
        if count > n_users:
            raise ParameterError("n_seeds", " must be at most ", ParameterName("n_users"), f" = {n_users}, not {count}")
        return np.sort(rng.choice(n_users, size=count, replace=False)).astype(np.int64)
    if n_seeds is not None:
        raise ParameterError(
            "n_seeds", f" must be None if seeds is given, not {n_seeds!r}: give seeds or n_seeds, not both"
        )
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
        raise ParameterError("seeds", f" must be a list of users (integers), not {seeds!r}")
    chosen = [check_int("seeds", user, 0, n_users - 1) for user in seeds]
    if not chosen:
        raise ParameterError("seeds", " must contain at least one user, not []")
    repeated = sorted(user for user, times in Counter(chosen).items() if times > 1)
    if repeated:
        raise ParameterError("seeds", f" must be different users, but {repeated} appear more than once")
    return np.array(chosen, dtype=np.int64)
