"""Process of a service: logging, socket, signals and the HTTP server."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from locb.recommender.interfaces import REQUEST_ID
from locb.service.api.app import make_app
from locb.service.api.auth import Tokens
from locb.service.api.middleware import is_loopback
from locb.service.api.token_file import TokenFile
from locb.service.config import ServiceConfig
from locb.service.connections import Connections
from locb.service.core.service import Service
from locb.service.http_protocol import SingleWriteProtocol
from locb.service.store.database import StoreError

SWITCH_INTERVAL = (
    0.0005  # seconds: with the default, 5 ms, the writer thread waits longer for the GIL than for the disk
)
CHECK_INTERVAL = 0.1  # seconds between checks whether the store responds, after the shutdown timeout
OTHER_FILES = 200  # open files besides connections: database, snapshots, exports
_log = logging.getLogger("locb.service")


class JsonFormatter(logging.Formatter):
    """Log formatter that writes each record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON: time (UTC), level, message, request id and, for an exception, the traceback.

        A message that belongs to several requests has the ids of all of them.
        """
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        request_id = getattr(record, "request_id", None) or REQUEST_ID.get()
        if request_id is not None:
            entry["request_id"] = request_id
        if hasattr(record, "request_ids"):
            entry["request_ids"] = record.request_ids
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure_logging(level: str) -> None:
    """Write log messages to standard error as JSON.

    The logger of the service writes messages of at least ``level``, one of ``config.LOG_LEVELS``. The loggers of the
    compiler and of uvicorn write warnings and errors.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("locb.service", "locb.compilation", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == "locb.service" else "WARNING")


def serve(config: ServiceConfig, on_listening: Callable[[str], None]) -> None:
    """Run a service until SIGINT or SIGTERM stops it. With a token file, SIGHUP reads this file again.

    Parameters
    ----------
    config : ServiceConfig
        The configuration.
    on_listening : callable
        Called with the address of the service when the port is bound, before the service is ready.

    Raises
    ------
    ValueError
        If the configuration is invalid, if the address cannot be bound, or if other machines could use the service
        without a token.
    AlreadyOpenError
        If another process uses the same folder or database.
    StoreError
        If the store is unavailable at startup, or if another process has written to the log.
    """
    tokens = Tokens()
    token_file = None if config.token_file is None else TokenFile(config.token_file, tokens)
    if not tokens.required and not is_loopback(config.host):
        reason = "is not a loopback address, so other machines could use the service without a token"
        raise ValueError(f"--host {config.host} {reason}: add --token-file, or use --host 127.0.0.1")
    if token_file is not None:
        signal.signal(signal.SIGHUP, lambda *_: token_file.request_reload())
    with listen(config.host, config.port) as listener:
        host = f"[{config.host.strip('[]')}]" if ":" in config.host else config.host
        on_listening(f"http://{host}:{listener.getsockname()[1]}")

        stopped = threading.Event()

        def stop(*_: object) -> None:
            server.should_exit = True
            threading.Thread(target=_exit_without_store, args=(service, stopped), daemon=True).start()

        service = Service(config, on_fatal_error=stop)
        app = make_app(service, tokens, token_file, prepare_charts=True)
        server = _Server(uvicorn_config(app, config), stop)
        # uvicorn raises the signal again after the shutdown, which would look like a failure.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        # Requests create no reference cycles. With the default thresholds, searching for cycles took 12% of the time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        sys.setswitchinterval(SWITCH_INTERVAL)
        raise_file_limit(config.max_connections + OTHER_FILES)
        server.run(sockets=[listener])
        stopped.set()
    _log.info("stopped")
    if service.fatal_error is not None:
        raise StoreError(service.fatal_error)


class _Server(uvicorn.Server):
    """Server that calls ``on_signal`` for each signal that stops it. uvicorn replaces the handlers of the caller."""

    def __init__(self, config: uvicorn.Config, on_signal: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_signal = on_signal

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server; a second SIGINT stops it without waiting for requests."""
        super().handle_exit(sig, frame)
        self._on_signal()


def _exit_without_store(service: Service, stopped: threading.Event) -> None:
    """End the process if the service has not stopped after ``--shutdown-timeout``, and the store is unavailable.

    The log has all acknowledged events.
    """
    seconds = service.config.shutdown_timeout
    while not stopped.wait(seconds):
        reason = service.committer.store_error
        if reason is not None:
            _log.critical("exit without a final snapshot, because the store is unavailable: %s", reason)
            os._exit(1)
        seconds = CHECK_INTERVAL  # the store can become unavailable later


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    ``serve`` calls this function first, so that an address in use is reported at once.

    Raises
    ------
    ValueError
        If the address cannot be bound.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise ValueError(
            f"cannot listen on --host {host} --port {port}: {reason}; choose another address or port"
        ) from None
    return listener


def raise_file_limit(files: int) -> None:
    """Raise the soft limit of open files of this process to ``files``.

    If the hard limit is lower, raise the soft limit to the hard limit, and log a warning.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < files:
        allowed = files if hard == unlimited else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < files:
            advice = "raise the limit (ulimit -n, LimitNOFILE), or lower --max-connections"
            _log.warning("--max-connections needs %d open files, but the limit is %d: %s", files, hard, advice)


def uvicorn_config(app: ASGIApp, config: ServiceConfig) -> uvicorn.Config:
    """Return the uvicorn configuration that corresponds to the configuration of a service."""
    protocol = partial(
        SingleWriteProtocol,
        open_connections=Connections(config.read_timeout, config.max_connections, config.max_connections_per_client),
        max_header_bytes=config.max_header_bytes,
    )
    return uvicorn.Config(
        app,
        host=config.host,
        port=config.port,
        http=protocol,  # type: ignore[arg-type]  # a factory
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        date_header=True,
        timeout_keep_alive=config.keep_alive_timeout,  # type: ignore[arg-type]  # seconds, also fractions
        timeout_graceful_shutdown=config.shutdown_timeout,  # type: ignore[arg-type]  # seconds, also fractions
        backlog=config.backlog,
    )
