"""Construction of environments from settings. An environment is synthetic or is read from the files of a data set."""

from __future__ import annotations

import hashlib
import warnings
from typing import Any

import numpy as np

from locb.common.arrays import Ints
from locb.common.validation import ParameterError
from locb.environments import Categorical, Environment, RecordedRewards, Synthetic
from locb.environments.recorded_users import RecordedUsers

DATA = ("movielens", "yelp", "yahoo", "table")


def make_environment(settings: dict[str, Any], seed: int, *, warn: bool = True) -> Environment:
    """Return the environment that ``settings`` describe.

    Parameters
    ----------
    settings : dict
        With the key ``data``: the name of a reader in :mod:`locb.datasets` ("movielens", "yelp", "yahoo" or "table").
        ``path`` is then the location of the files, and the other keys are arguments of that reader. With the key
        ``categories``: arguments of :class:`locb.Categorical`. Otherwise: arguments of :class:`locb.Synthetic`.
    seed : int
        Random seed of a synthetic environment. The environment of a data set does not depend on it.
    warn : bool, default True
        Whether to issue warnings about the data. Use False in repeated runs on the same data.

    Raises
    ------
    ValueError
        If the settings are invalid, or if a package that reads data sets is not installed.
    """
    if not warn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_environment(settings, seed)
    if "data" not in settings:
        return (Categorical if "categories" in settings else Synthetic)(**settings, seed=seed)
    arguments = dict(settings)
    name, path = arguments.pop("data"), arguments.pop("path", None)
    if name not in DATA:
        raise ParameterError("data", f" must be one of {', '.join(DATA)}, not {name!r}")
    if path is None:
        raise ParameterError(
            "path", f" is required for data {name!r}: set it to the file, folder or archive with the data"
        )
    try:
        from locb import datasets
    except ImportError as error:
        raise ValueError(f"data sets need the package {error.name}: run pip install 'locb[data]'") from error
    env: RecordedUsers = getattr(datasets, name)(path, **arguments)
    return env


def data_digest(env: Any) -> str:
    """Return a digest of ``theta``, the preferences of all users, which changes if the data or its settings change."""
    digest = hashlib.sha256(np.round(env.theta, 6).tobytes())
    if isinstance(env, RecordedRewards):  # theta does not depend on the order of the records
        digest.update(env.draw(np.random.default_rng(0), env.max_rounds).rewards.tobytes())
    return digest.hexdigest()[:16]


def true_clusters(env: Environment, gamma: float) -> list[Ints]:
    """Return the true clusters of an environment, each as an array of user indices.

    A synthetic environment defines its clusters, and ``gamma`` has no effect. For real data, ``gamma`` limits the
    distance between the preferences of any two users of a cluster: see ``RecordedUsers.true_clusters``. Empty if the
    clusters are unknown.
    """
    found = env.true_clusters(gamma) if isinstance(env, RecordedUsers) else env.true_clusters()
    return [] if found is None else found


def ground_truth_note(env: Environment, gamma: float) -> str | None:
    """Return a note if fewer than half of the users of a data set are in true groups of two or more users at ``gamma``.

    F1 of the clusters is then not informative. Otherwise, and for a synthetic environment, the result is None.
    """
    if not isinstance(env, RecordedUsers):
        return None
    grouped = env.users_in_groups(gamma)
    if grouped >= env.n_users / 2:
        return None
    note = f"At gamma {gamma:g}, {grouped} of {env.n_users} users are in true groups of two or more users"
    scaled = env.scaled_gamma()
    if scaled == float("inf"):
        return f"{note}, so F1 is not informative. No gamma puts half of the users in such groups."
    return f"{note}, so F1 is not informative. At gamma {scaled:.3g}, half of the users are in such groups."


def fixed_rounds_note(env: Environment, repeats: int) -> str | None:
    """Return a note if one repeat replaces several ones, because the rounds do not depend on the random seed."""
    if repeats == 1 or not env.fixed_rounds:
        return None
    return (
        f"The rounds of {type(env).__name__} are the same for all random seeds, so one repeat was run instead of "
        f"{repeats}, and there are no confidence intervals."
    )
