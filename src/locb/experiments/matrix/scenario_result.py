"""Results of all policies in one scenario, relative to the best baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.evaluation.confidence_intervals import ci_half_width, fieller_interval, student_quantile
from locb.evaluation.findings import Measurement
from locb.experiments.matrix.grids import Edge
from locb.experiments.reproduce.target import lowest_in_other_repeats
from locb.experiments.scenarios import Scenario

MIN_REGRET = 1e-9  # avoids a division by zero
RESAMPLES = 10_000  # bootstrap samples of the scenarios


@dataclass(frozen=True)
class SettingResult:
    """Result of one policy with one setting of its parameters in one scenario."""

    policy: str
    parameters: dict[str, float]  # parameters that are tuned; empty if the policy runs with its defaults only
    regret: Floats  # cumulative regret after the last round, one value per repeat
    f1: Measurement | None  # F1 of the clusters after the last round; None if no repeat has clusters
    microseconds_per_round: float  # mean over repeats

    @property
    def label(self) -> str:
        """The parameters as text, such as "alpha 0.3, gamma 0.2"."""
        return ", ".join(f"{name} {value:g}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class ScenarioResult:
    """Results of all policies in one scenario, with all settings that may be chosen."""

    scenario: Scenario
    results: list[SettingResult]
    baselines: tuple[str, ...]
    edges: dict[str, list[Edge]] = field(default_factory=dict)  # policy → parameters whose best value is at an edge
    tuning: int = 0  # number of repeats at the start that choose settings and are not measured
    dropped: list[SettingResult] = field(default_factory=list)  # settings that have only the tuning repeats

    @property
    def best_per_policy(self) -> dict[str, SettingResult]:
        """Result of each policy, by name, with the setting of the lowest mean regret in this scenario.

        If several settings have the same mean regret, the first of them is used.
        """
        best: dict[str, SettingResult] = {}
        for result in self.results:
            known = best.get(result.policy)
            if known is None or result.regret.mean() < known.regret.mean():
                best[result.policy] = result
        return best

    @property
    def best_baseline(self) -> SettingResult:
        """Result of the baseline with the lowest mean regret, with its best setting."""
        best = self.best_per_policy
        return min((best[name] for name in self.baselines), key=lambda result: float(result.regret.mean()))

    def tuned_regret(self, *policies: str) -> Floats:
        """Return the regret in each measured repeat, where the other repeats choose the policy and its setting.

        The regret of a repeat does not influence the choice for this repeat, so the mean is not biased by the choice.
        With one repeat, the repeat chooses for itself. All repeats except the tuning repeats are measured.
        """
        regret = np.array([result.regret for result in self.results if result.policy in policies])
        return leave_one_out(regret)[self.tuning :]

    def ratio(self, policy: str) -> Measurement:
        """Return the mean of ``tuned_regret`` of a policy, divided by that of the baselines."""
        return regret_ratio(self.tuned_regret(policy), self.tuned_regret(*self.baselines))

    def interval(self, policy: str) -> tuple[float, float]:
        """Return the 95% interval of ``ratio`` (Fieller), with paired repeats."""
        return fieller_interval(self.tuned_regret(policy), self.tuned_regret(*self.baselines))

    def reserve(self, policy: str, limit: float) -> Measurement:
        """Return ``limit`` minus the ratio of a policy, with a 95% interval that needs no approximation of the ratio.

        The interval is that of the mean of limit × baseline regret − regret, one value per repeat, in units of the mean
        baseline regret. An interval above 0 means that the ratio is below ``limit``.
        """
        base = self.tuned_regret(*self.baselines)
        found = Measurement.from_values(limit * base - self.tuned_regret(policy))
        unit = max(float(base.mean()), MIN_REGRET)
        return Measurement(found.mean / unit, found.margin / unit, found.degrees)


def leave_one_out(values: Floats) -> Floats:
    """Return, for each repeat, the value of the setting with the lowest mean over the other repeats.

    Parameters
    ----------
    values : (settings, repeats) array
        Values of which the lowest is the best.

    Examples
    --------
    >>> leave_one_out(np.array([[1.0, 8.0, 9.0], [6.0, 6.0, 6.0]])).tolist()
    [6.0, 8.0, 9.0]
    """
    return np.asarray(values[lowest_in_other_repeats(values), np.arange(values.shape[1])])


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
    margin = float(ci_half_width(policy - ratio * baseline)) / denominator
    return Measurement(ratio, margin, max(1, len(policy) - 1))


def repeats_needed(reserve: Measurement) -> int | None:
    """Return the approximate number of repeats that would decide a test whose interval contains 0.

    The margin shrinks with the square root of the number of repeats. The estimate assumes that mean and standard
    deviation stay the same. The result is None with one repeat or a mean of 0.
    """
    if math.isnan(reserve.margin) or reserve.mean == 0.0:
        return None
    error = reserve.margin / student_quantile(reserve.degrees) * math.sqrt(reserve.degrees + 1)
    needed = math.ceil((2.0 * error / reserve.mean) ** 2)
    return max(int(reserve.degrees) + 1, needed)


def geometric_mean(ratios: Iterable[Measurement]) -> Measurement:
    """Return the geometric mean of independent ratios. The margin is half the width of its 95% confidence interval.

    The margins of the ratios are combined on the log scale. They state how much the mean would vary with other random
    seeds in the same scenarios, and not how much it would vary with other scenarios.

    Examples
    --------
    >>> geometric_mean([Measurement(0.5, 0.0), Measurement(2.0, 0.0)])
    Measurement(mean=1.0, margin=0.0)
    """
    values = list(ratios)
    mean = math.exp(sum(math.log(value.mean) for value in values) / len(values))
    return Measurement(mean, mean * math.sqrt(sum((value.margin / value.mean) ** 2 for value in values)) / len(values))


def scenario_interval(ratios: Sequence[Measurement]) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the geometric mean of ratios over scenarios that are drawn with replacement.

    The interval states how much the mean depends on the choice of scenarios. For fewer than two ratios, it is
    (NaN, NaN).

    Examples
    --------
    >>> [round(end, 2) for end in scenario_interval([Measurement(value, 0.0) for value in (0.5, 1.0, 2.0, 1.0)])]
    [0.59, 1.68]
    """
    if len(ratios) < 2:
        return math.nan, math.nan
    logs = np.log([ratio.mean for ratio in ratios])
    drawn = np.random.default_rng(0).integers(len(logs), size=(RESAMPLES, len(logs)))
    low, high = np.exp(np.quantile(logs[drawn].mean(axis=1), [0.025, 0.975]))
    return float(low), float(high)
