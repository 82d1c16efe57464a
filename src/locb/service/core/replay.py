"""From the log to a policy: the same lessons in the same order give the same policy, to the last bit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from operator import itemgetter
from typing import Any, cast

import numpy as np

from locb.policies import Policy, policy_spec
from locb.policies.base.capabilities import SupportsNewUsers
from locb.policies.base.policy import ServablePolicy
from locb.service.core.observations import learn
from locb.service.request_parsing import parse_stored_request
from locb.service.store.log import EventLog

AT_ONCE = 2_000  # lessons learned in one step: a few milliseconds, in which no request is served


@dataclass(frozen=True, slots=True)
class Model:
    """Which policy a service serves from: with these, a log and nothing else, it can be made anew."""

    policy: str
    dim: int
    places: int  # users at the start, before anybody came for them
    parameters: dict[str, Any]

    def build(self) -> ServablePolicy:
        """Return the untrained policy.

        Raises
        ------
        ValueError
            If the policy does not accept new users.
        """
        spec = policy_spec(self.policy)
        policy = spec.make_for_service(n_users=self.places, dim=self.dim, parameters=self.parameters)
        if not isinstance(policy, SupportsNewUsers):
            raise ValueError(f"--policy {self.policy} must have a method add_users: users arrive one by one")
        return cast(ServablePolicy, policy)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A decision that a replay makes otherwise than it was made."""

    seq: int
    chosen: int
    again: int


def replay(log: EventLog, policy: ServablePolicy, after: int, until: int | None = None) -> Iterator[int]:
    """Teach the policy what stands in the log after a place, and yield the place reached, often."""
    growth = [seq for index, seq, _ in log.users() if index >= policy.n_users and (until is None or seq <= until)]
    for chunk in log.observations(after, until):
        yield from _learn_chunk(policy, chunk, growth)
    if growth:
        policy.add_users(len(growth))
        yield growth[-1]


def _learn_chunk(policy: ServablePolicy, chunk: list[Any], growth: list[int]) -> Iterator[int]:
    """Learn runs of lessons between users who come; ``growth`` loses the users who came."""
    order = np.array([observation.seq for observation in chunk])
    come = np.array([seq for seq in growth if seq < order[-1]], dtype=np.int64)
    every = np.arange(0, len(chunk) + 1, AT_ONCE)
    edges = np.unique(np.concatenate([np.searchsorted(order, come), every, [len(chunk)]])).tolist()
    for start, stop in pairwise(edges):
        arrived = bisect_left(growth, chunk[start].seq)
        if arrived:
            policy.add_users(arrived)
            del growth[:arrived]
        learn(policy, chunk[start:stop])
        yield chunk[stop - 1].seq


def recheck(log: EventLog, model: Model, since: int) -> tuple[Policy, list[Mismatch]]:
    """Replay the whole log on a new policy, and make every decision after ``since`` again.

    Returns
    -------
    The policy at the end of the log, and the decisions that came out otherwise.
    """
    policy = model.build()
    wrong: list[Mismatch] = []
    growth = sorted(seq for user_index, seq, _ in log.users() if user_index >= policy.n_users)
    events = merge(  # read as they are needed: requests and answers are large
        ((seq, "user", None) for seq in growth),
        ((row.seq, "decision", row) for chunk in log.decisions(since) for row in chunk),
        ((row.seq, "observation", row) for chunk in log.observations(0) for row in chunk),
        key=itemgetter(0),
    )
    for seq, kind, row in events:
        if kind == "user":
            policy.add_users(1)
        elif kind == "decision":
            again = policy.recommend(row.user_index, parse_stored_request(row.request, model.dim).contexts)
            if again != row.chosen:
                wrong.append(Mismatch(seq, row.chosen, again))
        else:
            learn(policy, [row])
    return policy, wrong
