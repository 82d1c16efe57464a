"""One policy, its users and its decisions: what is asked becomes records, and what is on disk becomes learned.

A batch of requests is prepared (which changes nothing that was learned), committed by the caller, then applied. In a
batch all decisions stand before all lessons, so that each decision rests on exactly the lessons before it in the log.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from locb.common.arrays import Floats
from locb.policies import Explanation
from locb.policies.base.capabilities import explainer
from locb.policies.base.policy import ServablePolicy
from locb.service.core.commands import (
    ActivateCommand,
    Batch,
    CachedDecision,
    Command,
    EncodedDecision,
    RecommendCommand,
    RewardCommand,
)
from locb.service.core.decision_encoding import DecisionEncoder
from locb.service.core.observations import learn
from locb.service.core.user_index import UserIndex
from locb.service.errors import ProblemError
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import RewardResponse
from locb.service.stats.event_stats import response_uses_group, uses_group
from locb.service.store.rows import DecisionRow, FoundDecision, ObservationRow
from locb.service.store.schema import CORRECTION, DEFAULT, REWARD

_log = logging.getLogger("locb.service")
REMEMBERED = 100_000  # decisions kept at hand; older ones are found in the log


class Engine:
    """Prepares and applies batches. Not for several threads at once.

    Parameters
    ----------
    policy : Policy
        With as many users as the directory has places.
    directory : Directory
        Who is where.
    seq : int
        The place in the log of the last event that the policy knows.
    default_reward : float
        What is learned when no reward came in time; nothing if None.
    reward_wait : float
        Seconds to wait for a reward before the default is learned.
    """

    def __init__(
        self,
        policy: ServablePolicy,
        users: UserIndex,
        seq: int,
        *,
        default_reward: float | None = None,
        reward_wait: float = 600.0,
        remembered: int = REMEMBERED,
    ) -> None:
        self.policy = policy
        self._explain_batch = explainer(policy)
        self.users = users
        self.seq = seq
        self.default_reward = default_reward
        self.reward_wait = reward_wait
        self._room = remembered
        self._answers = DecisionEncoder(users, policy.dim)
        # Names of decisions that were given none: unlike those of any other start, and in order, which indexes like.
        self._prefix, self._named = secrets.token_hex(10), 0
        self._at_hand: dict[str, CachedDecision] = {}
        # Users whom the policy knows and the log does not yet: kept when a commit fails, and logged by the next.
        self._arrived: list[tuple[int, bytes | None, bool]] = []  # place, name, whether the policy grew for them
        self.pending_erasure: list[int] = []  # places of users who are erased, in a policy that still rests on them
        self._awaited: dict[str, CachedDecision] = {}  # decisions without a lesson, the oldest first

    # What must be looked up before a batch can be prepared

    def unknown(self, tasks: Iterable[Command]) -> list[str]:
        """Names of decisions that these requests are about and that are to be found in the log first."""
        wanted = []
        for task in tasks:
            if isinstance(task, RecommendCommand):
                name = task.question.request.decision_id
                if name is not None and name in self._at_hand:  # asked again: its answer is in the log
                    wanted.append(name)
            elif task.name not in self._at_hand:
                wanted.append(task.name)
        return wanted

    def named(self, tasks: Iterable[Command]) -> list[str]:
        """Names that these requests give to decisions."""
        names = (task.question.request.decision_id for task in tasks if isinstance(task, RecommendCommand))
        return [name for name in names if name is not None]

    # Preparing: decisions are made, nothing is learned

    def prepare(self, tasks: Sequence[Command], found: Iterable[FoundDecision] = ()) -> Batch:
        """Records and outcomes of these requests, if they are committed next."""
        batch = self._new_batch()
        known = {row.decision.id.decode(): row for row in found}
        outcomes: list[EncodedDecision | RewardResponse | ProblemError | None] = [None] * len(tasks)
        self._decide(tasks, known, batch, outcomes)
        for t, task in enumerate(tasks):
            if isinstance(task, RewardCommand):
                outcomes[t] = self._pay(task, known, batch)
            elif isinstance(task, ActivateCommand):
                outcomes[t] = self._activate(task, known, batch)
        batch.outcomes = outcomes
        return batch

    def prepare_defaults(self, now: float, limit: int) -> Batch:
        """Lessons of default rewards that are due."""
        if self.default_reward is None:
            return Batch(last=self.seq)
        batch = self._new_batch()
        for name, decision in self._awaited.items():
            if len(batch.taught) == limit:
                break
            if decision.active_at is not None and decision.active_at + self.reward_wait > now:
                break
            if decision.active_at is not None and decision.kind is None:
                self._teach(batch, name, decision, DEFAULT, 0.0, self.default_reward, now)
        return batch

    def _new_batch(self) -> Batch:
        """Begins with who came and is not in the log yet: the policy has them, and all it learns next rests on that."""
        batch = Batch(last=self.seq)
        for arrived in self._arrived:
            self._log_arrival(batch, *arrived)
        return batch

    def _decide(
        self, tasks: Sequence[Command], known: dict[str, FoundDecision], batch: Batch, outcomes: list[Any]
    ) -> None:
        """Answer who asks for decisions: first all who are new are let in, then all decisions are made."""
        new: dict[str, tuple[int, RecommendCommand, int]] = {}
        again: list[tuple[int, RecommendCommand, str]] = []
        for t, task in enumerate(tasks):
            if not isinstance(task, RecommendCommand):
                continue
            name = task.question.request.decision_id
            if name is None:
                self._named += 1
                name = f"{self._prefix}{self._named:012x}"
            elif name in known or name in new:
                again.append((t, task, name))
                continue
            user = task.question.request.user
            user_index = self.users.index_of(user)
            new[name] = t, task, self._welcome(user, batch) if user_index is None else user_index
        places, contexts = (
            [user_index for *_, user_index in new.values()],
            [task.question.contexts for _, task, _ in new.values()],
        )
        for (name, (t, task, user_index)), told in zip(new.items(), self._explain(places, contexts), strict=True):
            outcomes[t] = told if isinstance(told, ProblemError) else self._decided(name, task, user_index, told, batch)
        for t, task, name in again:
            outcomes[t] = self._repeated(name, task, known, batch)

    def _explain(self, places: list[int], contexts: list[Floats]) -> Sequence[Explanation | ProblemError]:
        try:
            return self._explain_batch(places, contexts)
        except Exception as error:  # a policy of somebody's own may raise anything
            if len(places) > 1:  # the others are to have their answers
                return [self._explain([user_index], [own])[0] for user_index, own in zip(places, contexts, strict=True)]
            _log.exception("the policy gave no answer")
            return [ProblemError(500, "internal", f"the policy gave no answer: {type(error).__name__}")]

    def _decided(
        self,
        name: str,
        task: RecommendCommand,
        user_index: int,
        told: Explanation,
        batch: Batch,
    ) -> EncodedDecision:
        question = task.question
        answer = self._answers.encode(name, question, told, self.policy.memberships(user_index))
        context = question.contexts[told.arm].tobytes()
        batch.last += 1
        active_at = None if task.deferred else task.now
        batch.records.decisions.append(
            DecisionRow(
                batch.last, name.encode(), user_index, task.now, active_at, told.arm, context, question.packed, answer
            )
        )
        # Where there are places that nobody has, sources are told without them.
        batch.grouped.append(response_uses_group(answer) if self.users.unassigned else uses_group(told.sources))
        batch.made[name] = CachedDecision(batch.last, user_index, context, active_at)
        batch.answers[name] = question.packed, answer
        return EncodedDecision(name, answer)

    def _repeated(
        self, name: str, task: RecommendCommand, known: dict[str, FoundDecision], batch: Batch
    ) -> EncodedDecision | ProblemError:
        """What was answered before under this name, in the log or in this batch."""
        before = batch.answers.get(name)
        if before is None and name in known:
            before = known[name].decision.request, known[name].decision.response
        if before is None:
            return ProblemError(500, "internal", f"there is no answer to decision {name!r}, which was asked for before")
        if before[0] != task.question.packed:
            return ProblemError(409, "conflict", f"decision {name!r} was asked for before, in other words")
        return EncodedDecision(name, before[1])

    def _welcome(self, user: str, batch: Batch) -> int:
        user_index = self.users.assign(user)
        self._answers.forget()
        grows = user_index >= self.policy.n_users
        if grows:
            self.policy.add_users(1)
        self._arrived.append((user_index, user.encode(), grows))
        self._log_arrival(batch, *self._arrived[-1])
        return user_index

    def _log_arrival(self, batch: Batch, user_index: int, user: bytes | None, grows: bool) -> None:
        # Who takes a place that the policy has already changes nothing in it, and is no event of the log's order.
        batch.last += grows
        batch.records.users.append((user_index, batch.last, user))

    def _find(self, name: str, known: dict[str, FoundDecision], batch: Batch) -> CachedDecision | None:
        decision = batch.made.get(name) or self._at_hand.get(name)
        if decision is None and name in known:
            row, kind, reward = known[name]
            decision = CachedDecision(row.seq, row.user_index, row.context, row.active_at, kind, reward)
            self._remember(name, decision)
        return decision

    def _pay(self, task: RewardCommand, known: dict[str, FoundDecision], batch: Batch) -> RewardResponse | ProblemError:
        decision = self._find(task.name, known, batch)
        if decision is None:
            return ProblemError(404, "unknown-decision", f"there is no decision {task.name!r}")
        kind, reward = decision.kind, decision.reward
        if task.name in batch.taught:
            observation = batch.taught[task.name][1]
            kind, reward = observation.kind, observation.reward
        if kind in (REWARD, CORRECTION):
            if reward == task.reward:
                return RewardResponse(task.name, task.reward, kind == CORRECTION)
            return ProblemError(409, "conflict", f"decision {task.name!r} was rewarded with {reward:g} before")
        if kind == DEFAULT:
            assert reward is not None  # noqa: S101 - a lesson has one
            self._teach(batch, task.name, decision, CORRECTION, reward, task.reward, task.now)
            return RewardResponse(task.name, task.reward, True)
        self._teach(batch, task.name, decision, REWARD, 0.0, task.reward, task.now)
        return RewardResponse(task.name, task.reward)

    def _teach(
        self, batch: Batch, name: str, decision: CachedDecision, kind: int, learned: float, reward: float, now: float
    ) -> None:
        batch.last += 1
        reward += 0.0  # no −0: SQLite does not keep its sign
        observation = ObservationRow(
            batch.last, decision.seq, decision.user_index, kind, learned, reward, now, decision.context
        )
        batch.records.observations.append(observation)
        batch.taught[name] = decision, observation

    def _activate(self, task: ActivateCommand, known: dict[str, FoundDecision], batch: Batch) -> ProblemError | None:
        decision = self._find(task.name, known, batch)
        if decision is None:
            return ProblemError(404, "unknown-decision", f"there is no decision {task.name!r}")
        if decision.active_at is None and task.name not in batch.activated:
            batch.records.activations.append((task.now, decision.seq))
            batch.activated[task.name] = decision, task.now
        return None

    # Applying: it is on disk

    def apply(self, batch: Batch) -> None:
        """Learn what was committed."""
        for name, decision in batch.made.items():
            self._remember(name, decision)
        learn(self.policy, batch.records.observations)
        for name, (decision, observation) in batch.taught.items():
            decision.kind, decision.reward = observation.kind, observation.reward
            self._awaited.pop(name, None)
        for name, (decision, when) in batch.activated.items():
            decision.active_at = when
            if decision.kind is None:
                self._await(name, decision)
        del self._arrived[: len(batch.records.users)]
        if batch.forgotten is not None:
            self._forget(batch.forgotten)
        if batch.renewal is not None:
            self._renew(*batch.renewal)
        self.seq = batch.last

    def _remember(self, name: str, decision: CachedDecision) -> None:
        self._at_hand[name] = decision
        if decision.active_at is not None and decision.kind is None:
            self._await(name, decision)
        while len(self._at_hand) > self._room:
            self._at_hand.pop(next(iter(self._at_hand)))

    def _await(self, name: str, decision: CachedDecision) -> None:
        if self.default_reward is not None:
            self._awaited.setdefault(name, decision)

    @property
    def pending_rewards(self) -> int:
        """Decisions at hand from which nothing was learned yet."""
        return sum(decision.kind is None for decision in self._at_hand.values())

    def preview(self, question: ParsedRequest) -> bytes:
        """The answer to a question if it were asked now, under the name ""; nothing changes."""
        user_index = self.users.index_of(question.request.user)
        if user_index is None:
            raise ProblemError(404, "unknown-user", f"there is no user {question.request.user!r}")
        (told,) = self._explain_batch([user_index], [question.contexts])
        return self._answers.encode("", question, told, self.policy.memberships(user_index))

    def await_all(self, decisions: Iterable[tuple[str, CachedDecision]]) -> None:
        """Wait for the rewards of these, found in the log."""
        for name, decision in decisions:
            self._await(name, decision)

    def prepare_forgetting(self, user: str) -> Batch:
        """The batch in which a user is erased."""
        return Batch(forgotten=user, last=self.seq + 1)

    def _forget(self, user: str) -> None:
        """Let a user's name and decisions go; what was learned from them goes when the policy is made anew."""
        user_index = self.users.release(user)
        self.pending_erasure.append(user_index)
        self._answers.forget()
        self._arrived = [(there, None if there == user_index else name, grew) for there, name, grew in self._arrived]
        for kept in (self._at_hand, self._awaited):
            for name in [name for name, decision in kept.items() if decision.user_index == user_index]:
                del kept[name]

    def prepare_renewal(self, policy: ServablePolicy, pending_erasure: list[int]) -> Batch:
        """The batch from which on a policy serves that never knew the users of these places."""
        return Batch(renewal=(policy, pending_erasure), last=self.seq + 1)

    def _renew(self, policy: ServablePolicy, pending_erasure: Sequence[int]) -> None:
        self.policy = policy
        self._explain_batch = explainer(policy)
        for user_index in pending_erasure:
            self.pending_erasure.remove(user_index)
            self.users.reclaim(user_index)
