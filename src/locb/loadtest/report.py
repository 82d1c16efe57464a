"""What a load found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from locb.loadtest.plan import Plan


@dataclass(frozen=True)
class Latency:
    """How long answers took, in milliseconds; 0 where there was none."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


def latency(seconds: Sequence[float]) -> Latency:
    """Latencies that were seen, not means of two."""
    if not len(seconds):
        return Latency(0, 0.0, 0.0, 0.0, 0.0)
    marks = 1000.0 * np.percentile(np.asarray(seconds), [50, 90, 99, 100], method="higher")
    return Latency(len(seconds), *(float(mark) for mark in marks))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was asked and answered.

    Attributes
    ----------
    seconds : float
        For how long new decisions were asked for.
    per_second : float
        Requests a second that were answered with success in that time.
    recommend, reward, ping : Latency
        Of requests that were answered with success, from when they were due.
    errors : dict
        Attempts without success, by status or by what went wrong: ``lost`` (connection), ``timeout``, ``wrong answer``
        (not JSON, or not about what was asked), ``unanswered`` (never sent, or given up at the end).
    problem : str
        What the service said of the first request that it turned away.
    retried : int
        Attempts that were made again later, of all those.
    earned, late, chance, best : float
        Means a decision, of the true means of arms: those recommended, those of the last quarter of the decisions,
        any arm, the best arm. NaN without decisions.
    cpu_microseconds : float
        Processor time of the generator a request.
    decisions : list of (decision_id, user, arm)
        Acknowledged decisions, if they were recorded.
    rewards : list of (decision_id, reward)
        Acknowledged rewards, if they were recorded.
    """

    plan: Plan
    seconds: float
    per_second: float
    recommend: Latency
    reward: Latency
    ping: Latency
    errors: dict[str, int]
    problem: str
    retried: int
    earned: float
    late: float
    chance: float
    best: float
    cpu_microseconds: float
    decisions: list[tuple[str, str, str]] = field(repr=False, default_factory=list)
    rewards: list[tuple[str, float]] = field(repr=False, default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """What JSON can hold, without the records and the token."""
        plan = {name: value for name, value in vars(self.plan).items() if name != "token"}
        told = {name: value for name, value in vars(self).items() if name not in ("plan", "decisions", "rewards")}
        for name, value in told.items():
            if isinstance(value, Latency):
                told[name] = asdict(value)
            elif isinstance(value, float) and np.isnan(value):
                told[name] = None
        return {"plan": plan, **told}
