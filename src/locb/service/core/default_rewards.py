"""Default rewards, which the policy learns for decisions whose own reward does not arrive in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import itemgetter

from locb.service.core.commands import CachedDecision
from locb.service.packed_responses import chosen_context
from locb.service.store.log import EventLog

CHECK_INTERVAL = 0.25  # seconds between checks for due default rewards


class DefaultRewards:
    """Decisions that wait for a reward, in the order in which their default rewards are due.

    The wait is measured with a monotonic clock, so changes of the system time have no effect on it.

    Parameters
    ----------
    reward : float or None
        Default reward; None disables default rewards.
    wait : float
        Seconds from the start of the wait until the default reward is due.
    clock : callable, default time.monotonic
        Returns the time in seconds, which never decreases.
    """

    def __init__(self, reward: float | None, wait: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.reward = reward
        self.wait = wait
        self._clock = clock
        # Decisions with the time at which the default reward is due. All waits are equal and the clock never decreases,
        # so each new decision is due after all others.
        self._pending: dict[str, tuple[float, CachedDecision]] = {}
        # Seq of the last erasure of each user index. Earlier decisions at the index are removed when they are due.
        self._erased: dict[int, int] = {}

    def load(self, log: EventLog, now: float, dim: int) -> None:
        """Track all decisions in the log that wait for a reward.

        ``now`` is the Unix time, and ``dim`` the number of features per arm. A decision whose wait seems to start in
        the future, because the system time was set back, waits as long as a new decision.
        """
        if self.reward is None:
            return
        found = []
        for row in (row for chunk in log.unrewarded_decisions() for row in chunk):
            context = chosen_context(row.request, row.response, dim)
            decision = CachedDecision(row.seq, row.user_index, context, row.time, row.active_at)
            found.append((row.active_at, row.id.decode(), decision))
        clock = self._clock()
        for active_at, decision_id, decision in sorted(found, key=itemgetter(0)):
            self._pending[decision_id] = clock + self.wait - max(now - active_at, 0.0), decision

    def track(self, decision_id: str, decision: CachedDecision) -> None:
        """Start to wait for the reward of a decision, unless the decision already waits."""
        if self.get(decision_id) is None:
            self._pending.pop(decision_id, None)  # of an erased user; the new decision is due after all others
            self._pending[decision_id] = self._clock() + self.wait, decision

    def get(self, decision_id: str) -> CachedDecision | None:
        """Return a decision that waits for a reward, or None if the decision does not wait."""
        decision = self._pending.get(decision_id, (0.0, None))[1]
        return None if decision is None or self._is_erased(decision) else decision

    def discard(self, decision_id: str) -> None:
        """Stop waiting for the reward of a decision."""
        self._pending.pop(decision_id, None)

    def discard_user(self, user_index: int, seq: int) -> None:
        """Stop waiting for the rewards of a user who was erased by the event ``seq``."""
        self._erased[user_index] = seq

    def _is_erased(self, decision: CachedDecision) -> bool:
        return decision.seq < self._erased.get(decision.user_index, 0)

    def due(self, limit: int) -> list[tuple[str, CachedDecision]]:
        """Return up to ``limit`` decisions whose default reward is due."""
        now = self._clock()
        found: list[tuple[str, CachedDecision]] = []
        erased = []
        for decision_id, (due_at, decision) in self._pending.items():
            if due_at > now or len(found) == limit:
                break
            if self._is_erased(decision):
                erased.append(decision_id)
            else:
                found.append((decision_id, decision))
        for decision_id in erased:
            del self._pending[decision_id]
        return found
