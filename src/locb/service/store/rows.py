"""What is written to the log, and what is found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class DecisionRow(NamedTuple):
    """A decision as it is written."""

    seq: int
    id: bytes
    place: int
    time: float
    active_at: float | None
    chosen: int
    context: bytes
    request: bytes
    answer: bytes


class ObservationRow(NamedTuple):
    """A lesson as it is written."""

    seq: int
    decision: int
    place: int
    kind: int
    learned: float
    reward: float
    time: float
    context: bytes


class FoundDecision(NamedTuple):
    """A decision with what it earned so far: the kind and reward of its last lesson, if there was one."""

    decision: DecisionRow
    kind: int | None
    reward: float | None


@dataclass(slots=True)
class Records:
    """What is committed at once."""

    users: list[tuple[int, int, bytes | None]] = field(default_factory=list)  # place, seq, id
    decisions: list[DecisionRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)
    activations: list[tuple[float, int]] = field(default_factory=list)  # when, seq of the decision

    def __bool__(self) -> bool:
        return bool(self.users or self.decisions or self.observations or self.activations)
