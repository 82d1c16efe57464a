"""Simulated visits: each visit requests a recommendation, and most visits send a reward."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from locb.cli.demo.film_catalogue import FilmCatalogue
from locb.client import Client, ServiceError

BATCH_INTERVAL = 0.2  # seconds between two batches of visits
NO_REWARD_SHARE = 0.02  # share of visits without a reward
MAX_BATCH = 1000  # visits per batch


class Visitors:
    """Simulated visitors, who make visits at a constant rate in a thread.

    Parameters
    ----------
    client : Client
        Client of the service.
    catalogue : FilmCatalogue
        Films and people.
    rate : float
        Visits per second.

    Attributes
    ----------
    decisions : int
        Number of decisions that the service made.
    """

    def __init__(self, client: Client, catalogue: FilmCatalogue, rate: float) -> None:
        self._client, self._catalogue, self._rate = client, catalogue, rate
        self._stopped = threading.Event()
        self.decisions = 0

    def run(self, started: Callable[[], None]) -> None:
        """Wait until the service responds, call ``started``, and send visits until another thread calls ``stop``."""
        while not self._stopped.is_set():
            try:
                self._client.health()
                break
            except ServiceError:
                self._stopped.wait(BATCH_INTERVAL)
        else:
            return
        started()
        start, due = time.monotonic(), 0
        while not self._stopped.wait(BATCH_INTERVAL):
            now_due = int(self._rate * (time.monotonic() - start))
            try:
                self.visit(min(now_due - due, MAX_BATCH))
            except ServiceError:  # the service stops, or its disk is full; the visits are dropped
                continue
            finally:
                due = now_due

    def visit(self, count: int) -> None:
        """Request ``count`` decisions, and send the rewards of all except a share of ``NO_REWARD_SHARE``."""
        visits = [self._catalogue.draw_visit() for _ in range(count)]
        requests = [
            {"user": visit.person, "arms": {film.title: film.features for film in visit.films}, "count": 3}
            for visit in visits
        ]
        decisions = self._client.recommend_batch(requests) if requests else []
        rewards = {}
        for visit, decision in zip(visits, decisions, strict=True):
            if isinstance(decision, ServiceError):
                continue
            self.decisions += 1
            chosen = [film.title for film in visit.films].index(decision["arm"])
            if self._catalogue.draw_uniform() >= NO_REWARD_SHARE:
                rewards[decision["decision_id"]] = float(self._catalogue.draw_uniform() < visit.probabilities[chosen])
        if rewards:
            self._client.reward_batch(rewards)

    def stop(self) -> None:
        """Make ``run`` return."""
        self._stopped.set()
