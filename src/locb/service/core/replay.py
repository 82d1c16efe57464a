"""Replay of the event log. The same observations in the same order give the same policy, bit for bit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from locb.policies.base.policy import ServablePolicy
from locb.service.core.observations import learn
from locb.service.store.log import EventLog

OBSERVATIONS_PER_STEP = 2_000  # learned in one step, which takes a few milliseconds; no request is served in that time


def replay(log: EventLog, policy: ServablePolicy, after: int, until: int | None = None) -> Iterator[int]:
    """Apply the events with ``after`` < seq ≤ ``until`` to a policy, and yield the seq reached after each step."""
    new_users = [seq for index, seq, _ in log.users() if index >= policy.n_users and (until is None or seq <= until)]
    for chunk in log.observations(after, until):
        yield from _learn_chunk(policy, chunk, new_users)
    if new_users:
        policy.add_users(len(new_users))
        yield new_users[-1]


def _learn_chunk(policy: ServablePolicy, chunk: list[Any], new_users: list[int]) -> Iterator[int]:
    """Learn runs of observations between new users; the users that are added are removed from ``new_users``."""
    seqs = np.array([observation.seq for observation in chunk])
    arrivals = np.array([seq for seq in new_users if seq < seqs[-1]], dtype=np.int64)
    steps = np.arange(0, len(chunk) + 1, OBSERVATIONS_PER_STEP)
    edges = np.unique(np.concatenate([np.searchsorted(seqs, arrivals), steps, [len(chunk)]])).tolist()
    for start, stop in pairwise(edges):
        arrived = bisect_left(new_users, chunk[start].seq)
        if arrived:
            policy.add_users(arrived)
            del new_users[:arrived]
        learn(policy, chunk[start:stop])
        yield chunk[stop - 1].seq
