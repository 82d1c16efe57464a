"""Repeated polling of a service for ``locb watch``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from . import Client, ServiceError
from .transport import RETRY_STATUSES

SLOW_INTERVAL = 10.0  # seconds between requests for history, groups and user; the status is requested more often

# Function of the current Unix time that returns the start and end of the period to compare with, and its label.
Baseline = Callable[[float], tuple[tuple[float, float], str]]


@dataclass(frozen=True)
class ConnectionProblem:
    """Reason why the last poll failed."""

    message: str
    since: float  # Unix time of the first failed poll
    permanent: bool = False  # whether retries are useless, for example with an unknown token


@dataclass(frozen=True)
class ServiceSnapshot:
    """Last known state of a service, as the HTTP API returns it. A field is None before its first response."""

    url: str
    time: float  # Unix time of the last poll
    status: Mapping[str, Any] | None = None
    history: Mapping[str, Any] | None = None
    groups: Mapping[str, Any] | None = None
    problem: ConnectionProblem | None = None  # None if the last poll succeeded
    baseline_label: str | None = None  # None: the period of the same length before the span


@dataclass(frozen=True)
class UserData:
    """State of one user, as the HTTP API returns it. ``user`` is None if the service does not know the user."""

    name: str
    user: Mapping[str, Any] | None
    similar: Sequence[Mapping[str, Any]] = ()
    decisions: Sequence[Mapping[str, Any]] = ()


class ServiceMonitor:
    """Monitor that polls a service, and keeps the last known state while the service is unreachable.

    Parameters
    ----------
    client : Client
        Client of the service. Create it with ``retries=0``, so that a lost connection is reported at once.
    span : "hour", "day", "month" or "all", default "hour"
        Period of the history.
    baseline : callable, optional
        Function of the current Unix time that returns the start and end of the period to compare with, and a label. By
        default the period of the same length before the span; with the span "all", there is no comparison.
    user : str, optional
        User to poll instead of the history and the groups.
    max_groups : int, default 50
        Number of groups to request, largest first.
    clock : callable, default time.time
        Returns the current Unix time in seconds.
    """

    def __init__(
        self,
        client: Client,
        *,
        span: str = "hour",
        baseline: Baseline | None = None,
        user: str | None = None,
        max_groups: int = 50,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._span, self.user, self._max_groups = client, span, user, max_groups
        self._baseline, self._clock = baseline, clock
        self._slow_at = -SLOW_INTERVAL  # Unix time of the last request for history, groups or user
        self.snapshot = ServiceSnapshot(client.url, clock())
        self.user_data: UserData | None = None

    def refresh(self) -> ServiceSnapshot:
        """Poll the service and return the new state.

        Each call requests the status and, at most every 10 s, the user or the history and the groups.
        """
        now = self._clock()
        try:
            if not 0.0 <= now - self._slow_at < SLOW_INTERVAL:
                self._refresh_slow(now)
                self._slow_at = now
            # Requested last, so that the totals are never below the counts of the history.
            status = self._client.status()
            self.snapshot = replace(self.snapshot, time=now, status=status, problem=None)
        except ServiceError as error:
            previous = self.snapshot.problem
            message, permanent = self._describe(error)
            problem = ConnectionProblem(message, now if previous is None else previous.since, permanent)
            self.snapshot = replace(self.snapshot, time=now, problem=problem)
            self._slow_at = -SLOW_INTERVAL
        return self.snapshot

    def _refresh_slow(self, now: float) -> None:
        if self.user is not None:
            self.user_data = self._request_user(self.user)
            return
        period, label = self._baseline_period(now)
        history = self._client.history(self._span, baseline=period)
        groups = self._client.groups(limit=self._max_groups)
        self.snapshot = replace(self.snapshot, history=history, groups=groups, baseline_label=label)

    def _request_user(self, name: str) -> UserData:
        try:
            user = self._client.user(name)
        except ServiceError as error:
            if error.status == 404:
                return UserData(name, None)
            raise
        return UserData(name, user, self._client.similar(name, limit=5), self._client.decisions(name, limit=5))

    def _baseline_period(self, now: float) -> tuple[tuple[float, float] | Literal["previous"] | None, str | None]:
        if self._baseline is not None:
            return self._baseline(now)
        return None if self._span == "all" else "previous", None

    def _describe(self, error: ServiceError) -> tuple[str, bool]:
        """Return a message for the user, and whether the problem is permanent."""
        if error.status is None:
            reason = error.detail.removeprefix(self._client.url + ": ")
            lost = (
                "Connection lost; the service may be restarting"
                if self.snapshot.status is not None
                else "Cannot connect"
            )
            return f"{lost} ({reason}).", False
        if error.status == 401:
            return "The token is missing or unknown: pass a token with --token-file or set LOCB_TOKEN.", True
        if error.status == 403:
            return "The token does not have the scope 'read': pass another token with --token-file.", True
        if error.status == 404:
            advice = "check the address, and upgrade the service if its version is old"
            return f"{self._client.url} has no route /v1/status: {advice}.", True
        return f"The service returned an error: {error}.", error.status not in RETRY_STATUSES
