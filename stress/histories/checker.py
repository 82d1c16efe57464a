"""Checker of histories: a pure function that compares the record of the clients with the event log."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from locb.recommender.events import CORRECTION, DEFAULT, REWARD
from stress.histories.record import History, Kind, Logged, LoggedDecision, LoggedObservation, Request

EXPECTED_STATUSES: dict[Kind, tuple[int, ...]] = {
    "decide": (0, 200, 201, 429, 503),
    "reward": (0, 200, 204, 404, 409, 429, 503),
    "activate": (0, 204, 404, 429, 503),
    "erase": (0, 200, 404, 429, 503),
}


class Violation(NamedTuple):
    """Broken guarantee: its kind, and what was found."""

    kind: str
    found: str


def find_violations(history: History, logged: Logged) -> list[Violation]:
    """Return all violations of the guarantees of the service; an empty list if the history is correct."""
    checker = _Checker(history, logged)
    checks = (
        checker.check_statuses, checker.check_decisions, checker.check_rewards, checker.check_activations,
        checker.check_users, checker.check_observations, checker.check_defaults, checker.check_sequence,
        checker.check_order, checker.check_writers,
    )  # fmt: skip
    found = [violation for check in checks for violation in check()]
    differences = [Violation("replay", f"{count} {name}") for name, count in logged.differences.items() if count]
    return found + differences


class _Event(NamedTuple):
    """Logged event with the attempts that requested it."""

    seq: int
    name: str
    attempts: Sequence[Request]


class _Checker:
    def __init__(self, history: History, logged: Logged) -> None:
        self.history, self.logged = history, logged
        self.attempts: dict[tuple[Kind, str], list[Request]] = defaultdict(list)
        for request in history.requests:
            self.attempts[request.kind, request.decision_id or request.user].append(request)
        self.decisions: dict[str, list[LoggedDecision]] = defaultdict(list)
        for decision in logged.decisions:
            self.decisions[decision.decision_id].append(decision)
        self.observations: dict[int, list[LoggedObservation]] = defaultdict(list)
        for observation in sorted(logged.observations, key=lambda row: row.seq):
            self.observations[observation.decision_seq].append(observation)

    def requested(self, kind: Kind) -> Iterator[tuple[str, list[Request]]]:
        """Yield the name of each requested decision or user, with the attempts."""
        for (own_kind, name), attempts in self.attempts.items():
            if own_kind == kind:
                yield name, attempts

    # Responses

    def check_statuses(self) -> Iterator[Violation]:
        """Every response has a status that the client can expect, and every erasure gets a response."""
        for request in self.history.requests:
            name = f"{request.kind} {request.decision_id or request.user!r}"
            if request.kind == "erase" and request.timed_out:
                yield Violation("no response", name)
            if request.status not in EXPECTED_STATUSES[request.kind] or self._contradicts(request):
                yield Violation("unexpected response", f"{name}: {request.status} {request.detail}")

    def _contradicts(self, request: Request) -> bool:
        """Return whether an earlier response excludes the status 404 or 409 of a reward or an activation."""
        if request.status not in (404, 409) or request.kind == "erase":
            return False
        decided = self._acknowledged_before(("decide", request.decision_id), request.sent)
        if request.status == 404:
            return decided and not self._is_erasable(request.user)
        rewards = {attempt.reward for attempt in self.attempts["reward", request.decision_id]}
        deferred = any(attempt.deferred for attempt in self.attempts["decide", request.decision_id])
        waiting = deferred and not self._acknowledged_before(("activate", request.decision_id), request.sent)
        return len(rewards) == 1 and not waiting

    def _acknowledged_before(self, key: tuple[Kind, str], time: float) -> bool:
        return any(attempt.outcome == "acknowledged" and attempt.answered < time for attempt in self.attempts[key])

    def _is_erasable(self, user: str) -> bool:
        return ("erase", user) in self.attempts

    # Acknowledged = present exactly once, refused = absent

    def check_decisions(self) -> Iterator[Violation]:
        """Acknowledged decisions are in the log once, as acknowledged. Refused, erased and unrequested ones are not."""
        for decision_id, attempts in self.requested("decide"):
            rows, user = self.decisions.get(decision_id, []), attempts[0].user
            arms = {attempt.result for attempt in attempts if attempt.outcome == "acknowledged"}
            if len(rows) > 1:
                yield Violation("duplicate decision", f"{decision_id} is in the log {len(rows)} times")
            if len(arms) > 1:
                yield Violation("different responses", f"{decision_id}: {sorted(map(str, arms))}")
            if arms and not rows and not self._is_erasable(user):
                yield Violation("lost decision", decision_id)
            if rows and all(attempt.outcome == "refused" for attempt in attempts):
                yield Violation("refused decision is in the log", decision_id)
            if rows and self._must_be_erased(attempts):
                yield Violation("erased decision is in the log", decision_id)
            for row in rows:
                if arms and row.arm not in arms:
                    yield Violation("changed decision", f"{decision_id}: {row.arm} instead of {arms}")
                if row.user != user:
                    yield Violation("changed decision", f"{decision_id}: user {row.user} instead of {user}")
        for decision_id in self.decisions.keys() - {name for name, _ in self.requested("decide")}:
            yield Violation("unrequested decision", decision_id)

    def _must_be_erased(self, attempts: Sequence[Request]) -> bool:
        """Return whether the user was erased after all attempts; an attempt without a response can be late."""
        last = max(attempt.answered for attempt in attempts)
        erasures = self.attempts.get(("erase", attempts[0].user), ())
        return any(erasure.outcome == "acknowledged" and erasure.sent > last for erasure in erasures)

    def check_rewards(self) -> Iterator[Violation]:
        """Acknowledged rewards are in the log, as acknowledged. Refused rewards are not."""
        for decision_id, attempts in self.requested("reward"):
            rows = self.decisions.get(decision_id, [])
            learned = [row for row in self.observations.get(rows[0].seq, ()) if row.kind != DEFAULT] if rows else []
            acknowledged = [attempt for attempt in attempts if attempt.outcome == "acknowledged"]
            if acknowledged and not learned and not self._is_erasable(attempts[0].user):
                yield Violation("lost reward", decision_id)
            if learned and all(attempt.outcome == "refused" for attempt in attempts):
                yield Violation("refused reward is in the log", decision_id)
            possible = {attempt.reward for attempt in attempts if attempt.outcome != "refused"}
            for row in learned:
                if row.reward not in possible:
                    yield Violation("changed reward", f"{decision_id}: {row.reward} instead of {possible}")
            for attempt in acknowledged:
                if attempt.result != attempt.reward or (learned and learned[-1].reward != attempt.reward):
                    found = [row.reward for row in learned]
                    yield Violation(
                        "changed reward", f"{decision_id}: {attempt.reward}, response {attempt.result}, log {found}"
                    )

    def check_activations(self) -> Iterator[Violation]:
        """A deferred decision is active in the log if its activation was acknowledged, and is not if it was refused."""
        for decision_id, attempts in self.requested("activate"):
            outcomes = {attempt.outcome for attempt in attempts}
            if not any(attempt.deferred for attempt in self.attempts.get(("decide", decision_id), ())):
                continue
            for row in self.decisions.get(decision_id, ()):
                if "acknowledged" in outcomes and not row.active:
                    yield Violation("lost activation", decision_id)
                if outcomes == {"refused"} and row.active:
                    yield Violation("refused activation is in the log", decision_id)

    def check_users(self) -> Iterator[Violation]:
        """A user is in the log once, and only if a decision for the user was requested and not refused."""
        attempts: dict[str, list[Request]] = defaultdict(list)
        for _, own in self.requested("decide"):
            attempts[own[0].user] += own
        for name, count in Counter(user.name for user in self.logged.users if user.name is not None).items():
            if count > 1:
                yield Violation("duplicate user", f"{name} has {count} indices")
            if all(attempt.outcome == "refused" for attempt in attempts.get(name, ())):
                yield Violation("refused user is in the log", name)
            elif self._must_be_erased(attempts[name]):
                yield Violation("erased user is in the log", name)

    # Learned once

    def check_observations(self) -> Iterator[Violation]:
        """Each decision has at most one first observation, and only a default reward is corrected, once."""
        decisions = {decision.seq: decision for decision in self.logged.decisions}
        for decision_seq, rows in self.observations.items():
            decision = decisions.get(decision_seq)
            name = f"event {decision_seq}" if decision is None else decision.decision_id
            kinds = [row.kind for row in rows]
            if decision is None:
                yield Violation("observation without a decision", f"events {[row.seq for row in rows]} of {name}")
            if kinds not in ([REWARD], [DEFAULT], [DEFAULT, CORRECTION]):
                yield Violation("learned twice", f"{name} has observations of the kinds {kinds}")
            for previous, row in zip([None, *rows], rows, strict=False):
                if row.previous_reward != (0.0 if previous is None or row.is_first else previous.reward):
                    yield Violation("wrong correction", f"{name}: event {row.seq} replaces {row.previous_reward}")

    def check_defaults(self) -> Iterator[Violation]:
        """A default reward has the configured value, and every active decision without a reward gets one."""
        for row in self.logged.observations:
            if row.kind == DEFAULT and row.reward != self.history.default_reward:
                yield Violation("wrong default reward", f"event {row.seq}: {row.reward}")
        if self.history.default_reward is not None and self.history.settled:
            for decision in self.logged.decisions:
                if decision.active and decision.seq not in self.observations:
                    yield Violation("missing default reward", decision.decision_id)

    # Order and writers

    def check_sequence(self) -> Iterator[Violation]:
        """Sequence numbers are unique; without erasures, no number is missing. Observations follow decisions."""
        logged = self.logged
        numbers = [seq for user in logged.users for seq in {user.seq, user.assigned_seq}]
        numbers += [decision.seq for decision in logged.decisions] + [row.seq for row in logged.observations]
        counts = Counter(numbers)
        for seq in sorted(seq for seq, count in counts.items() if count > 1):
            yield Violation("duplicate sequence number", str(seq))
        if not self.history.erases:
            missing = sorted(set(range(1, max(numbers, default=0) + 1)) - counts.keys())
            if missing:
                yield Violation("missing sequence number", str(missing[:10]))
        for row in logged.observations:
            if row.seq <= row.decision_seq:
                yield Violation("wrong order", f"observation {row.seq} of decision {row.decision_seq}")

    def check_order(self) -> Iterator[Violation]:
        """An event that was acknowledged before another one was requested has the lower sequence number."""
        earliest, name = math.inf, ""  # first acknowledgement of the events with higher sequence numbers
        for event in sorted(self._events(), reverse=True):
            if earliest < min(attempt.sent for attempt in event.attempts):
                yield Violation("wrong order", f"{event.name} was requested after {name} was acknowledged")
            for attempt in event.attempts:
                if attempt.outcome == "acknowledged" and attempt.answered < earliest:
                    earliest, name = attempt.answered, event.name

    def _events(self) -> Iterator[_Event]:
        """Yield the logged decisions and rewards that clients requested, without users that may be erased."""
        for decision in self.logged.decisions:
            attempts = self.attempts.get(("decide", decision.decision_id))
            if not attempts or self._is_erasable(attempts[0].user):
                continue
            yield _Event(decision.seq, decision.decision_id, attempts)
            rewards = self.attempts.get(("reward", decision.decision_id), ())
            for row in self.observations.get(decision.seq, ()):
                matching = [attempt for attempt in rewards if attempt.reward == row.reward]
                if row.kind != DEFAULT and matching:
                    yield _Event(row.seq, f"reward of {decision.decision_id}", matching)

    def check_writers(self) -> Iterator[Violation]:
        """Each process writes one block of the log, in its own epoch."""
        found = sorted(
            (event.seq, event.attempts[0].writer)
            for event in self._events()
            # Another attempt could have been executed by another process.
            if len(event.attempts) == 1 and event.attempts[0].outcome == "acknowledged" and event.attempts[0].writer
        )
        blocks = [own for (_, own), (_, before) in zip(found, [(0, ""), *found], strict=False) if own != before]
        for writer, count in Counter(blocks).items():
            if count > 1:
                yield Violation("two writers", f"{writer} has written {count} separate parts of the log: {blocks}")
        if self.logged.epochs:
            yield from _check_epochs(self.logged.epochs, found)


def _check_epochs(epochs: Iterable[tuple[int, int]], found: Iterable[tuple[int, str]]) -> Iterator[Violation]:
    commits = sorted(epochs)
    starts = [previous_seq for previous_seq, _ in commits]
    ordered = [epoch for _, epoch in commits]
    if ordered != sorted(ordered):
        yield Violation("two writers", f"epochs are not in order: {ordered}")
    pairs = {(ordered[max(bisect_left(starts, seq) - 1, 0)], writer) for seq, writer in found}
    for position, name in enumerate(("epoch", "process")):
        for value, count in Counter(pair[position] for pair in pairs).items():
            if count > 1:
                others = sorted(str(pair[1 - position]) for pair in pairs if pair[position] == value)
                yield Violation("two writers", f"{name} {value} has {others}")
