"""HTTP as uvicorn speaks it, but for this: an answer goes out in one piece, what is not HTTP is a problem too, and who
sends too slowly is not waited for.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from locb.service.errors import ProblemError
from locb.service.read_timeouts import ReadTimeouts
from locb.service.responses import problem_response


class SingleWriteProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a transport that waits for the body before it sends the head."""

    def __init__(self, *arguments: Any, arrivals: ReadTimeouts, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.since = math.inf
        self._arrivals = arrivals

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]  # it has all that is used of one
        self.since = self.loop.time()
        self._arrivals.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._arrivals.discard(self)
        super().connection_lost(exc)

    def _unset_keepalive_if_required(self) -> None:
        """The rest after an answer is over, also if it is a blank line that ends it, which begins no request."""
        if self.timeout_keep_alive_task is not None:
            self.since = self.loop.time()
            super()._unset_keepalive_if_required()

    def on_message_begin(self) -> None:
        """A request arrives."""
        self.since = self.loop.time()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """It has arrived."""
        self.since = math.inf
        super().on_message_complete()

    def give_up(self, seconds: float) -> None:
        """The request that is arriving took longer than this."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self._end(ProblemError(408, "timeout", f"the request did not arrive in {seconds:g} seconds"))
        else:  # it is answered already, whatever its body
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is a problem as others are."""
        self._end(ProblemError(400, "bad-request", msg))

    def _end(self, error: ProblemError) -> None:
        problem = problem_response(error)
        headers = [*self.server_state.default_headers, *problem.raw_headers]
        if not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        status = f"HTTP/1.1 {error.status.value} {error.status.phrase}".encode()
        lines = [status, *(name + b": " + value for name, value in headers), b"", bytes(problem.body)]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Whoever asks for a websocket is answered as though they had not, and no line of the log is spent on it."""


class _Joined:
    """A transport that holds the head of a response until the body follows, or the loop comes round again."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: bytes | None = None
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, or hold if it is a head."""
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
        """Send what is held, and close."""
        self._send_held()
        self._transport.close()
