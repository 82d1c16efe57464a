"""Counts of decisions and rewards per time bucket, and of rewards per user.

A decision *used a group* if at least half of its estimate, by weight, is based on the rewards of groups of more than
one user: clusters, components or neighbourhoods. The *history* is the part of the log that was written before counting
started.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.policies import EvidenceSource as PolicyEvidenceSource
from locb.recommender.events import CORRECTION, ObservationRow, Records
from locb.service.packed_responses import PackedSource, unpack
from locb.service.stats.time_buckets import TimeBuckets
from locb.service.store.totals import BUCKET_SECONDS, Totals

# Widths of the time buckets in seconds. Each width divides the next.
SECOND, TEN_SECONDS, FIVE_MINUTES, THREE_HOURS = 1, BUCKET_SECONDS, 300, 10_800
DAY = 86_400
# Seconds for which the buckets of each width are kept.
RETENTION = {SECOND: 120.0, TEN_SECONDS: 1.0 * DAY, FIVE_MINUTES: 31.0 * DAY, THREE_HOURS: math.inf}
PENDING_SECONDS = DAY  # age of a decision from which its reward is no longer counted as pending
MAX_UNCOUNTED = 2_048  # maximum number of events that wait to be counted; counting so many takes about 1 ms
COLUMNS = 7
DECISIONS, CLASSIFIED, GROUPED, REWARDS, SUM, SQUARES, UNREWARDED = range(COLUMNS)
MIN_GROUP_WEIGHT = 0.5  # of all groups together, in a decision that used a group
GROUP_KINDS = ("cluster", "component", "neighbourhood", "other")  # kinds of evidence sources that are groups of users


class Counts(NamedTuple):
    """Counts of one period.

    Attributes
    ----------
    decisions : float
        Number of decisions.
    classified : float
        Number of decisions for which it is known whether they used a group.
    grouped : float
        Number of decisions that used a group.
    rewards : float
        Number of rewards that were learned in the period, including default rewards.
    reward_sum, reward_square_sum : float
        Sums of these ``rewards`` and of their squares. A correction changes the sums of the period of the first reward.
    unrewarded : float
        Number of decisions of the period that still have neither a reward nor a default reward.
    """

    decisions: float = 0.0
    classified: float = 0.0
    grouped: float = 0.0
    rewards: float = 0.0
    reward_sum: float = 0.0
    reward_square_sum: float = 0.0
    unrewarded: float = 0.0

    def minus(self, subset: Self) -> Counts:
        """Return these counts minus the counts of a part of the same period."""
        return Counts(*(total - part for total, part in zip(self, subset, strict=True)))


class EventStats:
    """Counts of the decisions and rewards in an event log, per time bucket and per user.

    New events are counted when they are committed, the history when ``HistoryBackfill`` reads it. Call the methods from
    the event loop only.
    """

    def __init__(self) -> None:
        self.started_at = time.time()
        self.decisions = 0
        self.rewards = 0
        self._buckets = {width: TimeBuckets(width, retention, COLUMNS) for width, retention in RETENTION.items()}
        self._user_rewards = np.zeros((0, 2))  # number of rewards and their sum, by user index
        # Events that are not counted yet: times of decisions, whether these used a group, times of decisions that have
        # got their first reward, and observations.
        self._new_times: list[float] = []
        self._new_grouped: list[bool] = []
        self._new_rewarded: list[float] = []
        self._new_observations: list[ObservationRow] = []
        self._unmatched: list[ObservationRow] = []  # corrections of rewards whose time is not known yet

    def add(self, records: Records, grouped: Sequence[bool], rewarded: Sequence[float]) -> None:
        """Count a committed batch.

        Parameters
        ----------
        records : Records
            The rows of the batch.
        grouped : sequence of bool
            Whether each decision of the batch used a group.
        rewarded : sequence of float
            Times of the decisions, of this or of earlier batches, that get their first reward in this batch.
        """
        self._new_times += [row.time for row in records.decisions]
        self._new_grouped += grouped
        self._new_rewarded += rewarded
        self._new_observations += records.observations
        if len(self._new_times) + len(self._new_observations) >= MAX_UNCOUNTED:
            self._flush()

    def _flush(self) -> None:
        if self._new_times:
            values = np.zeros((len(self._new_times), COLUMNS))
            values[:, [DECISIONS, CLASSIFIED, UNREWARDED]] = 1.0
            values[:, GROUPED] = self._new_grouped
            self.decisions += len(self._new_times)
            self._add_to_buckets(np.floor(self._new_times).astype(np.int64), values, SECOND)
            self._new_times, self._new_grouped = [], []
        if self._new_rewarded:
            values = np.zeros((len(self._new_rewarded), COLUMNS))
            values[:, UNREWARDED] = -1.0
            self._add_to_buckets(np.floor(self._new_rewarded).astype(np.int64), values, SECOND)
            self._new_rewarded = []
        if self._new_observations:
            observations, self._new_observations = self._new_observations, []
            self._flush_observations(observations)

    def _flush_observations(self, observations: Sequence[ObservationRow]) -> None:
        corrections = [observation for observation in observations if observation.kind >= CORRECTION]
        self._unmatched += corrections
        rewards = observations
        if corrections:
            rewards = [observation for observation in observations if observation.kind < CORRECTION]
        columns = [(observation.time, observation.user_index, observation.reward) for observation in rewards]
        times, indices, amounts = np.array(columns).reshape(-1, 3).T
        values = np.zeros((len(times), COLUMNS))
        values[:, [REWARDS, SUM, SQUARES]] = np.stack([np.ones(len(times)), amounts, amounts**2], axis=1)
        self.rewards += len(times)
        self._add_to_buckets(np.floor(times).astype(np.int64), values, SECOND)
        self._add_to_users(indices.astype(np.int64), values[:, [REWARDS, SUM]])
        changes = [(0.0, observation.reward - observation.previous_reward) for observation in corrections]
        corrected = np.array([observation.user_index for observation in corrections], np.int64)
        self._add_to_users(corrected, np.array(changes).reshape(-1, 2))

    # Corrections are counted at the time of the first reward of their decision

    @property
    def unmatched_corrections(self) -> list[int]:
        """Sequence numbers of the decisions with a correction that is not counted yet.

        Such a correction waits for ``match_corrections``, because the time of the first reward is not known yet.
        """
        self._flush()
        return [observation.decision_seq for observation in self._unmatched]

    def match_corrections(self, first_times: dict[int, float]) -> None:
        """Count the corrections of the decisions in ``first_times``. The other corrections keep waiting.

        ``first_times`` has the Unix time of the first reward of a decision, by the sequence number of the decision.
        """
        matched = [observation for observation in self._unmatched if observation.decision_seq in first_times]
        self._unmatched = [
            observation for observation in self._unmatched if observation.decision_seq not in first_times
        ]
        values = np.zeros((len(matched), COLUMNS))
        for row, observation in zip(values, matched, strict=True):
            reward, previous = observation.reward, observation.previous_reward
            row[SUM], row[SQUARES] = reward - previous, reward**2 - previous**2
        times = np.floor([first_times[observation.decision_seq] for observation in matched]).astype(np.int64)
        self._add_to_buckets(times, values, SECOND)

    # Backfill

    def add_history_counts(self, decisions: int, rewards: int) -> None:
        """Add the numbers of decisions and rewards in the history to ``decisions`` and ``rewards``."""
        self.decisions += decisions
        self.rewards += rewards

    def add_history(self, totals: Totals) -> None:
        """Add one part of the history to the buckets and to the counts per user."""
        for table, columns in (
            (totals.decisions, [DECISIONS, UNREWARDED]),
            (totals.rewards, [REWARDS, SUM, SQUARES]),
            (totals.corrections, [SUM, SQUARES]),
        ):
            values = np.zeros((len(table), COLUMNS))
            values[:, columns] = table[:, 1:]
            self._add_to_buckets(table[:, 0].astype(np.int64) * BUCKET_SECONDS, values, BUCKET_SECONDS)
        self._add_to_users(totals.users[:, 0].astype(np.int64), totals.users[:, 1:])

    def add_history_groups(self, times: Sequence[float], grouped: Sequence[bool]) -> None:
        """Add whether decisions of the history used a group; ``times`` are the Unix times of the decisions."""
        values = np.zeros((len(times), COLUMNS))
        values[:, CLASSIFIED], values[:, GROUPED] = 1.0, grouped
        self._add_to_buckets(np.floor(times).astype(np.int64), values, BUCKET_SECONDS)

    # Queries

    def rewards_by_user(self, indices: Ints) -> Floats:
        """Return an array with one row per user index: the number of rewards of the user, and their sum.

        Both are 0 for a user without counted rewards.
        """
        self._flush()
        found = np.zeros((len(indices), 2))
        known = indices < len(self._user_rewards)
        found[known] = self._user_rewards[indices[known]]
        return found

    @property
    def rewarded_users(self) -> int:
        """Number of users with at least one reward."""
        self._flush()
        return int(np.count_nonzero(self._user_rewards[:, 0]))

    def buckets(self, width: int, start: float, stop: float) -> list[tuple[int, Counts]]:
        """Return the start time and counts of each non-empty bucket of ``width`` seconds that overlaps [start, stop).

        All times are Unix times in seconds. The counts are sums over the stored buckets that overlap the period, whose
        width is the largest key of ``RETENTION`` that divides ``width``.
        """
        self._flush()
        unit = max(kept for kept in RETENTION if width % kept == 0 and kept <= width)
        times, sums = self._buckets[unit].grouped(width, start, stop)
        # During a backfill, a bucket may hold only the reward of a decision that is not counted yet.
        filled = sums[:, :UNREWARDED].any(axis=1)
        return [(begin, Counts(*row)) for begin, row in zip(times[filled].tolist(), sums[filled].tolist(), strict=True)]

    def total(self, start: float, stop: float, now: float) -> Counts:
        """Return the counts of the period [start, stop). All times are Unix times in seconds.

        Each part of the period is counted with the narrowest buckets of at least 10 seconds that are still kept at the
        time ``now``. A bucket that overlaps the period counts as a whole.
        """
        self._flush()
        total = np.zeros(COLUMNS)
        edge = -math.inf
        for width, finer in ((THREE_HOURS, FIVE_MINUTES), (FIVE_MINUTES, TEN_SECONDS), (TEN_SECONDS, None)):
            until = math.inf if finer is None else math.ceil((now - RETENTION[finer]) / width) * width
            low, high = max(start, edge), min(stop, until)
            total += self._buckets[width].total(low, high)
            edge = until
        return Counts(*total.tolist())

    def pending_rewards(self, now: float) -> int:
        """Return the number of decisions since ``now`` − 24 hours that have neither a reward nor a default reward.

        The start of this period is rounded down to five minutes.
        """
        self._flush()
        unrewarded = self._buckets[FIVE_MINUTES].total(now - PENDING_SECONDS, math.inf)[UNREWARDED]
        return max(0, round(float(unrewarded)))  # negative while the decisions of new rewards are not counted yet

    def first_time(self) -> float | None:
        """Return the start time of the first non-empty bucket of three hours, or None if nothing is counted."""
        self._flush()
        return self._buckets[THREE_HOURS].first_time

    def _add_to_buckets(self, times: Ints, values: Floats, precision: int) -> None:
        """Add rows to the buckets of all widths of at least ``precision`` seconds, the precision of ``times``."""
        now = time.time()
        for width, buckets in self._buckets.items():
            if width >= precision:
                buckets.add(times, values, now)

    def _add_to_users(self, indices: Ints, values: Floats) -> None:
        if len(indices):
            needed = int(indices.max()) + 1
            if needed > len(self._user_rewards):
                grown = np.zeros((max(needed, 2 * len(self._user_rewards)), 2))
                grown[: len(self._user_rewards)] = self._user_rewards
                self._user_rewards = grown
            np.add.at(self._user_rewards, indices, values)


# Whether a decision used a group


def uses_group(evidence: Iterable[PolicyEvidenceSource | PackedSource] | bytes | None) -> bool:
    """Return whether at least half of the estimate of a decision, by weight, comes from groups of more than one user.

    Parameters
    ----------
    evidence : iterable of EvidenceSource, bytes or None
        Evidence sources of the decision, or its packed response; None if the policy does not report sources.
    """
    if isinstance(evidence, bytes):
        explanation = unpack(evidence).explanation
        evidence = None if explanation is None else explanation.sources
    groups = [source for source in evidence or () if source.kind in GROUP_KINDS and (source.users or 0) > 1]
    return sum(source.weight for source in groups) >= MIN_GROUP_WEIGHT
