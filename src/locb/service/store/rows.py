"""Rows of the event log, as they are written and as they are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class DecisionRow(NamedTuple):
    """Row of the table of decisions."""

    seq: int
    id: bytes
    user_index: int
    time: float
    active_at: float | None
    chosen: int
    context: bytes
    request: bytes
    response: bytes


class ObservationRow(NamedTuple):
    """Row of the table of observations."""

    seq: int
    decision_seq: int
    user_index: int
    kind: int
    previous_reward: float
    reward: float
    time: float
    context: bytes


class FoundDecision(NamedTuple):
    """Decision with the kind and reward of its last observation; both are None before the first one."""

    decision: DecisionRow
    kind: int | None
    reward: float | None


@dataclass(slots=True)
class Records:
    """Rows that are committed in one transaction."""

    users: list[tuple[int, int, bytes | None]] = field(default_factory=list)  # user_index, seq, id
    decisions: list[DecisionRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)
    activations: list[tuple[float, int]] = field(default_factory=list)  # Unix time, seq of the decision

    def __bool__(self) -> bool:
        return bool(self.users or self.decisions or self.observations or self.activations)
