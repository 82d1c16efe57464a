"""Results of the evaluation of policies on a log, as plain numbers and text. Reports read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from locb.common.presentation import presenter
from locb.logs.bootstrap import Interval

BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"
ESTIMATORS = {
    "logged": "mean reward of the log",
    "ips": "inverse propensity score",
    "snips": "self-normalized inverse propensity score",
    "dm": "direct method: a linear model of rewards",
    "dr": "doubly robust: model and propensities",
    "replay": "replay: decisions in which the policy chooses the logged arm",
}
MAX_NEEDED = 1e9  # larger numbers of decisions are not reported
# Half widths of the interval by which a difference must differ from 0 for a verdict with 80% probability.
POWER = (1.959963984540054 + 0.8416212335729143) / 1.959963984540054


@dataclass(frozen=True)
class PolicyValue:
    """Estimate of the mean reward per decision of one policy, by one estimator.

    Attributes
    ----------
    estimator : str
        A key of ``ESTIMATORS``.
    value : Interval
        Mean reward per decision. If all rewards of the log are 0 or 1, the bounds are from 0 to 1.
    difference : Interval or None
        Value minus that of the baseline; None for the baseline itself. If all rewards are 0 or 1, the bounds are from
        −1 to 1.
    assumes_model : bool
        Whether the interval holds only if the model of rewards is right.
    """

    estimator: str
    value: Interval
    difference: Interval | None = None
    assumes_model: bool = False

    def clip(self, low: float, high: float) -> PolicyValue:
        """Return the estimate with intervals in the range of values, if mean rewards are from ``low`` to ``high``."""
        difference = None if self.difference is None else self.difference.clip(low - high, high - low)
        return replace(self, value=self.value.clip(low, high), difference=difference)


@dataclass(frozen=True)
class Weights:
    """Diagnostics of the weights (probability of the policy / propensity) of the decisions of a log.

    Attributes
    ----------
    decisions : int
        Decisions with a weight above 0: those from which the value of the policy is estimated.
    effective : float
        Effective number of decisions, (sum of weights)² / sum of squared weights.
    largest, total : float
        Largest weight, and sum of all weights.
    mean : Interval
        Mean weight, which must be near 1.
    unsupported : float
        Share of the choices of the policy that are arms which are never chosen in the log.
    """

    decisions: int
    effective: float
    largest: float
    total: float
    mean: Interval
    unsupported: float = 0.0


@dataclass(frozen=True)
class PolicyEvaluation:
    """Evaluation of one policy.

    Attributes
    ----------
    policy : str
        Name of the policy.
    kind : {"logged", "fixed", "learning"}
        Whether the policy made the log, never changes, or learns from the rewards that it gets.
    values : list of PolicyValue
        Estimates. The first one decides the verdict.
    weights : Weights or None
        Diagnostics; None for the policy of the log, and if propensities are not known.
    verdict : {"better", "worse", "undecided", ""}
        Comparison with the baseline; empty for the baseline.
    sentence : str
        The verdict in words.
    warnings : list of str
        Problems of the estimates.
    """

    policy: str
    kind: str
    values: list[PolicyValue]
    weights: Weights | None
    verdict: str
    sentence: str
    warnings: list[str] = field(default_factory=list)

    def value(self, estimator: str) -> PolicyValue:
        """Return the estimate of one estimator. Raise a KeyError if there is none."""
        for value in self.values:
            if value.estimator == estimator:
                return value
        available = ", ".join(value.estimator for value in self.values) or "none"
        raise KeyError(f"{self.policy} has no estimate of {estimator!r}; available estimators: {available}")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Result of :func:`locb.evaluate`: the policies of ``results``, compared with a baseline.

    Attributes
    ----------
    results : list of PolicyEvaluation
        The baseline, then one element per policy.
    baseline : str
        Name of the baseline.
    log : dict of str to str
        Facts about the log.
    notes : list of str
        Which decisions are not used, and other limitations.
    settings : dict
        Arguments of the evaluation.
    """

    results: list[PolicyEvaluation]
    baseline: str
    log: dict[str, str]
    notes: list[str]
    settings: dict[str, Any]

    def __getitem__(self, policy: str) -> PolicyEvaluation:
        for result in self.results:
            if result.policy == policy:
                return result
        evaluated = ", ".join(result.policy for result in self.results)
        raise KeyError(f"policy {policy!r} was not evaluated; choose from {evaluated}")

    def __repr__(self) -> str:
        rows = [HEADINGS, *summary_rows(self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *(result.sentence for result in self.results if result.sentence)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(heading)}</th>" for heading in HEADINGS)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in summary_rows(self))
        verdicts = "".join(f"<li>{escape(result.sentence)}</li>" for result in self.results if result.sentence)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><ul>{verdicts}</ul>"

    def plot(self) -> Any:
        """Return an Altair chart of the estimates, with 95% intervals, as differences from the baseline."""
        return presenter().plot_evaluation(self)


HEADINGS = ("policy", "estimator", "value", "95% interval", "minus baseline", "effective decisions", "verdict")


def summary_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return one row of text per policy, with its first estimate."""
    rows: list[tuple[str, ...]] = []
    for result in evaluation.results:
        effective = f"{result.weights.effective:,.0f}" if result.weights else "–"
        if not result.values:
            rows.append((result.policy, "–", "–", "–", "–", effective, result.verdict))
            continue
        first = result.values[0]
        difference = "–" if first.difference is None else format_signed(first.difference.value)
        rows.append(
            (
                result.policy,
                first.estimator + (" (assumes model)" if first.assumes_model else ""),
                f"{first.value.value:.4g}",
                format_range(first.value),
                difference,
                effective,
                result.verdict or "baseline",
            )
        )
    return rows


def format_signed(number: float) -> str:
    """Return a number with its sign and four significant digits."""
    return "–" if math.isnan(number) else f"{number:+.4g}".replace("-", "−")


def format_range(interval: Interval) -> str:
    """Return the bounds of an interval as text."""
    return "–" if math.isnan(interval.low) else f"{interval.low:.4g} to {interval.high:.4g}".replace("-", "−")


def needed_decisions(difference: Interval, decisions: int) -> int | None:
    """Return about how many decisions like those of the log would decide the sign of a difference; None if too many.

    The number gives an interval that excludes 0 with a probability of 80%, if the difference is as large as estimated.
    It is rounded up to two significant digits.
    """
    ratio = POWER * difference.half_width / max(abs(difference.value), 1e-100)
    needed = decisions * ratio**2
    if not needed <= MAX_NEEDED:
        return None
    digits = max(0, len(str(int(needed))) - 2)
    return int(math.ceil(needed / 10**digits) * 10**digits)


def decide(
    policy: str,
    baseline: str,
    value: PolicyValue | None,
    decisions: int,
    problems: Sequence[str],
    largest: float = math.inf,
) -> tuple[str, str]:
    """Return the verdict on a policy, and a sentence that explains it.

    Parameters
    ----------
    policy, baseline : str
        Names.
    value : PolicyValue or None
        Estimate that decides; None if there is none.
    decisions : int
        Number of decisions of the log that are used.
    problems : sequence of str
        Reasons for which the estimate must not decide.
    largest : float, default infinity
        Largest possible absolute difference, to which the interval in the sentence is clipped.
    """
    if value is None or value.difference is None:
        return UNDECIDED, f"{policy}: undecided: {'; '.join(problems)}."
    difference = value.difference
    numbers = f"{format_signed(difference.value)} per decision"
    if not math.isnan(difference.low):
        clipped = difference.clip(-largest, largest)
        numbers += f", 95% interval {format_signed(clipped.low)} to {format_signed(clipped.high)}"
    if problems:
        return UNDECIDED, f"{policy}: undecided ({numbers}): {'; '.join(problems)}."
    if difference.low > 0 or difference.high < 0:
        verdict = BETTER if difference.low > 0 else WORSE
        return verdict, f"{policy}: {verdict} than {baseline} ({numbers})."
    if math.isnan(difference.low):
        return UNDECIDED, f"{policy}: undecided ({numbers}): there are too few users or distinct rewards."
    needed = needed_decisions(difference, decisions)
    amount = "more than a billion decisions" if needed is None else f"about {needed:,} decisions like these"
    outlook = f"{amount} would give a verdict with a probability of 80%, and the log has {decisions:,}"
    return UNDECIDED, f"{policy}: undecided ({numbers}); {outlook}."


@dataclass(frozen=True)
class TuningCandidate:
    """Policy with parameters that was tried by :func:`locb.tune`.

    Attributes
    ----------
    name, policy : str
        Name of the candidate, and of its policy.
    parameters : dict
        Parameters of the grid.
    value, difference : Interval
        Mean of the values of all folds, and of their differences from the value of the log, with 95% intervals.
    decisions : float
        Number of decisions from which the value is estimated.
    """

    name: str
    policy: str
    parameters: dict[str, Any]
    value: Interval
    difference: Interval
    decisions: float


@dataclass(frozen=True, repr=False)
class Tuning:
    """Result of :func:`locb.tune`.

    Attributes
    ----------
    candidates : list of TuningCandidate
        All candidates, best first.
    chosen : list of str
        Candidate that the other folds choose for each fold.
    logged : Interval
        Mean reward of the log.
    selecting_value : float
        Mean estimate with which these candidates were chosen. It is too high on average.
    value, difference : Interval
        Mean value of the choice on held-out users, and its difference from the value of the log.
    verdict : {"better", "worse", "undecided"}
        Comparison of the held-out value with the log.
    sentence : str
        Verdict with its numbers.
    log, notes, settings
        Facts about the log, limitations, and arguments.
    """

    candidates: list[TuningCandidate]
    chosen: list[str]
    logged: Interval
    selecting_value: float
    value: Interval
    difference: Interval
    verdict: str
    sentence: str
    log: dict[str, str]
    notes: list[str]
    settings: dict[str, Any]

    @property
    def winner(self) -> TuningCandidate:
        """The candidate with the highest mean value on all folds."""
        return self.candidates[0]

    @property
    def winners_curse(self) -> float:
        """Amount that the selection added to the estimate of the choice: ``selecting_value`` − ``value.value``."""
        return self.selecting_value - self.value.value

    def __repr__(self) -> str:
        return (
            f"winner: {self.winner.name}\n"
            f"value on held-out users: {self.value.value:.4g} ({format_range(self.value)})\n"
            f"estimate that selected: {self.selecting_value:.4g}, winner's curse "
            f"{format_signed(self.winners_curse)}\n{self.sentence}"
        )
