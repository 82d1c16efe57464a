"""Worlds by their settings: the synthetic one, or one made from a data set's files."""

from __future__ import annotations

import warnings
from typing import Any

from locb.common.arrays import Ints
from locb.environments import Environment, Interactions, Synthetic

DATA = ("movielens", "yelp", "yahoo", "table")


def make_environment(settings: dict[str, Any], seed: int) -> Environment:
    """A world. Settings with ``data`` name a reader of ``locb.datasets`` and hold its arguments; such a world is the
    same for every seed. Others are arguments of ``locb.Synthetic``.
    """
    if "data" not in settings:
        return Synthetic(**settings, seed=seed)
    arguments = dict(settings)
    name, path = arguments.pop("data"), arguments.pop("path", None)
    if name not in DATA:
        raise ValueError(f"data must be one of {', '.join(DATA)}, not {name!r}")
    if path is None:
        raise ValueError(f"path must name the files of {name}")
    try:
        from locb import datasets
    except ImportError as error:
        raise ValueError(f"data sets need more packages ({error.name} is missing): pip install 'locb[data]'") from error
    env: Interactions = getattr(datasets, name)(path, **arguments)
    return env


def noise_free_environment(settings: dict[str, Any], seed: int) -> Environment:
    """The same without warnings, for the runs after the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_environment(settings, seed)


def truth(env: Environment, gamma: float) -> list[Ints]:
    """The groups to judge by: real data have them for a gamma."""
    return env.true_clusters(gamma) if isinstance(env, Interactions) else env.true_clusters()


def note(env: Environment, gamma: float) -> str | None:
    """What a reader must know of the ground truth: that this gamma leaves it without groups."""
    if not isinstance(env, Interactions):
        return None
    held = env.users_in_groups(gamma)
    if held >= env.n_users / 2:
        return None
    said = f"At gamma {gamma:g} the ground truth has groups of two or more for {held} of {env.n_users} users"
    enough = env.scaled_gamma()
    if enough == float("inf"):
        return f"{said}, so F1 says little; no gamma gives half of them one."
    return f"{said}, so F1 says little; at gamma {enough:.3g} for half of them."
