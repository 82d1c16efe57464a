"""Decisions and rewards over time, compared with a baseline period."""

from __future__ import annotations

import math
import time
from typing import TypeAlias

from locb.service.core.service import Service
from locb.service.dashboard.schemas import History, HistoryPoint, MeanChange, Period
from locb.service.stats.event_stats import COARSE, DAY, FINE, MIDDLE, Counts
from locb.service.stats.history_backfill import place_corrections
from locb.service.stats.intervals import difference, mean_of

# Length of a time step, and length of the span, in seconds.
SPANS = {"hour": (FINE, 3600.0), "day": (MIDDLE, 1.0 * DAY), "month": (COARSE, 31.0 * DAY), "all": (DAY, math.inf)}

Baseline: TypeAlias = tuple[float, float]  # start and end


async def history(service: Service, span: str, baseline: Baseline | None) -> History:
    """Return the time steps of a span that ends now, their total, and the change from a baseline period."""
    await place_corrections(service.log, service.event_stats)
    event_stats, now = service.event_stats, time.time()
    step, length = SPANS[span]
    start = now - length if math.isfinite(length) else event_stats.first()
    start = now if start is None else float(math.floor(start / step) * step)
    counts = event_stats.between(start, math.inf, now)
    points = [_point(begin, step_counts) for begin, step_counts in event_stats.steps(step, start, math.inf)]
    total = _period(start, now, counts)
    if baseline is None:
        return History(span, step, points, total, None, None)
    baseline_counts = event_stats.between(*baseline, now)
    rest = counts
    if baseline[1] > start:
        rest = counts.without(event_stats.between(max(baseline[0], start), baseline[1], now))
    change = difference(rest, baseline_counts)
    return History(
        span,
        step,
        points,
        total,
        _period(*baseline, baseline_counts),
        None if change is None else MeanChange(*change),
    )


def _point(start: int, counts: Counts) -> HistoryPoint:
    known = counts.told >= counts.decisions
    return HistoryPoint(
        float(start),
        int(counts.decisions),
        int(counts.grouped) if known else None,
        int(counts.rewards),
        *mean_of(counts),
    )


def _period(start: float, stop: float, counts: Counts) -> Period:
    return Period(start, stop, int(counts.rewards), *mean_of(counts))
