"""HTTP as uvicorn speaks it, but for this: an answer goes out in one piece, and what is not HTTP is a problem too."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from locb.service.problems import ProblemError
from locb.service.web.gate import told


class OnePieceProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a transport that waits for the body before it sends the head."""

    def connection_made(self, transport: Any) -> None:
        """Begin a connection."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]  # it has all that is used of one

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is a problem as others are."""
        problem = told(ProblemError(400, "bad-request", msg))
        headers = [*self.server_state.default_headers, *problem.raw_headers, (b"connection", b"close")]
        lines = [b"HTTP/1.1 400 Bad Request", *(name + b": " + value for name, value in headers), b""]
        self.transport.write(b"\r\n".join([*lines, bytes(problem.body)]))
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
