"""Look at a service again and again: what it says, and in a plain sentence what is wrong when it says nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from locb.client import Client, ServiceError
from locb.report.terminal.service_view import Seen, Trouble
from locb.report.terminal.user_view import Person

SLOWER = 10.0  # seconds between looks at what costs more: history, groups, a user
SPAN_SECONDS = {"hour": 3600.0, "day": 86_400.0, "month": 30 * 86_400.0}
AT_ONCE = {429, 502, 503, 504}  # statuses that pass


class Watch:
    """What was seen of a service, kept while it cannot be seen.

    Parameters
    ----------
    client : Client
        Best one that does not try again by itself, so that it is told at once when nobody answers.
    span : "hour", "day", "month" or "all"
        Of the history.
    baseline : callable, optional
        From the time now to the period to compare with, in seconds since 1970, and its name. If not given, the time
        before the span, as long as the span.
    user : str, optional
        Look at this user instead of history and groups.
    most_groups : int
        Groups to ask for, the largest.
    clock : callable
        The time now, in seconds since 1970.
    """

    def __init__(
        self,
        client: Client,
        *,
        span: str = "hour",
        baseline: Callable[[float], tuple[tuple[float, float], str]] | None = None,
        user: str | None = None,
        most_groups: int = 50,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._span, self.user, self._most_groups = client, span, user, most_groups
        self._baseline, self._clock = baseline, clock
        self._slow_at = -SLOWER  # when what costs more was seen last
        self.seen = Seen(client.url, clock())
        self.person: Person | None = None

    def look(self) -> Seen:
        """Ask for what may have changed."""
        when = self._clock()
        try:
            if not 0.0 <= when - self._slow_at < SLOWER:
                self._look_closer(when)
                self._slow_at = when
            now = self._client.status()  # last: in all there are then no fewer than in an hour
            self.seen = replace(self.seen, time=when, now=now, trouble=None)
        except ServiceError as error:
            before = self.seen.trouble
            told, lasts = self._told(error)
            since = when if before is None else before.since
            self.seen = replace(self.seen, time=when, trouble=Trouble(told, since, lasts))
            self._slow_at = -SLOWER
        return self.seen

    def _look_closer(self, when: float) -> None:
        if self.user is not None:
            self.person = self._look_at(self.user)
            return
        period, told = self._period(when)
        history = self._client.history(self._span, baseline=period)
        groups = self._client.groups(limit=self._most_groups)
        self.seen = replace(self.seen, history=history, groups=groups, baseline_told=told)

    def _look_at(self, name: str) -> Person:
        try:
            user = self._client.user(name)
        except ServiceError as error:
            if error.status == 404:
                return Person(name, None)
            raise
        return Person(name, user, self._client.similar(name, limit=5), self._client.decisions(name, limit=5))

    def _period(self, when: float) -> tuple[tuple[float, float] | None, str]:
        if self._baseline is not None:
            return self._baseline(when)
        if self._span not in SPAN_SECONDS:
            return None, ""
        seconds = SPAN_SECONDS[self._span]
        return (when - 2 * seconds, when - seconds), f"the {self._span} before"

    def _told(self, error: ServiceError) -> tuple[str, bool]:
        """What is wrong, and whether asking again cannot help."""
        if error.status is None:
            reached = self.seen.now is not None
            why = "It answers no more: it may be restarting" if reached else "It cannot be reached"
            return f"{why} ({error.detail.removeprefix(self._client.url + ': ')}).", False
        if error.status == 401:
            return "It wants a token that it knows: give one with --token-file, or in $LOCB_TOKEN.", True
        if error.status == 403:
            return "The token is known, but not for reading: it needs the scope read.", True
        if error.status == 404:
            return "There is no /v1/status here: it is no service of locb, or an older one.", True
        return f"It says: {error}.", error.status not in AT_ONCE
