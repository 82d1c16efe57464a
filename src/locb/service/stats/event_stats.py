"""What was decided and rewarded, counted by time and by place."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.service.store.rows import ObservationRow, Records
from locb.service.store.schema import CORRECTION
from locb.service.store.totals import STEP, Totals

# Steps of time in seconds, and for how many seconds each is kept; the last for ever. Each divides the next.
SECOND, FINE, MIDDLE, COARSE = 1, STEP, 300, 10_800
DAY = 86_400
KEPT = {SECOND: 120.0, FINE: 1.0 * DAY, MIDDLE: 31.0 * DAY, COARSE: math.inf}
MOST_PENDING = 2_048  # events that wait to be counted: together they take a millisecond
COLUMNS = 6
DECISIONS, TOLD, GROUPED, REWARDS, SUM, SQUARES = range(COLUMNS)


class Counts(NamedTuple):
    """Of some time: decisions, of how many it is known whether a group served them, by how many one did; rewards."""

    decisions: float = 0.0
    told: float = 0.0
    grouped: float = 0.0
    rewards: float = 0.0
    sum: float = 0.0
    squares: float = 0.0

    def without(self, others: Self) -> Counts:
        """These less those, which are among them."""
        return Counts(*(one - other for one, other in zip(self, others, strict=True)))


class EventStats:
    """Counts of a log: of its past as it is read, of what comes at once. For the thread of the requests alone."""

    def __init__(self) -> None:
        self.begun = time.time()
        self.decisions = 0
        self.rewards = 0
        self._steps: dict[int, dict[int, Floats]] = {step: {} for step in KEPT}
        self._places = np.zeros((0, 2))  # how many rewards, and their sum
        self._times: list[float] = []  # of decisions that wait to be counted
        self._grouped: list[bool] = []
        self._lessons: list[ObservationRow] = []
        self._unplaced: list[ObservationRow] = []  # corrections, until it is known when their defaults were learned

    def add(self, records: Records, grouped: Sequence[bool]) -> None:
        """Count a batch that was learned; ``grouped`` tells of each decision whether a group served it."""
        self._times += [row.time for row in records.decisions]
        self._grouped += grouped
        self._lessons += records.observations
        if len(self._times) + len(self._lessons) >= MOST_PENDING:
            self._fold()

    def _fold(self) -> None:
        if self._times:
            values = np.zeros((len(self._times), COLUMNS))
            values[:, [DECISIONS, TOLD]] = 1.0
            values[:, GROUPED] = self._grouped
            self.decisions += len(self._times)
            self._put(np.floor(self._times).astype(np.int64), values, SECOND)
            self._times, self._grouped = [], []
        if self._lessons:
            observations, self._lessons = self._lessons, []
            self._fold_lessons(observations)

    def _fold_lessons(self, observations: Sequence[ObservationRow]) -> None:
        corrections = [observation for observation in observations if observation.kind == CORRECTION]
        self._unplaced += corrections
        first = (
            [observation for observation in observations if observation.kind != CORRECTION]
            if corrections
            else observations
        )
        table = np.array([(observation.time, observation.place, observation.reward) for observation in first]).reshape(
            -1, 3
        )
        rewards = table[:, 2]
        values = np.zeros((len(table), COLUMNS))
        values[:, [REWARDS, SUM, SQUARES]] = np.stack([np.ones(len(table)), rewards, rewards**2], axis=1)
        self.rewards += len(table)
        self._put(np.floor(table[:, 0]).astype(np.int64), values, SECOND)
        self._put_places(table[:, 1].astype(np.int64), values[:, [REWARDS, SUM]])
        change = np.array([(0.0, observation.reward - observation.learned) for observation in corrections]).reshape(
            -1, 2
        )
        self._put_places(np.array([observation.place for observation in corrections], np.int64), change)

    # Corrections: each belongs where the default is that it takes the place of

    @property
    def unplaced(self) -> list[int]:
        """Decisions of corrections of which it is not known yet when their defaults were learned."""
        self._fold()
        return [observation.decision for observation in self._unplaced]

    def place_corrections(self, times: dict[int, float]) -> None:
        """Count those corrections of which it is known now when their defaults were learned."""
        placed = [observation for observation in self._unplaced if observation.decision in times]
        self._unplaced = [observation for observation in self._unplaced if observation.decision not in times]
        values = np.zeros((len(placed), COLUMNS))
        for row, observation in zip(values, placed, strict=True):
            row[SUM], row[SQUARES] = (
                observation.reward - observation.learned,
                observation.reward**2 - observation.learned**2,
            )
        self._put(np.floor([times[observation.decision] for observation in placed]).astype(np.int64), values, SECOND)

    # The past

    def begin_with(self, decisions: int, rewards: int) -> None:
        """How many there were before this tally, ahead of the parts that tell more of them."""
        self.decisions += decisions
        self.rewards += rewards

    def add_past(self, totals: Totals) -> None:
        """Count a part of the log from before this tally."""
        for table, columns in (
            (totals.decisions, [DECISIONS]),
            (totals.rewards, [REWARDS, SUM, SQUARES]),
            (totals.corrections, [SUM, SQUARES]),
        ):
            values = np.zeros((len(table), COLUMNS))
            values[:, columns] = table[:, 1:]
            self._put(table[:, 0].astype(np.int64), values, STEP)
        self._put_places(totals.places[:, 0].astype(np.int64), totals.places[:, 1:])

    def add_told(self, times: Sequence[float], grouped: Sequence[bool]) -> None:
        """Of decisions of the past: whether a group served them."""
        values = np.zeros((len(times), COLUMNS))
        values[:, TOLD], values[:, GROUPED] = 1.0, grouped
        self._put(np.floor(times).astype(np.int64) // STEP, values, STEP)

    # Asking

    def at(self, places: Ints) -> Floats:
        """How many rewards each of these places has, and their sum: (p, 2)."""
        self._fold()
        found = np.zeros((len(places), 2))
        counted = places < len(self._places)
        found[counted] = self._places[places[counted]]
        return found

    @property
    def learned_users(self) -> int:
        """With at least one reward."""
        self._fold()
        return int(np.count_nonzero(self._places[:, 0]))

    def steps(self, step: int, start: float, stop: float) -> list[tuple[int, Counts]]:
        """The steps that begin from ``start`` on and before ``stop`` and have anything, each with when it begins."""
        self._fold()
        unit = max(kept for kept in KEPT if step % kept == 0 and kept <= step)
        found: dict[int, Floats] = {}
        low, high = math.floor(start / unit), stop / unit
        for key, row in self._steps[unit].items():
            if low <= key < high:
                begin = key * unit // step * step
                found[begin] = found[begin] + row if begin in found else row
        return [(begin, Counts(*found[begin].tolist())) for begin in sorted(found) if found[begin].any()]

    def between(self, start: float, stop: float, now: float) -> Counts:
        """All of a time, by the finest steps that are kept of it: these are counted as a whole."""
        total = np.zeros(COLUMNS)
        edge = -math.inf
        for step, finer in ((COARSE, MIDDLE), (MIDDLE, FINE), (FINE, None)):
            until = math.inf if finer is None else math.ceil((now - KEPT[finer]) / step) * step
            low, high = max(start, edge), min(stop, until)
            total += sum((np.array(counts) for _, counts in self.steps(step, low, high)), np.zeros(COLUMNS))
            edge = until
        return Counts(*total.tolist())

    def first(self) -> float | None:
        """When the first thing was counted that is known; None if there is none."""
        self._fold()
        begun = min(self._steps[COARSE], default=None)
        return None if begun is None else float(begun * COARSE)

    # Sums

    def _put(self, keys: Ints, values: Floats, unit: int) -> None:
        """Add rows to the steps that hold them; ``keys`` count units of time."""
        now = time.time()
        keys, values = _together(keys, values)
        for step, kept in KEPT.items():
            if step < unit or not len(keys):
                continue
            oldest = (now - kept) / step - 1.0
            coarse = keys // (step // unit)
            recent = coarse >= oldest
            found, sums = _together(coarse[recent], values[recent])
            rows = self._steps[step]
            for key, row in zip(found.tolist(), sums, strict=True):
                rows[key] = rows[key] + row if key in rows else row
            if len(rows) > 1.1 * kept / step + 10:
                self._steps[step] = {key: row for key, row in rows.items() if key >= oldest}

    def _put_places(self, places: Ints, values: Floats) -> None:
        if len(places):
            most = int(places.max()) + 1
            if most > len(self._places):
                grown = np.zeros((max(most, 2 * len(self._places)), 2))
                grown[: len(self._places)] = self._places
                self._places = grown
            np.add.at(self._places, places, values)


def _together(keys: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Each key once, with the sum of its rows."""
    found, where = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(found), values.shape[1]))
    np.add.at(sums, where, values)
    return found, sums
