"""A service in a thread of this process, asked over loopback as clients ask it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    """A client and the service that it asks, until the block ends; then the service stops as on SIGTERM."""
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


def arms(*vectors: Any) -> list[dict[str, Any]]:
    """Arms a, b, c … with these features."""
    return [{"id": chr(ord("a") + place), "features": vector} for place, vector in enumerate(vectors)]


def wait_for(condition: Any, seconds: float = 10.0) -> None:
    """Until it holds; an error if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def same_state(first: Any, second: Any) -> bool:
    """Whether two policies are equal to the last bit."""
    one, other = first._arrays(), second._arrays()
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def state(service: Service) -> Any:
    """All that a request could have changed."""
    rows = sum(len(chunk) for chunk in service.log.decisions()) + sum(
        len(chunk) for chunk in service.log.observations(0)
    )
    arrays = {name: array.tobytes() for name, array in service.policy._arrays().items()}
    return service.engine.seq, rows, service.log.users(), service.log.settings(), arrays


def is_safe(response: httpx.Response) -> None:
    """It has the headers that every answer has."""
    for name, value in SECURITY_HEADERS.items():
        assert response.headers.get(name) == value, f"{response.request.method} {response.url}: {name}"
    assert "server" not in response.headers
