"""Commands from clients, and the batches in which the engine handles them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.policy import ServablePolicy
from locb.recommender.events import CORRECTION, DEFAULT, MAX_KIND, MAX_REWARD, REWARD, ObservationRow, Records
from locb.recommender.interfaces import REQUEST_ID, Problems
from locb.recommender.requests import ParsedRequest


@dataclass(slots=True)
class RecommendCommand:
    """Command to recommend an arm and store the decision."""

    parsed: ParsedRequest
    now: float  # Unix time
    deferred: bool = False  # whether the wait for the reward starts only when the decision is activated
    request_id: str | None = field(default_factory=REQUEST_ID.get)

    def repeat(
        self, decision_id: str, stored: tuple[bytes, Any] | None, problems: Problems
    ) -> EncodedDecision | Exception:
        """Return the outcome of a repeated command.

        Parameters
        ----------
        decision_id : str
            Id of the decision.
        stored : (bytes, response) or None
            Packed request and response of the first command with this id, empty if they were dropped. None if it
            failed.
        problems : Problems
            Returns the exceptions.
        """
        if stored is None:
            return problems.first_request_failed(decision_id)
        if not stored[0]:
            return problems.payload_dropped(decision_id)
        if stored[0] != self.parsed.packed:
            return problems.decision_conflict(decision_id)
        return EncodedDecision(decision_id, stored[1])


@dataclass(slots=True)
class RewardCommand:
    """Command to store and learn the reward of a decision."""

    decision_id: str
    reward: float
    now: float  # Unix time
    aggregation: str = "none"  # for a second, different reward: "none" rejects it, "earliest" ignores it, "sum" adds it
    request_id: str | None = field(default_factory=REQUEST_ID.get)

    def observe(self, decision: CachedDecision, batch: Batch, problems: Problems) -> Outcome:
        """Add the observation of the reward to a batch, if there is a new observation, and return the outcome."""
        decision_id = self.decision_id
        if decision.active_at is None and decision_id not in batch.activated:
            return problems.not_activated(decision_id) if self.aggregation == "none" else None
        kind, reward = decision.kind, decision.reward
        if decision_id in batch.observed:
            observation = batch.observed[decision_id][1]
            kind, reward = observation.kind, observation.reward
        effect = self.apply_to(kind, reward, problems)
        if not isinstance(effect, tuple):
            return effect
        new_kind, new_reward = effect
        if not decision.context:  # dropped, so that the reward cannot be learned
            return problems.unknown_decision(decision_id)
        batch.observe(decision_id, decision, new_kind, reward or 0.0, new_reward, self.now)
        batch.request_ids[batch.last_seq] = self.request_id
        return RewardConfirmation(decision_id, new_reward, new_kind != REWARD)

    def apply_to(
        self, kind: int | None, reward: float | None, problems: Problems
    ) -> tuple[int, float] | RewardConfirmation | Exception:
        """Return the kind and the reward of the new observation, or the outcome if there is no new observation.

        Parameters
        ----------
        kind, reward : int and float, or None
            Kind and reward of the last observation of the decision; None if there is none.
        problems : Problems
            Returns the exceptions.
        """
        if kind is None or reward is None:
            return REWARD, self.reward
        if kind == DEFAULT:
            return CORRECTION, self.reward
        total = reward + self.reward if self.aggregation == "sum" else self.reward
        if total == reward or self.aggregation == "earliest":
            return RewardConfirmation(self.decision_id, reward, kind >= CORRECTION)
        if self.aggregation == "none":
            return problems.reward_conflict(self.decision_id, reward)
        if kind >= MAX_KIND:
            detail = f"decision {self.decision_id!r} has too many rewards: the maximum is {MAX_KIND}"
            return problems.invalid(detail, "value")
        if not abs(total) <= MAX_REWARD:
            limits = f"it must be from {-MAX_REWARD:g} to {MAX_REWARD:g}"
            detail = f"the sum of the rewards of decision {self.decision_id!r} would be {total:.15g}; {limits}"
            return problems.invalid(detail, "value")
        return max(CORRECTION, kind + 1), total


@dataclass(slots=True)
class ActivateCommand:
    """Command to activate a deferred decision: the wait for its reward starts."""

    decision_id: str
    now: float  # Unix time
    request_id: str | None = field(default_factory=REQUEST_ID.get)

    def activate(self, decision: CachedDecision, batch: Batch) -> None:
        """Add the activation to a batch, unless the decision is already active."""
        if decision.active_at is None and self.decision_id not in batch.activated:
            batch.records.activations.append((self.now, decision.seq))
            batch.activated[self.decision_id] = decision, self.now


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
    """Id of a decision, and the response: JSON in the service, a ``Recommendation`` in the library."""

    decision_id: str
    response: Any


@dataclass(slots=True)
class RewardConfirmation:
    """Confirmation that a reward is stored and learned."""

    decision_id: str
    reward: float
    corrected: bool = False  # whether this reward replaced a default reward


Outcome = EncodedDecision | RewardConfirmation | Exception | None


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
    responses : dict of str to (bytes, response)
        Packed request and response of each new decision by id.
    observed : dict of str to (CachedDecision, ObservationRow)
        Last new observation of each decision, by decision id.
    first_reward_times : list of float
        Unix times of the decisions that get their first reward or default reward.
    request_ids : dict of int to str or None
        Id of the request that sent the reward, by the sequence number of the observation.
    senders : list of (str or None)
        Id of the request that sent each command.
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
    responses: dict[str, tuple[bytes, Any]] = field(default_factory=dict)
    observed: dict[str, tuple[CachedDecision, ObservationRow]] = field(default_factory=dict)
    first_reward_times: list[float] = field(default_factory=list)
    request_ids: dict[int, str | None] = field(default_factory=dict)
    senders: list[str | None] = field(default_factory=list)
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
