"""Commands from clients, their queue, and the batches in which the engine handles them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.policy import ServablePolicy
from locb.service import errors
from locb.service.errors import REQUEST_ID, ProblemError
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import MAX_REWARD, RewardResponse
from locb.service.store.schema import CORRECTION, DEFAULT, MAX_KIND, REWARD, ObservationRow, Records

MAX_DELAY = 0.002  # seconds for which a batch waits for further requests
UNDELAYED_COMMANDS = 32  # a batch of so many commands is not delayed: its fixed costs per command are small
_SMOOTHING = 0.125  # weight of the newest batch in the smoothed concurrency
_MIN_CONCURRENCY = 0.1  # requests at the same time, besides the first one, above which batches are delayed


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
            Packed request and response of the first command with this id; None if it failed.
        """
        if stored is None:
            return errors.internal(f"the first request for decision {decision_id!r} failed; see the log of the service")
        if stored[0] != self.parsed.packed:
            return errors.decision_conflict(decision_id)
        return EncodedDecision(decision_id, stored[1])


@dataclass(slots=True)
class RewardCommand:
    """Command to store and learn the reward of a decision."""

    decision_id: str
    reward: float
    now: float  # Unix time
    aggregation: str = "none"  # of a second, different reward: "none" rejects, "earliest" ignores, "sum" adds it
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
        Evidence sources of each new decision (the users whose rewards it is based on), or its encoded response, from
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
    erased_user : str or None
        User whose name and events are erased.
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
    erased_user: str | None = None
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


class QueuedCommand(NamedTuple):
    """Command that waits for its outcome."""

    command: Command
    future: asyncio.Future[Outcome]
    queued_at: float  # monotonic time


class CommandQueue:
    """Queue of commands, which are taken in batches, one batch at a time.

    Under sustained load a batch waits for further requests, because each commit has fixed costs. It waits until as many
    requests are queued as there are at the same time on average, but at most ``MAX_DELAY``. Requests of a single client
    that come one after the other are never delayed: while one of them is handled, no other arrives.

    Parameters
    ----------
    max_length : int
        Maximum number of queued commands; further commands are rejected with 503.
    """

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length
        self._commands: deque[QueuedCommand] = deque()
        self._requests = 0  # calls of ``put`` since the last batch was taken
        self._requests_in_batch = 0
        self._batch_since: float | None = None  # monotonic time of the oldest command of the batch that is handled
        self._concurrency = 1.0  # smoothed number of requests in a batch and of those that arrived while it was handled
        self._wake = asyncio.Event()
        self._wake_at = 1  # number of requests that ends ``wait`` or ``collect``

    def __len__(self) -> int:
        return len(self._commands)

    @property
    def oldest_wait(self) -> float:
        """Seconds since the oldest command that has no outcome yet was queued; 0 if there is none."""
        since = self._batch_since
        if since is None and self._commands:
            since = self._commands[0].queued_at
        return 0.0 if since is None else time.monotonic() - since

    def put(self, commands: Sequence[Command]) -> list[asyncio.Future[Outcome]]:
        """Queue the commands of a request, all or none of them, and return a future of the outcome of each.

        Raises
        ------
        ProblemError
            503, if the queue cannot take all commands.
        """
        if len(self._commands) + len(commands) > self._max_length:
            raise errors.queue_full(len(self._commands), len(commands), self._max_length)
        loop, now = asyncio.get_running_loop(), time.monotonic()
        queued = [QueuedCommand(command, loop.create_future(), now) for command in commands]
        self._commands.extend(queued)
        self._requests += 1
        if self._requests >= self._wake_at or len(self._commands) >= UNDELAYED_COMMANDS:
            self._wake.set()
        return [future for _, future, _ in queued]

    def wake(self) -> None:
        """End a wait for commands."""
        self._wake.set()

    async def wait(self, timeout: float | None) -> None:
        """Wait until there are commands, until ``wake`` is called, or for ``timeout`` seconds."""
        self._wake.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)

    async def collect(self) -> None:
        """Under sustained load, wait for further requests."""
        expected, before = math.ceil(self._concurrency - _MIN_CONCURRENCY), self._requests
        if not self._commands or before >= expected or len(self._commands) >= UNDELAYED_COMMANDS:
            return
        self._wake.clear()
        self._wake_at = expected
        timer = asyncio.get_running_loop().call_later(MAX_DELAY, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._wake_at = 1
        if self._requests == before:  # the load has probably ended
            self._concurrency = (self._concurrency + before) / 2

    def take(self, limit: int) -> list[QueuedCommand]:
        """Remove and return up to ``limit`` commands, the batch that is handled until ``end_batch`` is called."""
        taken = [self._commands.popleft() for _ in range(min(len(self._commands), limit))]
        self._batch_since = taken[0].queued_at if taken else None
        self._requests_in_batch, self._requests = self._requests, 0
        return taken

    def refuse(self, problem: ProblemError) -> None:
        """Remove all commands, with a problem as their outcome."""
        while self._commands:
            future = self._commands.popleft().future
            if not future.done():
                future.set_result(problem)

    def end_batch(self) -> None:
        """Note that the batch has been handled.

        Call this before the outcomes of the batch are set: the requests that follow a response are not concurrent.
        """
        self._batch_since = None
        self._concurrency += _SMOOTHING * (self._requests_in_batch + self._requests - self._concurrency)
