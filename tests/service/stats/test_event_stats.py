"""Statistics of events, compared with direct counts of the log, on SQLite and PostgreSQL."""

import asyncio
import math
import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from locb.recommender.events import CORRECTION, DEFAULT, REWARD, DecisionRow, ObservationRow, Records
from locb.service.packed_responses import PackedSource
from locb.service.stats import event_stats as event_stats_module
from locb.service.stats import history_backfill
from locb.service.stats.event_stats import (
    DAY,
    FIVE_MINUTES,
    RETENTION,
    TEN_SECONDS,
    THREE_HOURS,
    Counts,
    EventStats,
    uses_group,
)
from locb.service.stats.history_backfill import backfill, match_corrections
from locb.service.store.log import EventLog
from locb.service.store.schema import observations
from service.store.sample_rows import decision, observation, packed_response

NOW = time.time()
RESPONSES = {
    False: packed_response(PackedSource("cluster", 0, 1.0, 1, 4)),
    True: packed_response(PackedSource("user", None, 0.4, 1, 4), PackedSource("neighbourhood", 0, 0.6, 2, 4)),
}


def test_a_decision_uses_groups_if_half_of_its_estimate_comes_from_them() -> None:
    group = PackedSource("neighbourhood", 0, 0.4, 9, 4)
    assert not uses_group([PackedSource("population", None, 0.6, 9, 4), group])
    assert uses_group([PackedSource("population", None, 0.4, 9, 4), group, PackedSource("other", None, 0.2, 9, 4)])
    assert not uses_group([PackedSource("neighbourhood", 0, 1.0, 1, 4)])


def random_batches(rng: random.Random, count: int, start: float) -> tuple[list[Records], list[list[bool]]]:
    """Return batches of events over three months, and whether each decision used evidence from a group."""
    seq, batches, flags, open_decisions, last = 0, [], [], [], []
    times = sorted(rng.choice([rng.uniform(start, NOW), NOW - rng.expovariate(1 / 20_000)]) for _ in range(count))
    for now in times:
        batch, grouped = Records(), []
        for _ in range(rng.randrange(3)):
            seq += 1
            grouped.append(rng.random() < 0.5)
            row = decision(seq, f"d{seq}", rng.randrange(9), time=now, active_at=now, response=RESPONSES[grouped[-1]])
            batch.decisions.append(row)
            open_decisions.append(row)
        for _ in range(rng.randrange(3)):
            if not open_decisions:
                break
            rewarded = open_decisions.pop(rng.randrange(len(open_decisions)))
            seq += 1
            kind = rng.choice([REWARD, DEFAULT])
            row = observation(seq, rewarded.seq, kind, rng.random(), time=now, user_index=rewarded.user_index)
            batch.observations.append(row)
            last.append(row)
        if last and rng.random() < 0.4:
            before = last.pop(rng.randrange(len(last)))
            seq += 1
            kind = max(before.kind + 1, CORRECTION)
            row = before._replace(seq=seq, kind=kind, previous_reward=before.reward, reward=rng.random(), time=now)
            batch.observations.append(row)
            last.append(row)
        batches.append(batch)
        flags.append(grouped)
    return batches, flags


def rewarded_times(batches: list[Records], batch: Records) -> list[float]:
    """Return the times of the decisions whose first reward is in a batch."""
    times = {row.seq: row.time for each in batches for row in each.decisions}
    return [times[row.decision_seq] for row in batch.observations if row.kind < CORRECTION]


