"""Events: decisions, and the observations from which the policy learns. The event log of the service stores them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

# Kinds of observations: the first reward of a decision; a default reward, learned when no reward arrives in time; and a
# correction, which replaces the reward that was learned before. The second correction of a decision has the kind
# CORRECTION + 1, the third one CORRECTION + 2, and so on.
REWARD, DEFAULT, CORRECTION = 0, 1, 2
MAX_KIND = 32_767  # largest value of the column type in the event log

MAX_ID_LENGTH = 256  # characters of the id of a user, an arm or a decision
MAX_REWARD = 1e6  # absolute value


class DecisionRow(NamedTuple):
    """A decision. The attributes are the columns of the table of decisions in the event log."""

    seq: int
    id: bytes
    user_index: int
    time: float
    active_at: float | None
    chosen: int
    request: bytes
    response: bytes


class ObservationRow(NamedTuple):
    """An observation. The attributes are the columns of the table of observations in the event log."""

    seq: int
    decision_seq: int
    user_index: int
    kind: int
    previous_reward: float
    reward: float
    time: float
    context: bytes


class FoundDecision(NamedTuple):
    """Decision with the kind and reward of its last observation; both are None if there is no observation."""

    decision: DecisionRow
    kind: int | None
    reward: float | None
    response: Any = None  # JSON, or the recommendation of the library; None unless the query asks for it


@dataclass(slots=True)
class Records:
    """Events that are committed together."""

    users: list[tuple[int, int, bytes | None]] = field(default_factory=list)  # user_index, seq, id
    decisions: list[DecisionRow] = field(default_factory=list)
    observations: list[ObservationRow] = field(default_factory=list)
    activations: list[tuple[float, int]] = field(default_factory=list)  # Unix time, seq of the decision
