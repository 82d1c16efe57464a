"""Requests that are taken in together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from locb.policies.base.policy import ServablePolicy
from locb.service.errors import ProblemError
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import RewardResponse
from locb.service.store.rows import ObservationRow, Records


@dataclass(slots=True)
class RecommendCommand:
    """A request for a decision."""

    question: ParsedRequest
    now: float
    deferred: bool = False  # no reward is waited for until the decision is activated


@dataclass(slots=True)
class RewardCommand:
    """A reward for a decision."""

    name: str
    reward: float
    now: float


@dataclass(slots=True)
class ActivateCommand:
    """From now on a reward is waited for."""

    name: str
    now: float


Command = RecommendCommand | RewardCommand | ActivateCommand


@dataclass(slots=True)
class CachedDecision:
    """A decision at hand: what a reward needs to know."""

    seq: int
    user_index: int
    context: bytes
    active_at: float | None
    kind: int | None = None  # of the last lesson
    reward: float | None = None


class EncodedDecision(NamedTuple):
    """A decision that was answered, now or before."""

    decision_id: str
    response: bytes


@dataclass(slots=True)
class Batch:
    """Prepared requests: what to commit, and what to tell each if that succeeds."""

    records: Records = field(default_factory=Records)
    outcomes: list[EncodedDecision | RewardResponse | ProblemError | None] = field(default_factory=list)
    made: dict[str, CachedDecision] = field(default_factory=dict)
    grouped: list[bool] = field(default_factory=list)  # of each decision made: whether it rests on a group
    answers: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)  # request and answer
    taught: dict[str, tuple[CachedDecision, ObservationRow]] = field(default_factory=dict)
    activated: dict[str, tuple[CachedDecision, float]] = field(default_factory=dict)
    forgotten: str | None = None  # a user whose name and events are erased
    renewal: tuple[ServablePolicy, list[int]] | None = None  # a policy that never knew the users of these places
    last: int = 0  # place in the log of its last event
