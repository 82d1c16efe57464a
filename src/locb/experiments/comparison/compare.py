"""Comparison of several policies on the same environments and rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from locb.evaluation.results import Comparison
from locb.experiments.comparison.comparison_plan import DEFAULT_POLICIES, plan_comparison


def compare(
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    alphas: Sequence[float] = (1.0,),
    rounds: int = 50_000,
    repeats: int = 5,
    environment: dict[str, Any] | None = None,
    n_seeds: int | None = None,
    gamma: float = 0.2,
    seed: int = 0,
    jobs: int = -1,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Run every policy at every alpha on the same environments and rounds.

    Parameters
    ----------
    policies : sequence of str
        Names in ``locb.POLICIES``. Names that you add there work too.
    alphas : sequence of float, default (1.0,)
        Exploration strengths. Each policy runs at each of them.
    rounds, repeats : int, default 50_000 and 5
        Rounds per run, and the number of environments, which is the number of runs per policy and alpha.
    environment : dict, optional
        Arguments of :class:`locb.Synthetic`; repeat r uses seed ``seed + r``. Or ``data`` ("movielens", "yelp",
        "yahoo" or "table"), ``path`` and the arguments of that reader of :mod:`locb.datasets`; the repeats then differ
        in their rounds only.
    n_seeds : int, optional
        Seeds of LOCB and ELOC. The default is 30, or one per user if there are fewer users.
    gamma : float, default 0.2
        Cluster width of LOCB and ELOC, and of the true clusters of real data.
    seed : int, default 0
        Seed of the first repeat.
    jobs : int, default -1
        Number of processes; -1 for one per core.
    progress : callable, optional
        Called with (finished runs, total runs).

    Returns
    -------
    Comparison
        Regret, reward, clusters and time of every policy and alpha.

    Examples
    --------
    >>> import locb
    >>> compared = locb.compare(["linucb-one", "club"], rounds=300, repeats=2, environment={"n_users": 10}, jobs=1)
    >>> [result.policy for result in compared.results]
    ['linucb-one', 'club']
    """
    setup: dict[str, Any] = {"alphas": alphas, "rounds": rounds, "repeats": repeats, "environment": environment}
    setup |= {"n_seeds": n_seeds, "gamma": gamma, "seed": seed}
    return plan_comparison(policies, **setup).run(jobs=jobs, progress=progress)
