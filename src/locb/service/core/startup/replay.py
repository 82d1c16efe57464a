"""Replay of the event log. The same observations in the same order give the same policy, bit for bit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from locb.policies.base.policy import ServablePolicy
from locb.service.core.learning import learn
from locb.service.store.log import EventLog

OBSERVATIONS_PER_STEP = 2_000  # with ELOC, a step takes about 30 ms, in which no other Python thread runs


def replay(
    log: EventLog,
    policy: ServablePolicy,
    after: int,
    until: int | None = None,
    observations_per_step: int = OBSERVATIONS_PER_STEP,
) -> Iterator[int]:
    """Apply the events with ``after`` < seq ≤ ``until`` to a policy, in steps.

    Parameters
    ----------
    log : EventLog
        The log.
    policy : ServablePolicy
        Policy that has learned the events up to ``after``.
    after : int
        Sequence number (seq) of the event before the first one to apply.
    until : int or None, default None
        Sequence number of the last event to apply; None means the end of the log.
    observations_per_step : int, default 2,000
        Maximum number of observations per step. The result does not depend on it.

    Yields
    ------
    int
        Sequence number of the last event that was applied, after each step.
    """
    new_users = [seq for index, seq, _ in log.users() if index >= policy.n_users and (until is None or seq <= until)]
    for chunk in log.observations(after, until):
        yield from learn_chunk(policy, chunk, new_users, observations_per_step)
    if new_users:
        policy.add_users(len(new_users))
        yield new_users[-1]


def learn_chunk(
    policy: ServablePolicy, chunk: list[Any], new_users: list[int], observations_per_step: int = OBSERVATIONS_PER_STEP
) -> Iterator[int]:
    """Learn observations, and add each new user at its position in the log. Added users are removed from ``new_users``.

    Yields the sequence number of the last observation after each step.
    """
    seqs = np.array([observation.seq for observation in chunk])
    arrivals = np.array([seq for seq in new_users if seq < seqs[-1]], dtype=np.int64)
    steps = np.arange(0, len(chunk) + 1, observations_per_step)
    edges = np.unique(np.concatenate([np.searchsorted(seqs, arrivals), steps, [len(chunk)]])).tolist()
    for start, stop in pairwise(edges):
        arrived = bisect_left(new_users, chunk[start].seq)
        if arrived:
            policy.add_users(arrived)
            del new_users[:arrived]
        learn(policy, chunk[start:stop])
        yield chunk[stop - 1].seq
