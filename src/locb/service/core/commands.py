"""Commands from clients, and the batches in which the engine handles them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.policy import ServablePolicy
from locb.service import errors
from locb.service.errors import REQUEST_ID, ProblemError
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import MAX_REWARD, RewardResponse
from locb.service.store.schema import CORRECTION, DEFAULT, MAX_KIND, REWARD, ObservationRow, Records


@dataclass(slots=True)
class RecommendCommand:
    """Command to recommend an arm and store the decision."""

    parsed: ParsedRequest
    now: float  # Unix time
    deferred: bool = False  # whether the wait for the reward starts only when the decision is activated
    request_id: str | None = field(default_factory=REQUEST_ID.get)

    def repeat(self, decision_id: str, stored: tuple[bytes, bytes] | None) -> EncodedDecision | ProblemError:
        """Return the outcome of a repeated command.

        Parameters
        ----------
        decision_id : str
            Id of the decision.
        stored : (bytes, bytes) or None
            Packed request and response of the first command with this id, empty if they were dropped. None if it
            failed.
        """
        if stored is None:
            failed = f"the first request for decision {decision_id!r} failed"
            return errors.internal(f"{failed}; see the messages on standard error of the service")
        if not stored[0]:
            return errors.payload_dropped(decision_id)
        if stored[0] != self.parsed.packed:
            return errors.decision_conflict(decision_id)
        return EncodedDecision(decision_id, stored[1])


@dataclass(slots=True)
class RewardCommand:
    """Command to store and learn the reward of a decision."""

    decision_id: str
    reward: float
    now: float  # Unix time
    aggregation: str = "none"  # for a second, different reward: "none" rejects it, "earliest" ignores it, "sum" adds it
    request_id: str | None = field(default_factory=REQUEST_ID.get)

    def apply_to(self, kind: int | None, reward: float | None) -> tuple[int, float] | RewardResponse | ProblemError:
        """Return the kind and the reward of the new observation, or the response if there is no new observation.

        Parameters
        ----------
        kind, reward : int and float, or None
            Kind and reward of the last observation of the decision; None if there is none.
        """
        if kind is None or reward is None:
            return REWARD, self.reward
        if kind == DEFAULT:
            return CORRECTION, self.reward
        total = reward + self.reward if self.aggregation == "sum" else self.reward
        if total == reward or self.aggregation == "earliest":
            return RewardResponse(self.decision_id, reward, kind >= CORRECTION)
        if self.aggregation == "none":
            return errors.reward_conflict(self.decision_id, reward)
        if kind >= MAX_KIND:
            detail = f"decision {self.decision_id!r} has too many rewards: the maximum is {MAX_KIND}"
            return errors.invalid(detail, "value")
        if not abs(total) <= MAX_REWARD:
            limits = f"it must be from {-MAX_REWARD:g} to {MAX_REWARD:g}"
            detail = f"the sum of the rewards of decision {self.decision_id!r} would be {total:.15g}; {limits}"
            return errors.invalid(detail, "value")
        return max(CORRECTION, kind + 1), total


@dataclass(slots=True)
class ActivateCommand:
    """Command to activate a deferred decision: the wait for its reward starts."""

    decision_id: str
    now: float  # Unix time
    request_id: str | None = field(default_factory=REQUEST_ID.get)


Command = RecommendCommand | RewardCommand | ActivateCommand


def requested_ids(commands: Iterable[Command]) -> list[str]:
    """Return the decision ids that clients chose themselves in recommend commands."""
    ids = (command.parsed.request.decision_id for command in commands if isinstance(command, RecommendCommand))
    return [decision_id for decision_id in ids if decision_id is not None]


@dataclass(slots=True)
class CachedDecision:
    """Fields of a decision that are needed to learn its reward."""

    seq: int  # sequence number of the decision in the log
    user_index: int
    context: bytes  # features of the chosen arm, float64
    time: float  # Unix time of the decision
    active_at: float | None  # Unix time at which the wait for the reward started; None if the decision is deferred
    kind: int | None = None  # of the last observation, see store.schema; None if there is none
    reward: float | None = None  # of the last observation


class EncodedDecision(NamedTuple):
    """Id of a decision, and the JSON response to the client."""

    decision_id: str
    response: bytes


Outcome = EncodedDecision | RewardResponse | ProblemError | None


@dataclass(slots=True)
class Batch:
    """Changes that are committed together: rows for the log, changes of the engine, and an outcome per command.

    Attributes
    ----------
    records : Records
        Rows to write to the log.
    outcomes : list of Outcome
        Outcome of each command, valid if the commit succeeds.
    new_users : list of str
        Users that the batch creates, in the order in which their indices were assigned.
    decisions : dict of str to CachedDecision
        New decisions, and decisions that were read from the log, by id.
    evidence : list
        Evidence sources of each new decision (the users whose rewards it is based on), or its packed response, from
        which the statistics read the sources.
    responses : dict of str to (bytes, bytes)
        Packed request and response of each new decision by id.
    observed : dict of str to (CachedDecision, ObservationRow)
        Last new observation of each decision, by decision id.
    first_reward_times : list of float
        Unix times of the decisions that get their first reward or default reward.
    request_ids : dict of int to str or None
        Id of the request that sent the reward, by the sequence number of the observation.
    activated : dict of str to (CachedDecision, float)
        Activated decisions by id, with the Unix time of the activation.
    erased : dict of str to int
        Users whose names and events are erased, with their indices.
    rebuilt : (ServablePolicy, list of int) or None
        Policy that replaces the current one, and the indices of the erased users that it was rebuilt without.
    last_seq : int
        Sequence number of the last event of the batch.
    """

    records: Records = field(default_factory=Records)
    outcomes: list[Outcome] = field(default_factory=list)
    new_users: list[str] = field(default_factory=list)
    decisions: dict[str, CachedDecision] = field(default_factory=dict)
    evidence: list[Sequence[EvidenceSource] | bytes | None] = field(default_factory=list)
    responses: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    observed: dict[str, tuple[CachedDecision, ObservationRow]] = field(default_factory=dict)
    first_reward_times: list[float] = field(default_factory=list)
    request_ids: dict[int, str | None] = field(default_factory=dict)
    activated: dict[str, tuple[CachedDecision, float]] = field(default_factory=dict)
    erased: dict[str, int] = field(default_factory=dict)
    rebuilt: tuple[ServablePolicy, list[int]] | None = None
    last_seq: int = 0

    def observe(
        self, decision_id: str, decision: CachedDecision, kind: int, previous_reward: float, reward: float, now: float
    ) -> None:
        """Add an observation of a decision."""
        self.last_seq += 1
        reward += 0.0  # turns −0.0 into 0.0, because SQLite does not keep the sign
        observation = ObservationRow(
            self.last_seq, decision.seq, decision.user_index, kind, previous_reward, reward, now, decision.context
        )
        self.records.observations.append(observation)
        self.observed[decision_id] = decision, observation
        if kind < CORRECTION:
            self.first_reward_times.append(decision.time)
