"""Extension of uvicorn's HTTP protocol: one write per response, problems for invalid HTTP, and read timeouts."""

from __future__ import annotations

import asyncio
import logging
import math
from contextvars import copy_context
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from locb.service import errors
from locb.service.api.middleware import REQUEST_ID_HEADER, make_request_id
from locb.service.errors import REQUEST_ID, ProblemError
from locb.service.read_timeouts import ReadTimeouts
from locb.service.responses import problem_response

_log = logging.getLogger("locb.service")


class SingleWriteProtocol(HttpToolsProtocol):
    """HTTP protocol of one connection, which sends the head and the body of a response in one write.

    Parameters
    ----------
    read_timeouts : ReadTimeouts
        Calls ``on_read_timeout`` when a request takes too long to arrive.
    """

    def __init__(self, *arguments: Any, read_timeouts: ReadTimeouts, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.reading_since = math.inf
        self._read_timeouts = read_timeouts

    def connection_made(self, transport: Any) -> None:
        """Start the read timeout of a new connection."""
        super().connection_made(_SingleWriteTransport(transport))  # type: ignore[arg-type]  # duck-typed
        self.reading_since = self.loop.time()
        self._read_timeouts.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking the read timeout of a closed connection."""
        self._read_timeouts.discard(self)
        super().connection_lost(exc)

    def _unset_keepalive_if_required(self) -> None:
        """Restart the read timeout when data arrive between requests, even a blank line that starts no request."""
        if self.timeout_keep_alive_task is not None:
            self.reading_since = self.loop.time()
            super()._unset_keepalive_if_required()

    def on_message_begin(self) -> None:
        """Start the read timeout of a request."""
        self.reading_since = self.loop.time()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """End the read timeout of a request."""
        self.reading_since = math.inf
        self.headers = []  # they belong to this request, and not to data that follow
        super().on_message_complete()

    def on_read_timeout(self, seconds: float) -> None:
        """Respond with 408, unless a response has already started, and close the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self._respond_and_close(errors.read_timeout(seconds))
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse data. Respond to invalid HTTP with 400, and handle requests for a websocket as plain HTTP requests."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self._respond_and_close(errors.bad_request("the request is not valid HTTP"), log=True)
        except httptools.HttpParserUpgrade:
            pass

    def _respond_and_close(self, error: ProblemError, *, log: bool = False) -> None:
        # In a copy of the context, so that the request id does not apply to later requests of the connection.
        copy_context().run(self._write_problem, error, log)
        self.transport.close()

    def _write_problem(self, error: ProblemError, log: bool) -> None:
        request_id = make_request_id(dict(self.headers or ()))
        REQUEST_ID.set(request_id)
        if log:
            _log.warning("%s: %s", error.problem.title, error.problem.detail)
        problem = problem_response(error)
        headers = [*self.server_state.default_headers, *problem.raw_headers, (REQUEST_ID_HEADER, request_id.encode())]
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        status = f"HTTP/1.1 {error.status.value} {error.status.phrase}".encode()
        lines = [status, *(name + b": " + value for name, value in headers), b"", bytes(problem.body)]
        self.transport.write(b"\r\n".join(lines))


class _SingleWriteTransport:
    """Transport that delays the head of a response until the body follows or the event loop runs again."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: bytes | None = None
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data. The head of a response is delayed and sent together with the data that follow."""
        if self._held is not None:
            data, self._held = self._held + data, None
            self._transport.write(data)
        elif data.startswith(b"HTTP/"):
            self._held = data
            self._loop.call_soon(self._send_held)
        else:
            self._transport.write(data)

    def _send_held(self) -> None:
        if self._held is not None:
            data, self._held = self._held, None
            self._transport.write(data)

    def close(self) -> None:
        """Send delayed data and close the transport."""
        self._send_held()
        self._transport.close()
