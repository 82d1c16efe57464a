"""Commands of clients, and batches of commands, which the engine handles together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.policy import ServablePolicy
from locb.service.errors import ProblemError
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import RewardResponse
from locb.service.store.schema import ObservationRow, Records


@dataclass(slots=True)
class RecommendCommand:
    """Request for a decision."""

    parsed: ParsedRequest
    now: float  # Unix time
    deferred: bool = False  # whether the wait for the reward starts only when the decision is activated


@dataclass(slots=True)
class RewardCommand:
    """Reward for a decision."""

    decision_id: str
    reward: float
    now: float


@dataclass(slots=True)
class ActivateCommand:
    """Activation of a deferred decision: the wait for its reward starts."""

    decision_id: str
    now: float


Command = RecommendCommand | RewardCommand | ActivateCommand


@dataclass(slots=True)
class CachedDecision:
    """The part of a decision that a later reward needs."""

    seq: int
    user_index: int
    context: bytes
    active_at: float | None
    kind: int | None = None  # of the last observation
    reward: float | None = None


class EncodedDecision(NamedTuple):
    """Decision with its response to the client, as JSON."""

    decision_id: str
    response: bytes


Outcome = EncodedDecision | RewardResponse | ProblemError | None


@dataclass(slots=True)
class Batch:
    """Commands that are committed together: rows for the log, changes of the engine, and an outcome per command.

    Attributes
    ----------
    records : Records
        Rows to write.
    outcomes : list of Outcome
        Outcome of each command, if the commit succeeds.
    decisions : dict of str to CachedDecision
        New decisions by id.
    evidence : list
        Evidence sources of each new decision, or its encoded response, for the statistics.
    responses : dict of str to (bytes, bytes)
        Packed request and response of each new decision by id.
    observed : dict of str to (CachedDecision, ObservationRow)
        New observations by decision id.
    activated : dict of str to (CachedDecision, float)
        Decisions that are activated, and when.
    erased_user : str or None
        User whose name and events are erased.
    rebuilt : (ServablePolicy, list of int) or None
        Policy that replaces the current one, and the indices of the erased users that it does not know.
    last_seq : int
        Seq of the last event.
    """

    records: Records = field(default_factory=Records)
    outcomes: list[Outcome] = field(default_factory=list)
    decisions: dict[str, CachedDecision] = field(default_factory=dict)
    evidence: list[Sequence[EvidenceSource] | bytes | None] = field(default_factory=list)
    responses: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    observed: dict[str, tuple[CachedDecision, ObservationRow]] = field(default_factory=dict)
    activated: dict[str, tuple[CachedDecision, float]] = field(default_factory=dict)
    erased_user: str | None = None
    rebuilt: tuple[ServablePolicy, list[int]] | None = None
    last_seq: int = 0