class DirectCounts:
    """Counts from the rows of the log: time of each decision, and first time and last value of its reward."""

    def __init__(self, log: EventLog) -> None:
        with log._reading() as connection:
            self.observations = [
                ObservationRow(*row) for row in connection.execute(select(observations).order_by(observations.c.seq))
            ]
        rewards: dict[int, tuple[float, float]] = {}
        for row in self.observations:
            time = rewards[row.decision_seq][0] if row.kind >= CORRECTION else row.time
            rewards[row.decision_seq] = time, row.reward
        rows = [row for chunk in log.decisions() for row in chunk]
        self.decisions = np.array([row.time for row in rows])
        self.unrewarded = np.array([row.time for row in rows if row.seq not in rewards])
        self.times, self.rewards = np.array(list(rewards.values())).T

    def between(self, start: float, stop: float) -> Counts:
        """Return the counts of a period; a correction counts at the time of the first reward."""
        found = self.rewards[(start <= self.times) & (self.times < stop)]
        decisions = np.count_nonzero((start <= self.decisions) & (self.decisions < stop))
        unrewarded = np.count_nonzero((start <= self.unrewarded) & (self.unrewarded < stop))
        return Counts(decisions, 0, 0, len(found), found.sum(), (found**2).sum(), unrewarded)


