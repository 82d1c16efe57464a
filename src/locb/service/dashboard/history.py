"""Decisions and rewards over time, compared with a baseline period."""

from __future__ import annotations

import math
import time
from typing import Literal, TypeAlias

from locb.common.spans import SPANS
from locb.service.core.service import Service
from locb.service.dashboard.schemas import History, HistoryPoint, MeanChange, Period
from locb.service.stats.event_stats import Counts
from locb.service.stats.history_backfill import match_corrections
from locb.service.stats.intervals import difference_interval, mean_interval

PREVIOUS: Literal["previous"] = "previous"
# Start and end of the period to compare with, or the period of the same length that ends where the span starts.
Baseline: TypeAlias = tuple[float, float] | Literal["previous"]


async def history(service: Service, span: str, baseline: Baseline | None) -> History:
    """Return decisions and rewards over time, and the change of the mean reward from a baseline period.

    Parameters
    ----------
    service : Service
        The service.
    span : str
        Key of ``SPANS``: the period that ends now.
    baseline : (float, float), "previous" or None
        Start and end of the baseline period in Unix time, or ``PREVIOUS``. The baseline is compared with the part of
        the span outside the baseline period.

    Raises
    ------
    ValueError
        If ``baseline`` is ``PREVIOUS`` and the span is the whole history.
    """
    await match_corrections(service.log, service.event_stats)
    event_stats, now = service.event_stats, time.time()
    length, step = SPANS[span].seconds, SPANS[span].step_seconds
    start = event_stats.first_time() if length is None else now - length
    # The periods start and end with a step: the statistics count each step either entirely or not at all.
    start = now if start is None else float(math.floor(start / step) * step)
    counts = event_stats.total(start, math.inf, now)
    points = [_point(begin, step_counts) for begin, step_counts in event_stats.buckets(step, start, math.inf)]
    total = _period(start, now, counts)
    if baseline is None:
        return History(span, step, points, total, None, None)
    if baseline == PREVIOUS:
        if length is None:
            raise ValueError(f"span {span!r} has no previous period")
        baseline = start - length, start
    baseline_counts = event_stats.total(*baseline, now)
    rest = counts
    if baseline[1] > start:
        rest = counts.minus(event_stats.total(max(baseline[0], start), baseline[1], now))
    change = difference_interval(rest, baseline_counts)
    return History(
        span,
        step,
        points,
        total,
        _period(*baseline, baseline_counts),
        None if change is None else MeanChange(*change),
    )


def _point(start: int, counts: Counts) -> HistoryPoint:
    known = counts.classified >= counts.decisions
    return HistoryPoint(
        float(start),
        int(counts.decisions),
        int(counts.grouped) if known else None,
        int(counts.rewards),
        *mean_interval(counts),
    )


def _period(start: float, stop: float, counts: Counts) -> Period:
    return Period(start, stop, int(counts.rewards), *mean_interval(counts))
