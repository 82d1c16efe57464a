"""Construction of environments from settings: synthetic, or read from the files of a data set."""

from __future__ import annotations

import warnings
from typing import Any

from locb.common.arrays import Ints
from locb.environments import Environment, Interactions, Synthetic

DATA = ("movielens", "yelp", "yahoo", "table")


def make_environment(settings: dict[str, Any], seed: int, *, warn: bool = True) -> Environment:
    """Return the environment that ``settings`` describe.

    Parameters
    ----------
    settings : dict
        Arguments of :class:`locb.Synthetic`. With the key ``data``, which names a reader of :mod:`locb.datasets`:
        ``path`` and the arguments of that reader. An environment of a data set is the same for every seed.
    seed : int
        Seed of the environment.
    warn : bool, default True
        Whether to issue warnings about the data. Repeated runs on the same data suppress them.

    Raises
    ------
    ValueError
        If the settings are invalid or a package for data sets is missing.
    """
    if not warn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_environment(settings, seed)
    if "data" not in settings:
        return Synthetic(**settings, seed=seed)
    arguments = dict(settings)
    name, path = arguments.pop("data"), arguments.pop("path", None)
    if name not in DATA:
        raise ValueError(f"data must be one of {', '.join(DATA)}, not {name!r}")
    if path is None:
        raise ValueError(f"path is required for data={name!r}: the folder or archive of the published files")
    try:
        from locb import datasets
    except ImportError as error:
        raise ValueError(f"data sets need the package {error.name}: run pip install 'locb[data]'") from error
    env: Interactions = getattr(datasets, name)(path, **arguments)
    return env


def true_clusters(env: Environment, gamma: float) -> list[Ints]:
    """Return the true clusters of an environment. Those of real data depend on ``gamma``."""
    return env.true_clusters(gamma) if isinstance(env, Interactions) else env.true_clusters()


def ground_truth_note(env: Environment, gamma: float) -> str | None:
    """Return a note if real data has few true groups at this gamma, so that F1 is not informative; else None."""
    if not isinstance(env, Interactions):
        return None
    grouped = env.users_in_groups(gamma)
    if grouped >= env.n_users / 2:
        return None
    note = f"At gamma {gamma:g}, {grouped} of {env.n_users} users are in true groups of two or more"
    scaled = env.scaled_gamma()
    if scaled == float("inf"):
        return f"{note}, so F1 is not informative. No gamma puts half of the users in such groups."
    return f"{note}, so F1 is not informative. At gamma {scaled:.3g}, half of the users are."
