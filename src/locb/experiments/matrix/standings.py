"""From the runs of a world to where every policy stands against the best baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.evaluation.findings import Measurement
from locb.evaluation.results import ci_half_width
from locb.experiments.scenarios import Scenario

LEAST = 1e-9  # a regret of nothing cannot be divided by


@dataclass(frozen=True)
class Standing:
    """One policy at one alpha in one world."""

    policy: str
    alpha: float | None
    regret: Floats  # (repeats,)
    f1: Measurement | None
    microseconds_per_round: float  # a round


@dataclass(frozen=True)
class WorldResult:
    """All policies in one world."""

    world: Scenario
    tried: list[Standing]  # every alpha
    baselines: tuple[str, ...]

    @property
    def best_per_policy(self) -> dict[str, Standing]:
        """Every policy at the alpha of its lowest mean regret in this world."""
        best: dict[str, Standing] = {}
        for standing in self.tried:
            known = best.get(standing.policy)
            if known is None or standing.regret.mean() < known.regret.mean():
                best[standing.policy] = standing
        return best

    @property
    def best_baseline(self) -> Standing:
        """The baseline of the lowest mean regret."""
        best = self.best_per_policy
        return min((best[name] for name in self.baselines), key=lambda standing: float(standing.regret.mean()))

    def ratio(self, policy: str) -> Measurement:
        """The policy's regret over the best baseline's."""
        return ratio(self.best_per_policy[policy].regret, self.best_baseline.regret)


def ratio(regret: Any, base: Any) -> Measurement:
    """Mean over mean, with half of its 95% interval (Student's) from paired values.

    The interval is that of ``regret − ratio × base``, repeat by repeat, over the mean of ``base``: what the two have in
    common in a repeat, such as a hard world, drops out.

    Examples
    --------
    >>> ratio([10.0, 20.0, 30.0], [20.0, 40.0, 60.0])
    Measured(mean=0.5, margin=0.0)
    """
    ours, theirs = np.asarray(regret, dtype=float), np.asarray(base, dtype=float)
    below = max(float(theirs.mean()), LEAST)
    times = max(float(ours.mean()), LEAST) / below
    return Measurement(times, float(ci_half_width(ours - times * theirs)) / below)


def geometric_mean(ratios: Iterable[Measurement]) -> Measurement:
    """Of ratios of different worlds; their intervals add up as those of independent numbers do, on the log scale.

    Examples
    --------
    >>> geometric_mean([Measured(0.5, 0.0), Measured(2.0, 0.0)])
    Measured(mean=1.0, margin=0.0)
    """
    kept = list(ratios)
    mean = math.exp(sum(math.log(one.mean) for one in kept) / len(kept))
    return Measurement(mean, mean * math.sqrt(sum((one.margin / one.mean) ** 2 for one in kept)) / len(kept))
