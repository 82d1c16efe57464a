"""What experiments give and reports show: plain numbers, no policies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints

# 97.5% quantiles of Student's t for 1 … 30 degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

DRAWN = 500  # users on a map to explore, at most


def half_width(values: Any, axis: int = 0) -> Any:
    """Half of the 95% interval of a mean (Student's t); NaN from fewer than two values.

    Examples
    --------
    >>> round(float(half_width([1.0, 2.0, 3.0])), 3)
    2.484
    """
    values = np.asarray(values, dtype=np.float64)
    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.nan)[()]
    freedom = count - 1
    normal = 1.959964
    quantile = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else normal + (normal**3 + normal) / (4 * freedom)
    return quantile * values.std(axis=axis, ddof=1) / math.sqrt(count)


@dataclass(frozen=True)
class Run:
    """One policy's play of one stream of rounds."""

    regret: Floats  # (T,) cumulative
    rewards: Floats  # (T,)
    chosen: Ints  # (T,)
    seconds: float  # spent choosing and learning, not in making rounds
    policy: Any  # as it is after the last round


@dataclass(frozen=True)
class Forming:
    """How the groups of a policy came about: what there was at the comparison's moments."""

    count: Ints  # (repeats, moments) different groups
    f1: Floats  # (repeats, moments) against the true clusters; NaN where there are no groups
    sets: list[list[Ints]]  # in the first repeat the different groups at each moment, of the users who are drawn


@dataclass(frozen=True)
class Entry:
    """One policy at one alpha in a comparison, over all repeats."""

    policy: str
    alpha: float | None  # None for a policy without one
    regret: Floats  # (repeats, points) cumulative, at the comparison's checkpoints
    reward: Floats  # (repeats,) mean a round
    n_clusters: Ints  # (repeats,) different groups found
    f1: Floats  # (repeats,) against the true clusters; NaN for a policy without groups
    microseconds: Floats  # (repeats,) a round
    earned: Floats | None = None  # (repeats, points) cumulative reward, at the comparison's checkpoints
    forming: Forming | None = None  # None for a policy without groups

    @property
    def final_regret(self) -> Floats:
        """Regret after the last round: (repeats,)."""
        return self.regret[:, -1]


@dataclass(frozen=True)
class UserMap:
    """Where users are and who belongs together, in the first repeat."""

    policy: str
    theta: Floats  # (n, d) the true ones
    truth: list[list[int]]
    found: list[list[int]]


def drawn_users(count: int) -> Ints:
    """The users on a map to explore, ascending: all of them, or ``DRAWN`` drawn by chance, always the same ones."""
    if count <= DRAWN:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, DRAWN, replace=False))


@dataclass(frozen=True)
class Comparison:
    """Several policies on the same worlds and the same rounds."""

    settings: dict[str, Any]
    checkpoints: Ints  # (points,) rounds after which regret and reward are kept
    entries: list[Entry]
    user_map: UserMap | None
    seeds: list[int]  # one a repeat
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what a reader must know
    moments: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # rounds after which groups are kept

    def best_of_each(self) -> list[Entry]:
        """For every policy its alpha of the lowest mean regret, in the order in which policies were given."""
        best: dict[str, Entry] = {}
        for entry in self.entries:
            known = best.get(entry.policy)
            if known is None or entry.final_regret.mean() < known.final_regret.mean():
                best[entry.policy] = entry
        return list(best.values())

    def verdict(self) -> str:
        """One sentence: who has the lowest regret, and by how much over the next, from paired differences."""
        ranked = sorted(self.best_of_each(), key=lambda entry: float(entry.final_regret.mean()))
        first = ranked[0]
        if len(ranked) == 1:
            return f"{first.policy} ran alone: there is nothing to compare it with."
        second = ranked[1]
        gap = second.final_regret - first.final_regret
        if not gap.any():
            return f"{first.policy} and {second.policy} have the same regret, {first.final_regret.mean():,.0f}."
        sentence = f"{first.policy} has the lowest regret, {gap.mean():,.0f} below {second.policy}'s"
        margin = float(half_width(gap))
        if math.isnan(margin):
            return f"{sentence}; one repeat cannot tell how sure that is."
        sure = "more than its 95% interval" if gap.mean() > margin else "within its 95% interval, so it may be chance"
        return f"{sentence} (± {margin:,.0f}, paired over {len(gap)} repeats: {sure})."
