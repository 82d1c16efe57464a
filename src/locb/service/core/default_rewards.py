"""Default rewards, which the policy learns for decisions whose own reward does not arrive in time."""

from __future__ import annotations

from collections.abc import Iterator

from locb.service.core.commands import CachedDecision
from locb.service.store.log import EventLog

CHECK_INTERVAL = 0.25  # seconds between checks for overdue rewards


class DefaultRewards:
    """Decisions that wait for a reward, in the order in which their wait started.

    Parameters
    ----------
    reward : float or None
        Default reward; None disables default rewards.
    wait : float
        Seconds from the start of the wait until the default reward is due.
    """

    def __init__(self, reward: float | None, wait: float) -> None:
        self.reward = reward
        self.wait = wait
        self._pending: dict[str, CachedDecision] = {}

    def load(self, log: EventLog) -> None:
        """Track all decisions in the log that wait for a reward."""
        if self.reward is None:
            return
        rows = [row for chunk in log.unrewarded_decisions() for row in chunk]
        for seq, decision_id, user_index, time, active_at, context in sorted(rows, key=lambda row: row.active_at):
            self.track(decision_id.decode(), CachedDecision(seq, user_index, context, time, active_at))

    def track(self, decision_id: str, decision: CachedDecision) -> None:
        """Start to wait for the reward of a decision."""
        if self.reward is not None:
            self._pending.setdefault(decision_id, decision)

    def get(self, decision_id: str) -> CachedDecision | None:
        """Return a decision that waits for a reward, or None if the decision does not wait."""
        return self._pending.get(decision_id)

    def discard(self, decision_id: str) -> None:
        """Stop waiting for the reward of a decision."""
        self._pending.pop(decision_id, None)

    def discard_user(self, user_index: int) -> None:
        """Stop waiting for the rewards of an erased user."""
        self._pending = {
            decision_id: decision
            for decision_id, decision in self._pending.items()
            if decision.user_index != user_index
        }

    def due(self, now: float, limit: int) -> Iterator[tuple[str, CachedDecision]]:
        """Yield up to ``limit`` decisions whose default reward is due."""
        count = 0
        for decision_id, decision in self._pending.items():
            if count == limit or (decision.active_at is not None and decision.active_at + self.wait > now):
                return
            if decision.active_at is not None and decision.kind is None:
                count += 1
                yield decision_id, decision
