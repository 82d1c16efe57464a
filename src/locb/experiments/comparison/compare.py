"""Comparison of several policies on the same environments and rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from locb.evaluation.results import Comparison
from locb.experiments.comparison.comparison_plan import DEFAULT_POLICIES, ComparisonPlan, plan_comparison
from locb.experiments.parallel import Workers
from locb.policies import RewardScaleWarning


def compare(
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    alphas: Sequence[float] = (1.0,),
    rounds: int = 50_000,
    repeats: int = 5,
    environment: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
    jobs: int = -1,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run several policies on the same environments and rounds and return their regret, rewards and clusters.

    Parameters
    ----------
    policies : sequence of str
        Names in ``locb.POLICIES``, including those that you have registered. The default is the five policies of the
        paper ("locb", "linucb-one", "linucb-ind", "club" and "sclub") and "eloc".
    alphas : sequence of float, default (1.0,)
        Values of alpha, the weight of the exploration bonus. A policy with this parameter runs once per value.
    rounds : int, default 50_000
        Number of rounds per run, at least 1.
    repeats : int, default 5
        Number of runs per policy and alpha, at least 1. Each repeat has its own random seed.
    environment : dict, optional
        Arguments of :class:`locb.Synthetic` (default: none), or of :class:`locb.Categorical` with ``categories``. For a
        data set: ``data`` ("movielens", "yelp", "yahoo" or "table"), ``path`` and other arguments of its reader.
    n_seeds : int, optional
        Number of seed users of LOCB and ELOC. The default is 30, or one per user if there are fewer users.
    gamma : float, default 0.2
        Intended maximum distance between two users of a cluster of LOCB. It is also the limit for the true clusters of
        a data set, see :meth:`locb.Interactions.true_clusters`.
    reward_range : (float, float), optional
        Lowest and highest reward, a parameter of all policies. The results are in the units of the environment.
    seed : int, default 0
        Random seed of the first repeat. Repeat r uses ``seed + r``.
    jobs : int, default -1
        Number of processes; -1 for one per core.
    progress : callable, optional
        Called with (finished runs, total runs) after each run.

    Returns
    -------
    Comparison
        Regret, reward, clusters and computation time of every policy and alpha.

    Examples
    --------
    >>> import locb
    >>> compared = locb.compare(["linucb-one", "club"], rounds=300, repeats=2, environment={"n_users": 10}, jobs=1)
    >>> [result.policy for result in compared.results]
    ['linucb-one', 'club']
    """
    setup: dict[str, Any] = {"alphas": alphas, "rounds": rounds, "repeats": repeats, "environment": environment}
    setup |= {"n_seeds": n_seeds, "gamma": gamma, "reward_range": reward_range, "seed": seed}
    with Workers(jobs=jobs) as workers:
        return _run(plan_comparison(policies, **setup), workers, progress)


def _run(plan: ComparisonPlan, workers: Workers, progress: Callable[[int, int], None] | None) -> Comparison:
    """Run a plan, return the comparison, and issue a warning for each note that only the runs produced."""
    plan.prepare()  # in this process, so that the workers load the compiled code from the cache
    comparison = plan.run(None, workers, progress and (lambda done, total: progress(int(done), int(total))))
    for note in comparison.notes[len(plan.notes) :]:
        warnings.warn(note, RewardScaleWarning, stacklevel=3)
    return comparison
