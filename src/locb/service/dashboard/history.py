"""Decisions and rewards over time."""

from __future__ import annotations

import math
import time
from typing import TypeAlias

from locb.service.core.service import Service
from locb.service.dashboard.schemas import History, HistoryPoint, MeanChange, Period
from locb.service.stats.event_stats import COARSE, DAY, FINE, MIDDLE, Counts
from locb.service.stats.history_backfill import place_corrections
from locb.service.stats.intervals import difference, mean_of

SPANS = {"hour": (FINE, 3600.0), "day": (MIDDLE, 1.0 * DAY), "month": (COARSE, 31.0 * DAY), "all": (DAY, math.inf)}


Baseline: TypeAlias = tuple[float, float]  # from when to when


async def history(service: Service, span: str, baseline: Baseline | None) -> History:
    """The steps of a span up to now, all of them together, and how they compare with the time of a baseline."""
    await place_corrections(service.log, service.event_stats)
    event_stats, now = service.event_stats, time.time()
    step, length = SPANS[span]
    start = now - length if math.isfinite(length) else event_stats.first()
    begun = now if start is None else float(math.floor(start / step) * step)
    counted = event_stats.between(begun, math.inf, now)
    points = [_step(begin, counts) for begin, counts in event_stats.steps(step, begun, math.inf)]
    total = _period(begun, now, counted)
    if baseline is None:
        return History(span, step, points, total, None, None)
    before = event_stats.between(*baseline, now)
    rest = (
        counted.without(event_stats.between(max(baseline[0], begun), baseline[1], now))
        if baseline[1] > begun
        else counted
    )
    change = difference(rest, before)
    told = None if change is None else MeanChange(*change)
    return History(span, step, points, total, _period(*baseline, before), told)


def _step(begin: int, counts: Counts) -> HistoryPoint:
    known = counts.told >= counts.decisions
    return HistoryPoint(
        float(begin),
        int(counts.decisions),
        int(counts.grouped) if known else None,
        int(counts.rewards),
        *mean_of(counts),
    )


def _period(start: float, stop: float, counts: Counts) -> Period:
    return Period(start, stop, int(counts.rewards), *mean_of(counts))
