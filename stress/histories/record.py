"""Record of a history: what the clients sent and received, and what the event log contains afterwards."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from locb.recommender.events import CORRECTION

Kind = Literal["decide", "reward", "activate", "erase"]
Outcome = Literal["acknowledged", "refused", "unknown"]
NO_RESPONSE = 0  # status of a request without a response


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt of a client to send a request. A retry is another attempt, with the same decision id.

    Attributes
    ----------
    kind : str
        What was requested.
    user, decision_id : str
        User and decision of the request; the decision id of an erasure is "".
    sent, answered : float
        Monotonic time before the request was sent, and after the response was received; infinite without a response.
    status : int
        HTTP status of the response; ``NO_RESPONSE`` if the connection was lost or the client has closed it.
    detail : str
        Explanation of the status.
    writer : str
        Name of the service process that sent the response; "" if it is not known.
    reward : float or None
        Reward that was sent.
    result : str, float or None
        Arm of the decision, or reward, in the response.
    deferred : bool
        Whether a decision must be activated before its reward.
    timed_out : bool
        Whether the client has waited for a response until its timeout, while the connection was open.
    """

    kind: Kind
    user: str
    decision_id: str
    sent: float
    answered: float = math.inf
    status: int = NO_RESPONSE
    detail: str = ""
    writer: str = ""
    reward: float | None = None
    result: str | float | None = None
    deferred: bool = False
    timed_out: bool = False

    @property
    def outcome(self) -> Outcome:
        """Whether the service has executed the request, as far as the client can know."""
        if 200 <= self.status < 300 or (self.kind == "erase" and self.status == 404):
            return "acknowledged"
        if 400 <= self.status < 500:
            return "refused"
        # An erasure with status 503 may have happened: see the guarantees of the service.
        if self.status == 503 and self.kind != "erase" and "it is unknown whether" not in self.detail:
            return "refused"
        return "unknown"


@dataclass(frozen=True, slots=True)
class LoggedUser:
    """User index of the log: its first event, the event that assigned it to its user, and the name of the user."""

    seq: int
    assigned_seq: int
    name: str | None


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """Decision of the log."""

    seq: int
    decision_id: str
    user: str | None
    arm: str
    active: bool = True  # False for a deferred decision that was not activated


@dataclass(frozen=True, slots=True)
class LoggedObservation:
    """Observation of the log: a reward, a default reward or a correction of a default reward."""

    seq: int
    decision_seq: int
    kind: int
    reward: float
    previous_reward: float = 0.0

    @property
    def is_first(self) -> bool:
        """Whether this is the first observation of its decision, not a correction."""
        return self.kind < CORRECTION


@dataclass(slots=True)
class Logged:
    """Content of the event log after a history.

    Attributes
    ----------
    epochs : list of (int, int)
        Last event before each commit, and epoch of the process that wrote the commit; empty if the log has no epochs.
    differences : dict
        Numbers of differences between a replay of the log and the last state of the service, by name.
    """

    users: list[LoggedUser] = field(default_factory=list)
    decisions: list[LoggedDecision] = field(default_factory=list)
    observations: list[LoggedObservation] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    differences: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class History:
    """All requests of a history, and the default reward of the service.

    Attributes
    ----------
    settled : bool
        Whether the service had enough time to learn all default rewards.
    effects : Counter
        Numbers of effects of the faults, by name.
    """

    requests: list[Request] = field(default_factory=list)
    default_reward: float | None = None
    settled: bool = False
    effects: Counter[str] = field(default_factory=Counter)

    @property
    def erases(self) -> bool:
        """Whether a client tried to erase a user."""
        return any(request.kind == "erase" for request in self.requests)
