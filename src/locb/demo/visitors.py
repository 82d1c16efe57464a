"""People who come to a service, evening after evening: they ask, see a film, and most of them say how it was."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from locb.client import Client, ServiceError
from locb.demo.film_catalogue import Cinema

TICK = 0.2  # seconds between batches
SILENT = 0.02  # share of visitors who never say how it was


class Visitors:
    """They come at a steady rate until they are told to stay at home.

    Parameters
    ----------
    client : Client
        To the service.
    cinema : Cinema
        The world.
    rate : float
        Decisions a second.
    """

    def __init__(self, client: Client, cinema: Cinema, rate: float) -> None:
        self._client, self._cinema, self._rate = client, cinema, rate
        self._over = threading.Event()
        self.decisions = 0

    def come(self, started: Callable[[], None]) -> None:
        """Wait for the service, tell that it is there, and come until told otherwise."""
        while not self._over.is_set():
            try:
                self._client.health()
                break
            except ServiceError:
                self._over.wait(TICK)
        else:
            return
        started()
        began, due = time.monotonic(), 0
        while not self._over.wait(TICK):
            now_due = int(self._rate * (time.monotonic() - began))
            try:
                self.visit(min(now_due - due, 1000))
            except ServiceError:  # it stops, or its disk is full: those who came then are lost
                continue
            finally:
                due = now_due

    def visit(self, count: int) -> None:
        """So many decisions and most of their rewards."""
        evenings = [self._cinema.evening() for _ in range(count)]
        asked = [
            {"user": evening.person, "arms": {film.title: film.features for film in evening.films}, "count": 3}
            for evening in evenings
        ]
        decisions = self._client.recommend_batch(asked) if asked else []
        rewards = {}
        for evening, decision in zip(evenings, decisions, strict=True):
            if isinstance(decision, ServiceError):
                continue
            self.decisions += 1
            seen = [film.title for film in evening.films].index(decision["arm"])
            if self._cinema.chance() >= SILENT:
                rewards[decision["decision_id"]] = float(self._cinema.chance() < evening.chances[seen])
        if rewards:
            self._client.reward_batch(rewards)

    def stay_at_home(self) -> None:
        """End ``come``, also one that waits."""
        self._over.set()
