"""Default rewards, which the policy learns for decisions whose own reward does not arrive in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from locb.recommender.commands import CachedDecision

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

    def load(self, waiting: Iterable[tuple[str, CachedDecision]], now: float) -> None:
        """Track decisions that already wait for a reward, with their ids, in the order of ``active_at``.

        ``now`` is the Unix time. A decision whose wait seems to start in the future, because the system time was set
        back, waits as long as a new decision.
        """
        for decision_id, decision in waiting:
            elapsed = 0.0 if decision.active_at is None else max(now - decision.active_at, 0.0)
            self._pending[decision_id] = self._clock() + self.wait - elapsed, decision

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
