"""Engine of a recommender or service: makes decisions, and updates the policy with committed observations.

A batch of commands is handled in three steps: ``prepare`` makes the decisions and collects the rows to write without
changing what was learned, the caller commits the rows, and ``apply`` learns from them. In a batch all decisions precede
all observations, so each decision depends on exactly the observations that precede it in the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locb.evaluation.clusters import Membership
from locb.policies import EvidenceSource, Explanation
from locb.policies.base.capabilities import explainer
from locb.policies.base.policy import ServablePolicy
from locb.recommender.commands import (
    ActivateCommand,
    Batch,
    CachedDecision,
    Command,
    EncodedDecision,
    Outcome,
    RecommendCommand,
    RewardCommand,
)
from locb.recommender.default_rewards import DefaultRewards
from locb.recommender.events import DEFAULT, DecisionRow, FoundDecision
from locb.recommender.interfaces import Encoder, Learner, Problems
from locb.recommender.requests import ParsedRequest
from locb.recommender.user_index import UserIndex

WITH_ALL_USERS = ("everyone", "population", "other")  # kinds of evidence sources that contain all users


class Engine:
    """Policy with its users and recent decisions, which makes decisions and learns rewards. Not thread-safe.

    Parameters
    ----------
    policy : ServablePolicy
        A policy with as many users as ``users`` has indices.
    users : UserIndex
        Index of each user in the policy.
    seq : int
        Sequence number of the last event that the policy has learned.
    encoder : Encoder
        Converts decisions to responses.
    problems : Problems
        Returns the exceptions of failed commands.
    learn : Learner
        Updates the policy with observations.
    default_rewards : DefaultRewards or None, default None
        Decisions that wait for a reward. With None, no default reward is learned.
    cache_size : int
        Maximum number of recent decisions in memory. Older decisions are read from the log.
    """

    def __init__(
        self,
        policy: ServablePolicy,
        users: UserIndex,
        seq: int,
        *,
        encoder: Encoder,
        problems: Problems,
        learn: Learner,
        default_rewards: DefaultRewards | None = None,
        cache_size: int,
    ) -> None:
        self.policy, self.users, self.seq = policy, users, seq
        self.default_rewards = default_rewards or DefaultRewards(None, 0.0)
        self.pending_erasure: list[int] = []  # indices of erased users that the policy still depends on
        self._explain_batch = explainer(policy)
        self._cache_size = cache_size
        self._encoder, self._problems, self._learn = encoder, problems, learn
        # Generated decision ids differ between processes. Within a process they ascend, so index updates are fast.
        self._id_prefix, self._id_count = secrets.token_hex(10), 0
        self._recent: dict[str, CachedDecision] = {}
        self._unlogged_indices = range(policy.n_users, policy.n_users)  # highest user indices: not in the log yet

    def ids_to_find(self, commands: Iterable[Command]) -> list[str]:
        """Return the ids of the decisions that the caller must read from the log and pass to ``prepare``."""
        wanted = []
        for command in commands:
            if isinstance(command, RecommendCommand):
                decision_id = command.parsed.request.decision_id
                if decision_id is not None and decision_id in self._recent:  # a retry: its response is in the log
                    wanted.append(decision_id)
            elif self._in_memory(command.decision_id) is None:
                wanted.append(command.decision_id)
        return wanted

    # Preparing: decisions are made, but the policy does not learn yet

    def prepare(self, commands: Sequence[Command], found: Iterable[FoundDecision] = ()) -> Batch:
        """Return a batch with the rows and outcomes of these commands.

        Call ``apply`` if the commit succeeds, else ``roll_back``, before the next batch is prepared.
        """
        batch = self._new_batch()
        known = {row.decision.id.decode(): row for row in found}
        batch.outcomes = [None] * len(commands)
        batch.senders = [command.request_id for command in commands]
        try:
            self._decide(commands, known, batch)
            for position, command in enumerate(commands):
                if isinstance(command, RewardCommand):
                    batch.outcomes[position] = self._reward(command, known, batch)
                elif isinstance(command, ActivateCommand):
                    batch.outcomes[position] = self._activate(command, known, batch)
        except BaseException:
            self.roll_back(batch)
            raise
        return batch

    def roll_back(self, batch: Batch) -> None:
        """Remove the users that a batch has created, because it is not committed.

        The policy cannot shrink: it keeps the user indices, which the next batch logs without a user.
        """
        for user in batch.new_users:
            self.users.reclaim(self.users.release(user))
        self._unlogged_indices = range(self._unlogged_indices.start, self.policy.n_users)
        self._encoder.clear_cache()

    @property
    def is_logged(self) -> bool:
        """Whether a replay of the log gives the current policy: False after ``roll_back``, until the next commit."""
        return self.policy.n_users == self._unlogged_indices.start

    def prepare_defaults(self, now: float, limit: int) -> Batch:
        """Return a batch with the observations of up to ``limit`` due default rewards. ``now`` is the Unix time."""
        reward = self.default_rewards.reward
        if reward is None:
            return Batch(last_seq=self.seq)
        batch = self._new_batch()
        for decision_id, decision in self.default_rewards.due(limit):
            batch.observe(decision_id, decision, DEFAULT, 0.0, reward, now)
        return batch

    def prepare_erasure(self, users: Mapping[str, int]) -> Batch:
        """Return the batch that removes users from the engine. ``users`` has the index of each user."""
        return Batch(erased=dict(users), last_seq=self.seq + len(users))

    def prepare_rebuild(self, policy: ServablePolicy, erased: list[int]) -> Batch:
        """Return the batch that replaces the policy by ``policy``, which was rebuilt without the ``erased`` indices."""
        return Batch(rebuilt=(policy, erased), last_seq=self.seq + 1)

    def preview(self, parsed: ParsedRequest) -> Any:
        """Return the response that a request would get now, with an empty decision id. No state changes.

        Raises the problem ``unknown_user`` for an unknown user.
        """
        user = parsed.request.user
        user_index = self.users.index_of(user)
        if user_index is None:
            raise self._problems.unknown_user(user)
        (explanation,) = self._explain_batch([user_index], [parsed.contexts])
        return self._encode("", parsed, user_index, explanation)[0]

    def _new_batch(self) -> Batch:
        """Return a batch that starts with the user indices that are in the policy but not in the log."""
        batch = Batch(last_seq=self.seq)
        for user_index in self._unlogged_indices:
            self._log_user(batch, user_index, None)
        return batch

    def _decide(self, commands: Sequence[Command], known: dict[str, FoundDecision], batch: Batch) -> None:
        """Handle all recommend commands: first create unknown users, then make all decisions."""
        new: dict[str, tuple[int, RecommendCommand, int]] = {}
        repeated: list[tuple[int, RecommendCommand, str]] = []
        for position, command in enumerate(commands):
            if not isinstance(command, RecommendCommand):
                continue
            request = command.parsed.request
            decision_id = request.decision_id
            if decision_id is None:
                self._id_count += 1
                decision_id = f"{self._id_prefix}{self._id_count:012x}"
            elif decision_id in known or decision_id in new:
                repeated.append((position, command, decision_id))
                continue
            user_index = self.users.index_of(request.user)
            if user_index is None:
                user_index = self._create_user(request.user, batch)
            new[decision_id] = position, command, user_index
        indices = [user_index for *_, user_index in new.values()]
        new_commands = [command for _, command, _ in new.values()]
        for (decision_id, (position, command, user_index)), explanation in zip(
            new.items(), self._explain(indices, new_commands) if new else (), strict=True
        ):
            batch.outcomes[position] = (
                explanation
                if isinstance(explanation, Exception)
                else self._add_decision(batch, decision_id, command, user_index, explanation)
            )
        for position, command, decision_id in repeated:
            stored = batch.responses.get(decision_id)
            if stored is None and (found := known.get(decision_id)) is not None and found.response is not None:
                stored = found.decision.request, found.response
            batch.outcomes[position] = command.repeat(decision_id, stored, self._problems)

    def _explain(self, indices: list[int], commands: Sequence[RecommendCommand]) -> Sequence[Explanation | Exception]:
        try:
            return self._explain_batch(indices, [command.parsed.contexts for command in commands])
        except Exception as error:  # a custom policy may raise any exception
            if len(indices) > 1:  # one at a time, so that only the failing requests get a problem
                return [self._explain([index], [own])[0] for index, own in zip(indices, commands, strict=True)]
            return [self._problems.policy_failed(error, commands[0].request_id)]

    def _add_decision(
        self, batch: Batch, decision_id: str, command: RecommendCommand, user_index: int, explanation: Explanation
    ) -> EncodedDecision:
        parsed, now = command.parsed, command.now
        response, packed = self._encode(decision_id, parsed, user_index, explanation)
        context = parsed.contexts[explanation.arm].tobytes()
        batch.last_seq += 1
        active_at = None if command.deferred else now
        row = batch.last_seq, decision_id.encode(), user_index, now, active_at, explanation.arm, parsed.packed, packed
        batch.records.decisions.append(DecisionRow(*row))
        # The response does not count unassigned indices as users; the explanation does.
        batch.evidence.append(packed if self.users.unassigned else explanation.sources)
        batch.decisions[decision_id] = CachedDecision(batch.last_seq, user_index, context, now, active_at)
        batch.responses[decision_id] = parsed.packed, response
        return EncodedDecision(decision_id, response)

    def _encode(self, name: str, parsed: ParsedRequest, user_index: int, found: Explanation) -> tuple[Any, bytes]:
        """Return the response, and the packed response to store."""
        memberships = found.memberships
        if memberships is None:  # a custom policy
            memberships = self.policy.memberships(user_index)
        if self.users.unassigned and found.sources:
            found = found._replace(sources=self._without_unassigned(found.sources, memberships))
        return self._encoder.encode(name, parsed, found, memberships)

    def _without_unassigned(
        self, sources: Sequence[EvidenceSource], memberships: Sequence[Membership]
    ) -> tuple[EvidenceSource, ...]:
        """Return the sources with user counts that do not include unassigned indices."""
        # Clusters that are not final, and the kinds ``WITH_ALL_USERS``, contain all unassigned indices.
        forming = {cluster.seed for cluster in memberships if cluster.seed is not None and cluster.returned_at is None}
        unassigned = self.users.unassigned
        return tuple(
            source._replace(users=source.users - unassigned)
            if source.kind in WITH_ALL_USERS or (source.kind == "cluster" and source.seed in forming)
            else source
            for source in sources
        )

    def _create_user(self, user: str, batch: Batch) -> int:
        user_index = self.users.assign(user)
        batch.new_users.append(user)
        self._encoder.clear_cache()
        if user_index in self._unlogged_indices:  # the row exists: see _new_batch
            rows, position = batch.records.users, self._unlogged_indices.index(user_index)
            rows[position] = (*rows[position][:2], user.encode())
            return user_index
        if user_index >= self.policy.n_users:
            self.policy.add_users(1)
        self._log_user(batch, user_index, user.encode())
        return user_index

    def _log_user(self, batch: Batch, user_index: int, user: bytes | None) -> None:
        batch.last_seq += 1
        batch.records.users.append((user_index, batch.last_seq, user))

    def _find(self, decision_id: str, known: dict[str, FoundDecision], batch: Batch) -> CachedDecision | None:
        decision = batch.decisions.get(decision_id) or self._in_memory(decision_id)
        if decision is None and decision_id in known:
            row, kind, reward, _ = known[decision_id]
            context = self._encoder.chosen_context(row)
            decision = CachedDecision(row.seq, row.user_index, context, row.time, row.active_at, kind, reward)
            # Cached by ``apply``: now it could evict a decision that another command of the batch needs.
            batch.decisions[decision_id] = decision
        return decision

    def _in_memory(self, decision_id: str) -> CachedDecision | None:
        """Return the only object of a decision, or None if it is not in memory. A second object would miss rewards."""
        return self._recent.get(decision_id) or self.default_rewards.get(decision_id)

    def _reward(self, command: RewardCommand, known: dict[str, FoundDecision], batch: Batch) -> Outcome:
        decision_id = command.decision_id
        decision = self._find(decision_id, known, batch)
        if decision is None:
            return self._problems.unknown_decision(decision_id)
        return command.observe(decision, batch, self._problems)

    def _activate(self, command: ActivateCommand, known: dict[str, FoundDecision], batch: Batch) -> Outcome:
        decision_id = command.decision_id
        decision = self._find(decision_id, known, batch)
        if decision is None or not decision.context:
            return self._problems.unknown_decision(decision_id)
        command.activate(decision, batch)
        return None

    # Applying: the batch is durable

    def apply(self, batch: Batch) -> None:
        """Apply a committed batch: learn its observations, and cache its decisions."""
        for user in batch.new_users:
            if user not in self.users:  # rolled back, while it was not known that the batch is in the log
                self.users.assign(user)  # in the same order, so with the same index
        if batch.records.users:
            self._unlogged_indices = range(self.policy.n_users, self.policy.n_users)
        for decision_id, decision in batch.decisions.items():
            self.cache(decision_id, decision)
        if batch.records.observations:
            self._learn(self.policy, batch.records.observations, batch.request_ids)
        for decision_id, (decision, observation) in batch.observed.items():
            decision.kind, decision.reward = observation.kind, observation.reward
            self.default_rewards.discard(decision_id)
        for decision_id, (decision, active_at) in batch.activated.items():
            decision.active_at = active_at
            self._await_reward(decision_id, decision)
        if batch.erased:
            self._apply_erasure(batch.erased, batch.last_seq)
        if batch.rebuilt is not None:
            self._apply_rebuild(*batch.rebuilt)
        self.seq = batch.last_seq

    def cache(self, decision_id: str, decision: CachedDecision) -> None:
        """Keep a recent decision in memory, and discard the oldest ones above the limit."""
        self._recent[decision_id] = decision
        self._await_reward(decision_id, decision)
        while len(self._recent) > self._cache_size:
            self._recent.pop(next(iter(self._recent)))

    def _await_reward(self, decision_id: str, decision: CachedDecision) -> None:
        if self.default_rewards.reward is not None and decision.active_at is not None and decision.kind is None:
            self.default_rewards.track(decision_id, decision)

    def _apply_erasure(self, users: Mapping[str, int], seq: int) -> None:
        """Remove names and decisions of users; the rebuild of the policy removes what was learned from them."""
        erased = set(users.values())
        for user, user_index in users.items():
            self.users.release(user)
            self.pending_erasure.append(user_index)
            self.default_rewards.discard_user(user_index, seq)
        self._encoder.clear_cache()
        self._recent = {name: own for name, own in self._recent.items() if own.user_index not in erased}

    def _apply_rebuild(self, policy: ServablePolicy, erased: Sequence[int]) -> None:
        self.policy = policy
        self._explain_batch = explainer(policy)
        for user_index in erased:
            self.pending_erasure.remove(user_index)
            self.users.reclaim(user_index)
