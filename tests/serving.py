"""A service in this process, asked as clients ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from locb.service.options import Options
from locb.service.service import Service
from locb.service.web.app import make_app
from locb.service.web.tokens import Tokens


@contextmanager
def serving(folder: Path, tokens: Tokens | None = None, **options: Any) -> Iterator[tuple[TestClient, Service]]:
    """A client and the service that it asks, until the block ends; then the service stops as on SIGTERM."""
    service = Service(Options(folder, **({"dim": 3, "policy": "linucb-ind"} | options)))
    app = make_app(service, Tokens() if tokens is None else tokens)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client, service


def arms(*vectors: Any) -> list[dict[str, Any]]:
    """Arms a, b, c … with these features."""
    return [{"id": chr(ord("a") + place), "features": vector} for place, vector in enumerate(vectors)]
