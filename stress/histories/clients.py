"""Clients of a history: they send requests, retry some of those that fail, and record every attempt."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from locb.service.api.personalizer.schemas import PATH as PERSONALIZER
from stress.histories.forks import ForkedService
from stress.histories.plan import Plan
from stress.histories.record import Kind, Request

PAUSE = 0.01  # seconds between the requests of a client
DEFAULTS_PAUSE = 0.5  # seconds after which a default reward that is due has been learned, usually
MAX_FINISHED = 30  # requests of each kind that a client sends at the end
RETRY_PAUSE = 0.05  # seconds before a failed request is repeated
ERASURE_TIMEOUT = 30.0  # seconds in which an erasure gets a response, or its connection ends: longer than any fault
RETRIED = (0, 429, 503)  # statuses after which a request is repeated


class Clients:
    """Clients in background threads. They send requests to ``services`` until they are stopped.

    Parameters
    ----------
    plan : Plan
        Number of clients, and the probabilities of their requests.
    services : list of ForkedService
        Services among which a client chooses; the caller can replace the elements.
    """

    def __init__(self, plan: Plan, services: Sequence[ForkedService]) -> None:
        self.services = list(services)
        self.stopping = threading.Event()
        self._clients = [_Client(self, plan, number) for number in range(plan.clients)]
        for client in self._clients:
            client.start()

    def stop(self) -> list[Request]:
        """Stop the clients, and return all attempts."""
        self.stopping.set()
        for client in self._clients:
            client.join()
            if client.error is not None:
                raise RuntimeError(f"a client failed: {client.error!r}") from client.error
        return [request for client in self._clients for request in client.requests]


class _Client(threading.Thread):
    def __init__(self, clients: Clients, plan: Plan, number: int) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.requests: list[Request] = []
        self.error: BaseException | None = None
        self._clients, self._plan, self._number = clients, plan, number
        self._rng = random.Random(f"{plan.seed} {number}")
        self._connection: tuple[ForkedService, http.client.HTTPConnection] | None = None
        self._open: list[tuple[str, str]] = []  # users and ids of decisions without a reward
        self._inactive: list[tuple[str, str]] = []  # users and ids of deferred decisions that are activated later
        self._postponed: list[tuple[str, str, float]] = []  # users, ids and rewards that are sent at the end
        self._count = 0

    def run(self) -> None:
        try:
            while not self._clients.stopping.is_set():
                self._act()
                time.sleep(PAUSE)
            self._finish()
        except BaseException as error:  # raised by ``Clients.stop``
            self.error = error
        finally:
            self._disconnect()

    def _act(self) -> None:
        """Request a decision, or activate or send the reward of an earlier decision; sometimes erase a user."""
        rng, plan = self._rng, self._plan
        if rng.random() < plan.erasures:
            self._erase_new_user()
        elif self._open and rng.random() < (0.8 if self._failed else plan.rewards):
            user, decision_id = self._open.pop(rng.randrange(len(self._open)))
            if rng.random() < plan.postpone / 2:  # the decision is active already, or becomes active late
                self._activate(user, decision_id)
                self._postponed.append((user, decision_id, 1.0))
            else:
                self._reward(user, decision_id)
        elif self._decide(user := f"user {rng.randrange(plan.users)}") or rng.random() < 0.2:
            self._open.append((user, self._decision_id))

    def _finish(self) -> None:
        """Activate decisions, and send the postponed rewards when the default rewards have been due."""
        if self._rng.random() < 0.5:
            for user, decision_id in self._inactive[-MAX_FINISHED:]:
                self._activate(user, decision_id)
        if self._plan.default_reward is not None:
            time.sleep(self._plan.reward_wait + DEFAULTS_PAUSE)
        self._rng.shuffle(self._postponed)
        for reward in self._postponed[:MAX_FINISHED]:
            self._send_reward(*reward)

    @property
    def _failed(self) -> bool:
        """Whether the last attempt failed, because the service or its store was not available."""
        return bool(self.requests) and self.requests[-1].status in RETRIED

    @property
    def _decision_id(self) -> str:
        return f"{self._number}-{self._count}"

    def _erase_new_user(self) -> None:
        user = f"guest {self._number}-{self._count}"
        for _ in range(self._rng.randint(1, 3)):
            if self._decide(user) and self._rng.random() < 0.7:
                self._reward(user, self._decision_id)
        self._retry("erase", user, "", "DELETE", f"/v1/users/{quote(user)}", None)

    def _decide(self, user: str) -> bool:
        """Request a decision with a new id, activate it if it is deferred, and return whether it was acknowledged."""
        rng = self._rng
        self._count += 1
        arms = [[round(rng.gauss(0.0, 1.0), 3) for _ in range(3)] for _ in range(rng.randint(1, 3))]
        if rng.random() < self._plan.deferred:
            actions = [{"id": f"arm {k}", "features": [{"x": x[0], "y": x[1]}]} for k, x in enumerate(arms)]
            features = [{"user": {"id": user}}]
            body = {"actions": actions, "contextFeatures": features, "eventId": self._decision_id}
            path = f"{PERSONALIZER}/rank"
            decided = self._retry("decide", user, self._decision_id, "POST", path, body | {"deferActivation": True})
            if rng.random() < 0.8:
                self._activate(user, self._decision_id)
            elif decided:
                self._inactive.append((user, self._decision_id))
            return decided
        given = [{"id": f"arm {k}", "features": features} for k, features in enumerate(arms)]
        body = {"user": user, "arms": given, "decision_id": self._decision_id}
        return self._retry("decide", user, self._decision_id, "POST", "/v1/recommend", body)

    def _reward(self, user: str, decision_id: str) -> None:
        """Send a reward; sometimes send it twice, or send another reward afterwards."""
        for _ in range(self._rng.choice([1, 1, 1, 2])):
            self._send_reward(user, decision_id, self._rng.choice([0.0, 0.5, 1.0]))

    def _send_reward(self, user: str, decision_id: str, reward: float) -> None:
        body = {"decision_id": decision_id, "reward": reward}
        self._retry("reward", user, decision_id, "POST", "/v1/reward", body, self._plan.postpone)
        if self._failed and user.startswith("user"):
            self._postponed.append((user, decision_id, reward))

    def _activate(self, user: str, decision_id: str) -> None:
        path = f"{PERSONALIZER}/events/{decision_id}/activate"
        self._retry("activate", user, decision_id, "POST", path, None)

    def _retry(
        self, kind: Kind, user: str, decision_id: str, method: str, path: str, body: Any, give_up: float | None = None
    ) -> bool:
        """Send a request until it is answered or the client gives up, and return whether it was acknowledged."""
        give_up = self._plan.give_up if give_up is None else give_up
        while True:
            request = self._attempt(kind, user, decision_id, method, path, body)
            self.requests.append(request)
            if request.status not in RETRIED:
                return request.outcome == "acknowledged"
            if self._clients.stopping.is_set() or self._rng.random() < give_up:
                return False
            time.sleep(RETRY_PAUSE)

    def _attempt(self, kind: Kind, user: str, decision_id: str, method: str, path: str, body: Any) -> Request:
        service = self._rng.choice(self._clients.services)
        leave = self._rng.random() < self._plan.disconnects
        reward = body["reward"] if kind == "reward" else None
        deferred = kind == "decide" and "deferActivation" in body
        sent, writer = time.monotonic(), service.writer
        try:
            status, content = self._send(service, method, path, body, leave)
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            timed_out = isinstance(error, TimeoutError)
            return Request(kind, user, decision_id, sent, reward=reward, deferred=deferred, timed_out=timed_out)
        answered = time.monotonic()
        if writer != service.writer:
            writer = ""
        answer = json.loads(content) if content else {}
        detail = str(answer.get("detail") or answer.get("error") or "") if status >= 400 else ""
        result = answer.get("arm") or answer.get("rewardActionId") if kind == "decide" else answer.get("reward")
        return Request(kind, user, decision_id, sent, answered, status, detail, writer, reward, result, deferred)

    def _send(self, service: ForkedService, method: str, path: str, body: Any, leave: bool) -> tuple[int, bytes]:
        """Send a request, and return the status and body of the response. ``leave``: close the connection before it."""
        connection = self._connect(service)
        connection.timeout = ERASURE_TIMEOUT if method == "DELETE" else self._plan.timeout
        if connection.sock is not None:  # otherwise, the service has closed the connection, and it is opened again
            connection.sock.settimeout(connection.timeout)
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if leave and content is not None and self._rng.random() < 0.3:  # the body is incomplete
            headers["Content-Length"] = str(len(content))
            content = content[: len(content) // 2]
        connection.request(method, path, content, headers)
        if leave:
            time.sleep(self._rng.choice([0.0, 0.0, 0.002, 0.01]))
            raise ConnectionAbortedError("the client closes the connection")
        response = connection.getresponse()
        return response.status, response.read()

    def _connect(self, service: ForkedService) -> http.client.HTTPConnection:
        if self._connection is not None and self._connection[0] is not service:
            self._disconnect()
        if self._connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=self._plan.timeout)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection = service, connection
        return self._connection[1]

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
        self._connection = None
