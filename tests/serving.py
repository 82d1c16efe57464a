"""A service in a thread of this process, with an HTTP client."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import uvicorn

from locb.service.api.app import make_app
from locb.service.api.auth import Tokens
from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.responses import SECURITY_HEADERS
from locb.service.server import uvicorn_config


@contextmanager
def serving(folder: Path, tokens: Tokens | None = None, **options: Any) -> Iterator[tuple[httpx.Client, Service]]:
    """Provide a client and its service; at the end, the service shuts down as on SIGTERM."""
    service = Service(ServiceConfig(folder, **({"port": 0, "dim": 3, "policy": "linucb-ind"} | options)))
    app = make_app(service, Tokens() if tokens is None else tokens)
    server = uvicorn.Server(uvicorn_config(app, service.config))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as client:
            yield client, service
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def stalled(service: Service) -> Iterator[None]:
    """Keep all commands in the queue, as while a commit takes long."""
    committer = service.committer
    assert committer._worker is not None
    loop = committer._worker.get_loop()
    asyncio.run_coroutine_threadsafe(committer.commit_lock.acquire(), loop).result()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(committer.commit_lock.release)


def arms(*vectors: Any) -> list[dict[str, Any]]:
    """Return arms with the ids a, b, c, … and these features."""
    return [{"id": chr(ord("a") + number), "features": vector} for number, vector in enumerate(vectors)]


def in_path(user: str) -> str:
    """Return a user id as a segment of a path; dots are encoded, because the client would resolve ``..``."""
    return quote(user, safe="").replace(".", "%2E")


def play(client: httpx.Client, rng: np.random.Generator, users: list[str], rounds: int) -> None:
    """Request decisions for random users, and send random rewards."""
    for _ in range(rounds):
        user = users[rng.integers(len(users))]
        request = {"user": user, "arms": arms(*rng.normal(size=(3, 3)).tolist())}
        decision = client.post("/v1/recommend", json=request).raise_for_status().json()
        reward = {"decision_id": decision["decision_id"], "reward": float(rng.random())}
        client.post("/v1/reward", json=reward).raise_for_status()


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    """Wait until a condition holds, or fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition does not hold in time"
        time.sleep(0.02)


def same_state(first: Any, second: Any) -> bool:
    """Return whether two policies are equal bit for bit."""
    first_arrays, second_arrays = first._arrays(), second._arrays()
    return first_arrays.keys() == second_arrays.keys() and all(
        np.array_equal(first_arrays[name], second_arrays[name]) for name in first_arrays
    )


def state(service: Service) -> Any:
    """Return all state that a request can change."""
    rows = sum(len(chunk) for chunk in service.log.decisions()) + sum(
        len(chunk) for chunk in service.log.observations(0)
    )
    arrays = {name: array.tobytes() for name, array in service.policy._arrays().items()}
    return service.engine.seq, rows, service.log.users(), service.log.settings(), arrays


def is_safe(response: httpx.Response) -> None:
    """Check the security headers that every response has."""
    for name, value in SECURITY_HEADERS.items():
        assert response.headers.get(name) == value, f"{response.request.method} {response.url}: {name}"
    assert "server" not in response.headers