def check_counts(event_stats: EventStats, log: EventLog) -> None:
    """Check all queries of the statistics."""
    direct = DirectCounts(log)
    whole = direct.between(0.0, math.inf)
    assert (event_stats.decisions, event_stats.rewards) == (whole.decisions, whole.rewards)
    for step, seconds in (
        (TEN_SECONDS, 3600.0),
        (FIVE_MINUTES, 1.0 * DAY),
        (THREE_HOURS, 31.0 * DAY),
        (DAY, 100.0 * DAY),
    ):
        start = math.floor((NOW - seconds) / step) * step
        steps = event_stats.buckets(step, start, math.inf)
        assert [begin for begin, _ in steps] == sorted({begin for begin, _ in steps})
        assert all(begin % step == 0 for begin, _ in steps)
        for begin, counts in steps:
            expected = direct.between(begin, begin + step)
            assert counts._replace(classified=0, grouped=0) == pytest.approx(expected, abs=1e-9)
        counted = sum(counts.decisions + counts.rewards for _, counts in steps)
        expected = direct.between(start, math.inf)
        assert counted == expected.decisions + expected.rewards
    recent = math.floor((NOW - DAY) / FIVE_MINUTES) * FIVE_MINUTES
    assert event_stats.pending_rewards(NOW) == direct.between(recent, math.inf).unrewarded > 0
    by_user: dict[int, list[float]] = {}
    for row in direct.observations:
        count, total = by_user.get(row.user_index, [0, 0.0])
        change = row.reward - row.previous_reward if row.kind >= CORRECTION else row.reward
        by_user[row.user_index] = [count + (row.kind < CORRECTION), total + change]
    assert event_stats.rewarded_users == len(by_user)
    found = event_stats.rewards_by_user(np.arange(12))
    for user_index in range(12):
        assert found[user_index].tolist() == pytest.approx(by_user.get(user_index, [0, 0.0]))


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock to NOW, regardless of how long other tests take."""
    for module in (history_backfill, event_stats_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))


@pytest.fixture
def filled(log: EventLog) -> tuple[EventLog, list[Records], list[list[bool]]]:
    batches, flags = random_batches(random.Random(4), 400, NOW - 90 * DAY)
    log.commit(
        Records(
            decisions=[row for batch in batches for row in batch.decisions],
            observations=[row for batch in batches for row in batch.observations],
        )
    )
    return log, batches, flags


def test_backfilled_and_new_events_are_counted_equally(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_backfill, "EVENTS_PER_QUERY", 37)
    monkeypatch.setattr(history_backfill, "RESPONSES_PER_QUERY", 7)
    log, batches, flags = filled

    async def run(split: int) -> EventStats:
        """Count the first batches by backfill, and the others as new events."""
        event_stats = EventStats()
        last = max((row.seq for batch in batches[:split] for row in [*batch.decisions, *batch.observations]), default=0)
        task = asyncio.create_task(backfill(log, event_stats, last, lambda: False))
        for batch, grouped in zip(batches[split:], flags[split:], strict=True):
            event_stats.add(batch, grouped, rewarded_times(batches, batch))
        await task
        await match_corrections(log, event_stats)
        assert event_stats.unmatched_corrections == []
        return event_stats

    for split in (0, 200, 400):
        check_counts(asyncio.run(run(split)), log)
    hour = sum(np.array(counts) for _, counts in asyncio.run(run(400)).buckets(TEN_SECONDS, NOW - 3600, math.inf))
    rows = [
        row
        for batch in batches
        for row in batch.decisions
        if row.time >= math.floor((NOW - 3600) / TEN_SECONDS) * TEN_SECONDS
    ]
    recent = [row.response == RESPONSES[True] for row in rows if row.time >= NOW - 3600]
    assert len(recent) > 5
    assert abs(hour[1] - len(recent)) <= len(rows) - len(recent)
    assert abs(hour[2] - sum(recent)) <= len(rows) - len(recent)


def test_total_uses_the_narrowest_buckets(filled: Any) -> None:
    log, batches, flags = filled
    event_stats = EventStats()
    for batch, grouped in zip(batches, flags, strict=True):
        event_stats.add(batch, grouped, rewarded_times(batches, batch))
    asyncio.run(match_corrections(log, event_stats))
    rng, direct = random.Random(7), DirectCounts(log)
    for _ in range(40):
        start, stop = sorted(NOW - rng.choice([3600.0, DAY, 40 * DAY, 90 * DAY]) * rng.random() for _ in range(2))

        def width_at(when: float) -> int:
            return next(
                step for step in (TEN_SECONDS, FIVE_MINUTES, THREE_HOURS) if when >= NOW - RETENTION[step] + THREE_HOURS
            )

        low = math.floor(start / width_at(start)) * width_at(start)
        high = math.ceil(stop / width_at(stop)) * width_at(stop)
        counts = event_stats.total(start, stop, NOW)._replace(classified=0, grouped=0)
        assert counts == pytest.approx(direct.between(low, high), abs=1e-9), (NOW - start, NOW - stop)
    everything = event_stats.total(0.0, math.inf, NOW)
    assert everything.rewards == event_stats.rewards
    assert everything.minus(everything) == Counts()


def test_old_buckets_are_removed() -> None:
    """The number of ten-second buckets is bounded by those of about a day."""
    event_stats = EventStats()
    for begin in range(0, 4 * DAY, 8):
        row = DecisionRow(begin, b"", 0, NOW - 3.9 * DAY + begin, None, 0, b"", b"")
        event_stats.add(Records(decisions=[row]), [True], [])
    event_stats.buckets(TEN_SECONDS, 0.0, math.inf)
    assert len(event_stats._buckets[TEN_SECONDS]) < 1.3 * DAY / TEN_SECONDS
    assert event_stats.total(0.0, math.inf, NOW).decisions == event_stats.decisions


def test_empty_statistics() -> None:
    event_stats = EventStats()
    assert event_stats.first_time() is None
    assert event_stats.total(0.0, math.inf, NOW) == Counts()
    assert event_stats.rewards_by_user(np.arange(3)).tolist() == [[0, 0]] * 3
    assert event_stats.buckets(DAY, 0.0, math.inf) == []


def test_backfill_retries_while_the_store_is_unavailable(filled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from locb.service.store.database import StoreError

    monkeypatch.setattr(history_backfill, "RETRY_INTERVAL", 0.001)
    monkeypatch.setattr(history_backfill, "EVENTS_PER_QUERY", 100)
    log, batches, _ = filled
    read: Callable[..., Any] = log.totals
    tries = []

    def flaky(after: int, until: int, last: int) -> Any:
        tries.append(until)
        if len(tries) % 2:
            raise StoreError("unavailable")
        return read(after, until, last)

    monkeypatch.setattr(log, "totals", flaky)
    event_stats = EventStats()
    last = max(row.seq for batch in batches for row in [*batch.decisions, *batch.observations])
    asyncio.run(backfill(log, event_stats, last, lambda: False))
    check_counts(event_stats, log)
