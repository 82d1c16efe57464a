"""Results of a load test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from locb.loadtest.plan import Plan


@dataclass(frozen=True)
class Latency:
    """Number of responses, and quantiles of their latency in milliseconds; 0 without responses."""

    count: int
    p50: float
    p90: float
    p99: float
    max: float


def summarize_latencies(seconds: Sequence[float]) -> Latency:
    """Return the number and the quantiles of latencies, given in seconds. Each quantile is an observed value."""
    if not len(seconds):
        return Latency(0, 0.0, 0.0, 0.0, 0.0)
    quantiles = 1000.0 * np.percentile(np.asarray(seconds), [50, 90, 99, 100], method="higher")
    return Latency(len(seconds), *(float(quantile) for quantile in quantiles))


@dataclass(frozen=True, kw_only=True)
class Report:
    """Results of a load test.

    Attributes
    ----------
    plan : Plan
        Settings of the load test.
    seconds : float
        Time in which new decisions were requested, in seconds.
    per_second : float
        Successful responses per second in this time.
    recommend, reward, ping : Latency
        Latencies of successful requests, by kind of request.
    errors : dict of str to int
        Number of failed attempts by HTTP status or reason: ``connection lost``, ``timeout``, ``invalid response`` (not
        JSON, or for another decision), ``unanswered`` (not sent or not answered when the load test ended).
    first_problem : str
        Status and body of the first error response.
    retried : int
        Number of failed attempts that were repeated.
    mean_reward, late_mean_reward : float
        Mean, over all decisions and over the last quarter of the decisions, of the true mean reward of the recommended
        arm. NaN without decisions.
    random_mean_reward, best_mean_reward : float
        Mean, over all decisions, of the true mean reward of a random arm and of the best arm. NaN without decisions.
    cpu_microseconds : float
        CPU time of the load generator per attempt to send a request, in microseconds.
    decisions : list of (decision_id, user, arm)
        Acknowledged decisions; empty unless the plan has ``record=True``.
    rewards : list of (decision_id, reward)
        Acknowledged rewards; empty unless the plan has ``record=True``.
    """

    plan: Plan
    seconds: float
    per_second: float
    recommend: Latency
    reward: Latency
    ping: Latency
    errors: dict[str, int]
    first_problem: str
    retried: int
    mean_reward: float
    late_mean_reward: float
    random_mean_reward: float
    best_mean_reward: float
    cpu_microseconds: float
    decisions: list[tuple[str, str, str]] = field(repr=False, default_factory=list)
    rewards: list[tuple[str, float]] = field(repr=False, default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible values, without the token and the recorded decisions and rewards."""
        plan = {name: value for name, value in vars(self.plan).items() if name != "token"}
        values = {name: value for name, value in vars(self).items() if name not in ("plan", "decisions", "rewards")}
        for name, value in values.items():
            if isinstance(value, Latency):
                values[name] = asdict(value)
            elif isinstance(value, float) and np.isnan(value):
                values[name] = None
        return {"plan": plan, **values}
