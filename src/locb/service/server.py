"""The process: logs, a socket, signals."""

from __future__ import annotations

import gc
import json
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from locb.service.api.app import make_app
from locb.service.api.auth import Tokens, is_loopback
from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.http_protocol import SingleWriteProtocol
from locb.service.read_timeouts import ReadTimeouts
from locb.service.store.database import StoreError

_log = logging.getLogger("locb.service")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message and, of a fault, where it was."""
        told: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            told["fault"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def configure_logging(level: str) -> None:
    """Send what the service has to say to standard error, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("locb.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == "locb.service" else "WARNING")


def serve(
    config: ServiceConfig, host: str, port: int, tokens: Tokens, shutdown_timeout: int, on_listening: Callable[[], None]
) -> None:
    """Serve until told to stop; ``listening`` is called once the address is ours, before the service is ready.

    Raises
    ------
    ValueError
        If the address can be reached from elsewhere and there are no tokens.
    AlreadyOpenError
        If another process serves from the same folder or database.
    StoreError
        If the log went on without us.
    """
    if not tokens and not is_loopback(host):
        raise ValueError(f"--host {host} can be reached from other machines: give a --token-file, or use 127.0.0.1")
    with listen(host, port) as listener:
        on_listening()
        service = Service(config)
        app = make_app(service, tokens, prepare_charts=True)
        server = uvicorn.Server(uvicorn_config(app, host, port, shutdown_timeout, config.read_timeout))
        # uvicorn raises the signal that stopped it once more when all is done: to who started us that is no failure.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        # What is there now stays, and requests leave no cycles behind: looking for them took an eighth of the time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        # The writer's thread, back from the disk, must not wait for its turn as long as the disk took: 5 ms is usual.
        sys.setswitchinterval(0.0005)
        server.run(sockets=[listener])
    _log.info("stopped")
    if service.given_up is not None:
        raise StoreError(service.given_up)


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address, before anything else is done: an address that is taken is told at once."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise ValueError(f"--host {host} --port {port}: {error.strerror or error}") from None
    return listener


def uvicorn_config(app: ASGIApp, host: str, port: int, shutdown_timeout: int, read_timeout: float) -> uvicorn.Config:
    """How uvicorn is to serve it."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=partial(SingleWriteProtocol, arrivals=ReadTimeouts(read_timeout)),  # type: ignore[arg-type]  # it makes one
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        date_header=True,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=shutdown_timeout,
        backlog=2048,
    )
