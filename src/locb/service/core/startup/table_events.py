"""Events of a log in memory: its decisions and rewards, as the rows of the event log that a new store starts with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.recommender.events import REWARD, DecisionRow, ObservationRow, Records


@dataclass
class TableEvents:
    """Decisions and observations of a log, in arrays. A new user is created before the first decision of the user.

    Attributes
    ----------
    names : sequence of str
        User ids.
    users : (n,) ints
        User of each decision, an index of ``names``.
    ids : callable
        Returns the ids of the decisions with the given indices.
    times : (n,) floats
        Unix time of each decision.
    chosen : (n,) ints
        Position of the chosen arm of each decision.
    order : (n,) ints
        Sort key of each decision. All sort keys are different.
    decisions : (m,) ints
        Decision of each observation, an index of the arrays above.
    observation_order : (m,) ints
        Sort key of each observation, which is larger than that of its decision.
    rewards, previous, observation_times : (m,) floats
        Reward of each observation, the reward that it replaces (0 if there is none), and its Unix time.
    kinds : (m,) ints
        Kind of each observation, see ``store.schema``.
    features : (r, d) floats
        Feature vectors of arms.
    rows : (m,) ints
        Row of ``features`` of each observation.
    """

    names: Sequence[str]
    users: Ints
    ids: Callable[[Ints], list[bytes]]
    times: Floats
    chosen: Ints
    order: Ints
    decisions: Ints
    observation_order: Ints
    rewards: Floats
    previous: Floats
    observation_times: Floats
    kinds: Ints
    features: Floats
    rows: Ints

    def batches(self, size: int) -> Iterator[Records]:
        """Yield the events in their order, in batches of about ``size`` events, with sequence numbers from 1."""
        count = len(self.users)
        sorted_events = np.argsort(np.concatenate([self.order, self.observation_order]), kind="stable")
        is_decision = sorted_events < count
        # Users get their indices in the order of their first decisions.
        ordered = self.users[sorted_events[is_decision]]
        present, first = np.unique(ordered, return_index=True)
        index_of = np.full(len(self.names), -1, np.int64)
        index_of[present[np.argsort(first)]] = np.arange(len(present))
        creates = np.zeros(len(sorted_events), bool)
        creates[np.flatnonzero(is_decision)[first]] = True
        seqs = np.arange(1, len(sorted_events) + 1) + np.cumsum(creates)
        seq_of = np.empty(count, np.int64)
        seq_of[sorted_events[is_decision]] = seqs[is_decision]
        self._index_of, self._seq_of = index_of, seq_of
        for start in range(0, len(sorted_events), size):
            part = slice(start, start + size)
            yield self._records(sorted_events[part], is_decision[part], creates[part], seqs[part])

    def _records(self, events: Ints, is_decision: Any, creates: Any, seqs: Ints) -> Records:
        new = events[creates]
        names = [self.names[user].encode() for user in self.users[new].tolist()]
        indices = self._index_of[self.users[new]].tolist()
        users = list(zip(indices, (seqs[creates] - 1).tolist(), names, strict=True))
        made = events[is_decision]
        times = self.times[made].tolist()
        decisions = zip(
            seqs[is_decision].tolist(), self.ids(made), self._index_of[self.users[made]].tolist(), times, times,
            self.chosen[made].tolist(), repeat(b""), repeat(b""), strict=False,
        )  # fmt: skip
        observed = events[~is_decision] - len(self.users)
        of = self.decisions[observed]
        observations = zip(
            seqs[~is_decision].tolist(), self._seq_of[of].tolist(), self._index_of[self.users[of]].tolist(),
            self.kinds[observed].tolist(), self.previous[observed].tolist(), self.rewards[observed].tolist(),
            self.observation_times[observed].tolist(), split_rows(self.features[self.rows[observed]]), strict=True,
        )  # fmt: skip
        return Records(users, [*map(DecisionRow._make, decisions)], [*map(ObservationRow._make, observations)])


def split_rows(features: Floats) -> list[bytes]:
    """Return each row of an array as bytes."""
    width = 8 * features.shape[1]
    joined = np.ascontiguousarray(features, np.float64).tobytes()
    return [joined[start : start + width] for start in range(0, len(joined), width)]


def immediate_rewards(
    names: Sequence[str], users: Ints, ids: Callable[[Ints], list[bytes]], times: Floats, chosen: Ints,
    rewards: Floats, features: Floats, rows: Ints,
) -> TableEvents:  # fmt: skip
    """Return the events of decisions (n) whose rewards follow at once; a reward of NaN means that there is none.

    ``rows`` (n,) are the rows of ``features`` of the chosen arms. The other arguments are those of ``TableEvents``.
    """
    count, rewarded = len(users), np.flatnonzero(np.isfinite(rewards))
    return TableEvents(
        names,
        users,
        ids,
        times,
        chosen,
        order=2 * np.arange(count),
        decisions=rewarded,
        observation_order=2 * rewarded + 1,
        rewards=rewards[rewarded] + 0.0,  # turns −0.0 into 0.0, because SQLite does not keep the sign
        previous=np.zeros(len(rewarded)),
        observation_times=times[rewarded],
        kinds=np.full(len(rewarded), REWARD),
        features=features,
        rows=rows[rewarded],
    )
