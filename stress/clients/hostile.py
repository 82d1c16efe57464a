"""Tests of hostile clients: other clients must be served, and the memory must stay bounded."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from stress.generated_history import generate_history
from stress.service_process import ServiceProcess, resident_megabytes
from stress.stores import StoreLocation

HALF_SENT = b"POST /v1/ping HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
GET = b"GET /v1/ping HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HALF_SENT.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked")[:-1] + b"fffffff\r\n"
TOKEN = "token-of-an-ordinary-client"
BODY_CHUNK = b"x" * 65_536
DECISION = {"user": "ann", "arms": [{"id": "a", "features": {"old": 1.0}}, {"id": "b", "features": {"new": 1.0}}]}
RANK = {
    "contextFeatures": [{"user": {"id": "ann"}}, {f"context {number}": number for number in range(300)}],
    "actions": [{"id": f"action {number}"} for number in range(1000)],
}
MANY_NAMES = {  # just below the limits of names per arm and per request
    "user": "bob",
    "arms": [
        {"id": str(arm), "features": {f"name {arm}.{number}": 1.0 for number in range(1_900)}} for arm in range(10)
    ],
}


# Headers of requests that a page of another origin could send, or that break the rules of HTTP, and their status.
_LOCAL, _JSON = "Host: localhost\r\n", "Content-Type: application/json\r\n"
FORGED = (
    (f"{_LOCAL}{_JSON}Origin: http://localhost:1\r\n", 403),
    (f"{_LOCAL}{_JSON}Origin: https://attacker.example\r\n", 403),
    (f"{_LOCAL}{_JSON}Origin: null\r\n", 403),
    (f"Host: attacker.example\r\n{_JSON}", 403),
    (f"{_LOCAL}{_LOCAL}{_JSON}", 400),
    (_JSON, 400),
    (_LOCAL, 415),
    (f"{_LOCAL}Content-Type: text/plain\r\n", 415),
)
EXPORTS = 8  # abandoned exports at a time
ERASERS = 8  # clients that erase users at the same time


class Observer:
    """Ordinary client in a background thread, which counts failed requests and measures the slowest one."""

    def __init__(self, server: ServiceProcess) -> None:
        self._server = server
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._observe)
        self.statuses: Counter[int] = Counter()
        self.slowest = 0.0  # seconds

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _observe(self) -> None:
        while not self._stopping.is_set():
            for request in (
                lambda: self._server.get("/v1/live"),
                lambda: self._server.get("/v1/health"),
                lambda: self._server.get("/v1/ping"),
                lambda: self._server.post("/v1/recommend", DECISION),
            ):
                start = time.perf_counter()
                try:
                    status = request()[0]
                except OSError:
                    status = 0
                self.slowest = max(self.slowest, time.perf_counter() - start)
                self.statuses[status] += 1

    @property
    def failed(self) -> int:
        """Number of requests without a response or with an error."""
        return sum(count for status, count in self.statuses.items() if status not in (200, 204))


def hostile_clients(
    location: StoreLocation, connections: int, seconds: float, events: int = 20_000
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the title and the figures of each attack of ``seconds`` seconds on a service.

    ``connections`` is the number of connections of the attacks that use many. ``events`` is the number of events in the
    log before data are exported and users erased.
    """
    with ServiceProcess(location.folder, ["--dim", "64"], location.url) as server:
        server.start()
        server.post("/v1/recommend", DECISION)
        attacks: dict[str, Callable[[], Any]] = {
            "half-sent requests": lambda: _half_sent(server, connections),
            "an endless header": lambda: _endless(server, GET + b"X: ", seconds),
            "endless headers": lambda: _endless(server, GET, seconds, b"X: y\r\n"),
            "an endless body": lambda: _endless(server, CHUNKED, seconds),
            "new connections": lambda: _new_connections(server, seconds),
            "responses that are not read": lambda: _unread(server, connections),
            "8,000 requests sent at once": lambda: _pipelined(server),
            "ranks of 1,000 actions": lambda: _Attacker(lambda: _send(server, "/personalizer/v1.0/rank", RANK)),
            "19,000 feature names": lambda: _Attacker(lambda: _send(server, "/v1/recommend", MANY_NAMES)),
            "a user, after 19,000 feature names": lambda: _Attacker(lambda: _send(server, "/v1/users/bob", None)),
            "forged requests": lambda: _forged(server),
        }
        for title, attack in attacks.items():
            yield title, _observe(server, attack, seconds)
        server.stop()
    yield "unknown tokens", _unknown_tokens(location, seconds)
    folder = location.folder.with_name("history")
    generate_history(folder, None, events, max(events // 10, 1))
    with ServiceProcess(folder) as server:
        server.start()
        yield "abandoned exports and an erasure", _observe(server, lambda: _abandoned_exports(server), seconds)
        yield "a stream of erasures", _observe(server, lambda: _erasures(server), seconds)
        server.stop()


def _observe(server: ServiceProcess, attack: Callable[[], Any], seconds: float) -> dict[str, Any]:
    before = resident_megabytes(server.pid)
    with Observer(server) as observer, _attacking(attack) as attacker:
        time.sleep(seconds)
        grown = resident_megabytes(server.pid) - before
    return {
        **getattr(attacker, "figures", {}),
        "requests of other clients": observer.statuses.total(),
        "failed": observer.failed,
        "slowest, milliseconds": round(1000 * observer.slowest, 1),
        "memory grown, MB": round(grown, 1),
    }


def _unknown_tokens(location: StoreLocation, seconds: float) -> dict[str, Any]:
    """Guess tokens from the address of an ordinary client, which has used its token before."""
    file = location.folder.with_name("tokens")
    file.touch(0o600)
    file.write_text(f"sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} all\n", encoding="ascii")
    with ServiceProcess(location.folder, ["--token-file", str(file)], location.url) as server:
        server.start()
        server.headers = {"Authorization": f"Bearer {TOKEN}"}
        server.post("/v1/recommend", DECISION)
        guesses: Counter[int] = Counter()

        def guess() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30.0)
            connection.request("GET", "/v1/status", headers={"Authorization": f"Bearer guess-{guesses.total()}"})
            guesses[connection.getresponse().status] += 1
            connection.close()

        figures = _observe(server, lambda: _Attacker(guess), seconds)
        server.stop()
    return figures | {"tokens checked": guesses[401], "tokens refused": guesses[429]}


@contextmanager
def _attacking(attack: Callable[[], Any]) -> Iterator[Any]:
    attacker = attack()
    try:
        yield attacker
    finally:
        attacker.close()


class _Attacker:
    """Attack in a background thread, which ends when it is closed. ``figures`` are reported."""

    def __init__(self, step: Callable[[], None], figures: dict[str, Any] | None = None) -> None:
        self.figures = {} if figures is None else figures
        self.opened = ExitStack()  # closed after the last step
        self._step = step
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._step()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.opened.close()


def _send(server: ServiceProcess, path: str, body: Any) -> None:
    status = server.get(path)[0] if body is None else server.post(path, body)[0]
    if status not in (200, 201):
        raise RuntimeError(f"{path} has status {status} instead of 200 or 201")


def _connect(server: ServiceProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5.0)


def _half_sent(server: ServiceProcess, connections: int) -> ExitStack:
    opened = ExitStack()
    for _ in range(connections):
        opened.enter_context(_connect(server)).sendall(HALF_SENT)
    return opened


def _unread(server: ServiceProcess, connections: int) -> ExitStack:
    """Request more data than the buffers of the operating system take, and read nothing."""
    opened = ExitStack()
    for _ in range(connections):
        connection = opened.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
    return opened


def _pipelined(server: ServiceProcess) -> _Attacker:
    requests = (GET + b"\r\n") * 7_999 + GET + b"Connection: close\r\n\r\n"

    def step() -> None:
        with _connect(server) as connection:
            connection.sendall(requests)
            while connection.recv(65_536):
                pass

    return _Attacker(step)


def _endless(server: ServiceProcess, start: bytes, seconds: float, rest: bytes = BODY_CHUNK) -> _Attacker:
    data = rest * (len(BODY_CHUNK) // len(rest))

    def step() -> None:
        end = time.monotonic() + seconds
        try:
            with _connect(server) as connection:
                connection.sendall(start)
                while time.monotonic() < end:
                    connection.sendall(data)
        except OSError:  # the service has closed the connection
            time.sleep(0.01)

    return _Attacker(step)


def _new_connections(server: ServiceProcess, seconds: float) -> _Attacker:
    """Open connections without closing any until the attack ends, except the oldest if there are more than 5,000."""
    opened: list[socket.socket] = []
    end = time.monotonic() + seconds

    def step() -> None:
        if time.monotonic() > end:
            time.sleep(0.01)
            return
        try:
            opened.append(_connect(server))
            opened[-1].sendall(HALF_SENT[:20])
        except OSError:
            time.sleep(0.01)
        if len(opened) > 5_000:
            opened.pop(0).close()

    def close() -> None:
        for connection in opened:
            connection.close()

    attacker = _Attacker(step)
    attacker.opened.callback(close)
    return attacker


class _Erasures:
    """Users that are created and erased, with the figures of their erasures."""

    def __init__(self, server: ServiceProcess) -> None:
        self._server = server
        self.figures = {"erasures": 0, "failed erasures": 0, "slowest erasure, seconds": 0.0}

    def erase(self, number: int) -> None:
        """Create a user with a decision and a reward, and erase the user."""
        server, name = self._server, f"guest-{number}"
        decision = server.post("/v1/recommend", DECISION | {"user": name})[1]
        server.post("/v1/reward", {"decision_id": decision["decision_id"], "reward": 1.0})
        start = time.perf_counter()
        status = server.delete(f"/v1/users/{name}")[0]
        seconds = round(time.perf_counter() - start, 2)
        self.figures["erasures"] += status == 200
        self.figures["failed erasures"] += status != 200
        self.figures["slowest erasure, seconds"] = max(self.figures["slowest erasure, seconds"], seconds)


def _abandoned_exports(server: ServiceProcess) -> _Attacker:
    """Request exports and close the connections without reading them, and erase a user meanwhile."""
    erasures = _Erasures(server)

    def step() -> None:
        with ExitStack() as opened:
            for _ in range(EXPORTS):
                opened.enter_context(_connect(server)).sendall(GET.replace(b"/v1/ping", b"/v1/export") + b"\r\n")
            erasures.erase(0)

    return _Attacker(step, erasures.figures)


def _erasures(server: ServiceProcess) -> _Attacker:
    """Erase users without a pause, several at a time."""
    erasures = _Erasures(server)

    def step() -> None:
        with ThreadPoolExecutor(ERASERS) as threads:
            list(threads.map(erasures.erase, range(ERASERS)))

    return _Attacker(step, erasures.figures)


def _forged(server: ServiceProcess) -> _Attacker:
    """Request decisions as a page of another origin would, or without the headers that HTTP or the service require."""
    figures, body = {"forged requests refused": 0, "forged requests not refused": 0}, json.dumps(DECISION).encode()

    def step() -> None:
        for headers, status in FORGED:
            head = f"POST /v1/recommend HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            with _connect(server) as connection:
                connection.sendall(head.encode() + body)
                refused = connection.recv(len(b"HTTP/1.1 403")).endswith(str(status).encode())
            figures["forged requests refused" if refused else "forged requests not refused"] += 1

    return _Attacker(step, figures)
