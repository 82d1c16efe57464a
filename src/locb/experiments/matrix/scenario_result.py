"""Results of all policies in one scenario, relative to the best baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.findings import Measurement
from locb.experiments.scenarios import Scenario

MIN_REGRET = 1e-9  # avoids a division by zero


@dataclass(frozen=True)
class AlphaResult:
    """Result of one policy at one alpha in one scenario."""

    policy: str
    alpha: float | None  # None if the policy has no parameter alpha
    regret: Floats  # cumulative regret after the last round, one value per repeat
    f1: Measurement | None  # F1 of the clusters after the last round; None if no repeat has clusters
    microseconds_per_round: float  # mean over repeats


@dataclass(frozen=True)
class ScenarioResult:
    """Results of all policies at all alphas in one scenario."""

    scenario: Scenario
    results: list[AlphaResult]
    baselines: tuple[str, ...]

    @property
    def best_per_policy(self) -> dict[str, AlphaResult]:
        """Result of each policy, by name, at the alpha with the lowest mean regret in this scenario.

        If several alphas have the same mean regret, the first of them is used.
        """
        best: dict[str, AlphaResult] = {}
        for result in self.results:
            known = best.get(result.policy)
            if known is None or result.regret.mean() < known.regret.mean():
                best[result.policy] = result
        return best

    @property
    def best_baseline(self) -> AlphaResult:
        """Result of the baseline with the lowest mean regret, at its best alpha."""
        best = self.best_per_policy
        return min((best[name] for name in self.baselines), key=lambda result: float(result.regret.mean()))

    def ratio(self, policy: str) -> Measurement:
        """Return the mean regret of a policy at its best alpha divided by the mean regret of the best baseline."""
        return regret_ratio(self.best_per_policy[policy].regret, self.best_baseline.regret)


def regret_ratio(regret: Any, base: Any) -> Measurement:
    """Return the ratio of two mean regrets. The margin is half the width of its 95% confidence interval (Student's t).

    The interval is that of the mean of ``regret − ratio × base``, divided by the mean of ``base``.
    Because the values are paired, variation that a policy and the baseline share in a repeat cancels, for example a
    difficult environment.

    Parameters
    ----------
    regret, base : (repeats,) array_like
        Regret of a policy and of the baseline in each repeat.

    Examples
    --------
    >>> regret_ratio([10.0, 20.0, 30.0], [20.0, 40.0, 60.0])
    Measurement(mean=0.5, margin=0.0)
    """
    policy, baseline = np.asarray(regret, dtype=float), np.asarray(base, dtype=float)
    denominator = max(float(baseline.mean()), MIN_REGRET)
    ratio = max(float(policy.mean()), MIN_REGRET) / denominator
    return Measurement(ratio, float(ci_half_width(policy - ratio * baseline)) / denominator)


def geometric_mean(ratios: Iterable[Measurement]) -> Measurement:
    """Return the geometric mean of independent ratios. The margin is half the width of its 95% confidence interval.

    The margins of the ratios are combined on the log scale.

    Examples
    --------
    >>> geometric_mean([Measurement(0.5, 0.0), Measurement(2.0, 0.0)])
    Measurement(mean=1.0, margin=0.0)
    """
    values = list(ratios)
    mean = math.exp(sum(math.log(value.mean) for value in values) / len(values))
    return Measurement(mean, mean * math.sqrt(sum((value.margin / value.mean) ** 2 for value in values)) / len(values))
