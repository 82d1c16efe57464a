"""What the handlers of requests work with."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import Response

from locb.service.api.guard import SAFE_HEADERS, RequestGuard
from locb.service.api.metrics import Metrics
from locb.service.core.service import Service
from locb.service.dashboard.views import Views

_encode = msgspec.json.Encoder().encode
_JSON_HEADERS = [(name.encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
_JSON_HEADERS.append((b"content-type", b"application/json"))


class Json(Response):
    """JSON with the usual headers, which are not built anew each time."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [*_JSON_HEADERS, (b"content-length", b"%d" % len(body))]


class AppContext:
    """A service, the gate before it, and what is counted."""

    def __init__(self, service: Service, guard: RequestGuard) -> None:
        self.service = service
        self.guard = guard
        self.metrics = Metrics(service, guard)
        self.views = Views(service)

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def json(self, answer: Any, status: int = 200) -> Response:
        """An answer as JSON."""
        return Json(_encode(answer), status)

    def removing(self, path: Path) -> BackgroundTask:
        """Removes a file and its folder once it was sent."""
        return BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
