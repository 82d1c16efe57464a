"""Result types of simulations and comparisons, which experiments fill and reports read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.confidence_intervals import ci_half_width

MAX_MAP_USERS = 500  # maximum number of users on an interactive map


@dataclass(frozen=True)
class Run:
    """Result of one policy on one sequence of T rounds.

    Attributes
    ----------
    regret : (T,) floats
        Cumulative regret after each round.
    rewards : (T,) floats
        Reward of each round.
    chosen : (T,) ints
        Arm chosen in each round.
    seconds : float
        Time in seconds that the policy took to choose and to learn. The time to generate rounds is not included.
    policy : Policy
        The policy after the last round.
    """

    regret: Floats
    rewards: Floats
    chosen: Ints
    seconds: float
    policy: Any


@dataclass(frozen=True)
class ClusterHistory:
    """Clusters of a policy after each of the rounds in ``Comparison.cluster_checkpoints``."""

    count: Ints  # (repeats, checkpoints) number of distinct clusters
    f1: Floats  # (repeats, checkpoints) F1 score against the true clusters; NaN where there are no clusters
    clusters: list[list[Ints]]  # first repeat: distinct clusters per checkpoint, reduced to the users of sample_users


@dataclass(frozen=True)
class PolicyResult:
    """Result of one policy with one value of alpha in a comparison, over all repeats.

    ``points`` is the number of rounds in ``Comparison.checkpoints``.
    """

    policy: str
    alpha: float | None  # weight of the exploration bonus; None for a policy without this parameter
    regret: Floats  # (repeats, points) cumulative regret at the checkpoints
    reward: Floats  # (repeats,) mean reward per round
    n_clusters: Ints  # (repeats,) number of distinct clusters after the last round
    f1: Floats  # (repeats,) F1 score against the true clusters; NaN for a policy without clusters
    microseconds_per_round: Floats  # (repeats,)
    cumulative_reward: Floats | None = None  # (repeats, points) at the checkpoints; None if not recorded
    cluster_history: ClusterHistory | None = None  # None for a policy without clusters

    @property
    def final_regret(self) -> Floats:
        """Cumulative regret after the last round, (repeats,)."""
        return self.regret[:, -1]


@dataclass(frozen=True)
class UserMap:
    """Users with their true clusters and the clusters that a policy found, in the first repeat of a comparison."""

    policy: str
    theta: Floats  # (n, d) true preferences of each user
    truth: list[list[int]]  # users of each true cluster
    found: list[list[int]]  # users of each found cluster


def sample_users(count: int) -> Ints:
    """Return the users to show on an interactive map, in ascending order.

    Of more than ``MAX_MAP_USERS`` users, a random sample is shown. The sample depends on ``count`` only.
    """
    if count <= MAX_MAP_USERS:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, MAX_MAP_USERS, replace=False))


@dataclass(frozen=True)
class Comparison:
    """Result of several policies on the same environments and the same rounds.

    Attributes
    ----------
    settings : dict
        Arguments of :func:`locb.compare`.
    checkpoints : (points,) ints
        Rounds after which regret and reward are recorded.
    results : list of PolicyResult
        One element per policy and value of alpha.
    user_map : UserMap or None
        Users and clusters of the first policy that finds clusters; None if no policy does.
    seeds : list of int
        Random seed of each repeat.
    versions : dict
        Versions of the packages that influence the results, by package name.
    notes : list of str
        Limitations of the data that a reader of the results must know.
    cluster_checkpoints : (checkpoints,) ints
        Rounds after which clusters are recorded.
    """

    settings: dict[str, Any]
    checkpoints: Ints
    results: list[PolicyResult]
    user_map: UserMap | None
    seeds: list[int]
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cluster_checkpoints: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def best_per_policy(self) -> list[PolicyResult]:
        """Return, for each policy, the result with the lowest mean regret over its values of alpha."""
        best: dict[str, PolicyResult] = {}
        for result in self.results:
            known = best.get(result.policy)
            if known is None or result.final_regret.mean() < known.final_regret.mean():
                best[result.policy] = result
        return list(best.values())

    def verdict(self) -> str:
        """Return a sentence that compares the two policies with the lowest regret.

        The difference of their regrets and its 95% interval are paired: they are computed from the difference in each
        repeat.
        """
        ranked = sorted(self.best_per_policy(), key=lambda result: float(result.final_regret.mean()))
        first = ranked[0]
        if len(ranked) == 1:
            return f"Only {first.policy} was run, so there is no comparison."
        second = ranked[1]
        gap = second.final_regret - first.final_regret
        if not gap.any():
            return f"{first.policy} and {second.policy} have the same regret, {first.final_regret.mean():,.0f}."
        sentence = f"{first.policy} has the lowest regret, {gap.mean():,.0f} below {second.policy}"
        margin = float(ci_half_width(gap))
        if math.isnan(margin):
            return f"{sentence}. With one repeat there is no confidence interval."
        size = "exceeds the margin" if gap.mean() > margin else "is within the margin and may be due to chance"
        return f"{sentence} (± {margin:,.0f}, 95% interval, paired over {len(gap)} repeats): the difference {size}."
