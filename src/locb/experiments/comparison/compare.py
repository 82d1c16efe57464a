"""Comparison of several policies on the same environments and rounds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from locb.evaluation.results import Comparison
from locb.experiments.comparison.candidates import is_policy
from locb.experiments.comparison.comparison_plan import DEFAULT_POLICIES, SCALE_REMEDY, plan_comparison
from locb.parallel.clusters import parse_on
from locb.parallel.workers import Workers
from locb.policies import RewardScaleWarning
from locb.report.terminal.progress_bar import ProgressBar


def compare(
    environments: Any = None,
    policies: Any = None,
    *,
    grid: Mapping[str, Any] | None = None,
    rounds: int | None = None,
    repeats: int = 5,
    alphas: Sequence[float] | None = None,
    environment: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    jobs: int = -1,
    on: str | None = None,
    progress: bool | Callable[[float, float], None] | None = None,
) -> Comparison:
    """Run policies on the same rounds of one or more environments, and return their regret, rewards and clusters.

    An environment or a policy is a name, a class, an object, or a function that returns one. Give one, a list, or a
    dictionary with your own names.

    Parameters
    ----------
    environments : optional
        Names of scenarios, ``file.py:Class``, settings as in ``environment``, and objects, subclasses or factories of
        :class:`locb.Environment`. A factory with a parameter ``seed`` is called with the random seed of each repeat; an
        object is used in every repeat. By default, the environment that ``environment`` describes. If the first
        argument consists of policies, it is used as ``policies``.
    policies : optional
        Names in ``locb.POLICIES``, ``file.py:Class``, and objects, subclasses or factories of :class:`locb.Policy`. For
        an object, each run uses an untrained copy with its own random seed. A factory is called with the keyword
        arguments ``n_users`` and ``dim``, and with ``seed`` and the parameters of the grid if it accepts them. The
        default is the five policies of the paper ("locb", "linucb-one", "linucb-ind", "club" and "sclub") and "eloc".
    grid : dict, optional
        Values of parameters, such as ``{"alpha": [0.1, 1], "locb": {"gamma": [0.1, 0.2]}}``. Each policy runs with all
        combinations of the values of those parameters that it has. Values under the name of a policy apply only to this
        policy.
    rounds : int, optional
        Number of rounds per run, at least 1. The default is 50,000, or the number of recorded rounds if there are
        fewer.
    repeats : int, default 5
        Number of runs per environment, policy and set of parameters, at least 1. Each repeat has its own random seed.
    alphas : sequence of float, optional
        Values of alpha, the weight of the exploration bonus: the same as ``grid={"alpha": …}``. By default, alpha is 1
        for policies that are given as names or classes.
    environment : dict, optional
        Arguments of :class:`locb.Synthetic` (default: none) or, with the key ``categories``, of
        :class:`locb.Categorical`. For a data set: ``data`` ("movielens", "yelp", "yahoo" or "table"), ``path`` and
        other arguments of its reader.
    n_seeds : int, optional
        Number of seed users of LOCB and ELOC. The default is 30, or one per user if there are fewer users. ``n_seeds``
        and ``gamma`` do not apply to objects and factories.
    gamma : float, default 0.2
        Intended maximum distance between two users of a cluster of LOCB, and the parameter ``gamma`` of CAB. It is also
        the limit for the true clusters of a data set, see :meth:`locb.Interactions.true_clusters`.
    reward_range : (float, float), optional
        Lowest and highest reward, a parameter of all policies. The results are in the units of the environment.
    seed : int, default 0
        Random seed of the first repeat. Repeat r uses ``seed + r``.
    folder : path, optional
        Folder to which each run is written when it ends. A later call with the same folder reuses finished runs, for
        example after an interruption or with further policies. By default, runs are kept in memory only.
    jobs : int, default -1
        Number of processes; -1 for one per core.
    on : str, optional
        Where to run: "dask" or "ray" for workers on this machine, "dask://HOST:PORT" or "ray://HOST:PORT" for a
        cluster. By default, processes of this machine.
    progress : bool or callable, optional
        Whether to show a progress bar. By default, in notebooks and terminals. A function is called with (finished
        runs, total runs) after each run.

    Returns
    -------
    Comparison
        Regret, reward, clusters and computation time of every policy and set of parameters.

    Examples
    --------
    >>> import locb
    >>> env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    >>> grid = {"alpha": [0.3, 1.0]}
    >>> compared = locb.compare(env, ["linucb-one", locb.CLUB], grid=grid, rounds=300, repeats=2, jobs=1)
    >>> [(result.policy, result.parameters) for result in compared.best_per_policy()]
    [('linucb-one', {'alpha': 0.3}), ('club', {'alpha': 0.3})]
    """
    if policies is None and _are_policies(environments):
        environments, policies = None, environments
    setup: dict[str, Any] = {"environments": environments, "grid": grid, "alphas": alphas, "rounds": rounds}
    setup |= {"repeats": repeats, "environment": environment, "n_seeds": n_seeds, "gamma": gamma, "seed": seed}
    with ExitStack() as stack:
        workers = stack.enter_context(_make_workers(jobs, on))
        plan = plan_comparison(DEFAULT_POLICIES if policies is None else policies, reward_range=reward_range, **setup)
        ledger = None if folder is None else plan.open_folder(Path(folder))
        bar = stack.enter_context(ProgressBar(progress))
        plan.prepare(bar.stage("Compiling", reported=False))  # workers then load the compiled code from the cache
        comparison = plan.run(ledger, workers, bar.stage("Running"))
    for note in comparison.notes:
        if note.endswith(SCALE_REMEDY):
            warnings.warn(note, RewardScaleWarning, stacklevel=2)
    return comparison


def _are_policies(value: Any) -> bool:
    """Return whether a value consists of policies, and not of environments."""
    if is_policy(value):
        return True
    elements = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence) else ()
    return not isinstance(value, str) and bool(elements) and all(is_policy(element) for element in elements)


def _make_workers(jobs: int, on: str | None) -> Workers:
    """Return the workers that ``on`` describes: None, or a backend, optionally followed by ://HOST:PORT."""
    if on is None:
        return Workers(jobs=jobs)
    backend, address = parse_on(on)
    return Workers(jobs=jobs, backend=backend, address=address)
