"""Minimal HTTP/1.1 client connection with keep-alive and one request at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 64 * 1024 * 1024


class ResponseHandler(Protocol):
    """Callbacks of a connection."""

    def response_received(self, connection: Connection, status: int, body: bytes) -> None:
        """Handle a complete response. The connection can send the next request, unless it is closed."""

    def connection_lost(self, connection: Connection) -> None:
        """Handle the end of a connection. A request in progress gets no response."""


class Connection(asyncio.Protocol):
    """HTTP connection with keep-alive, which sends one request at a time."""

    def __init__(self, handler: ResponseHandler) -> None:
        self.handler = handler
        self.job: Any = None  # object of the handler that identifies the request in progress; None if there is none
        self.sent_at = 0.0  # time at which the request was sent, on the clock of the handler
        self.closed = False
        self._buffer = b""
        self._needed = 0  # bytes that must arrive before parsing can succeed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes, job: Any, now: float) -> None:
        """Send a request. The handler receives the response."""
        self.job, self.sent_at = job, now
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection at once. A response in progress is lost."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Collect data until the response is complete, then pass the response to the handler."""
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = self._buffer
        try:
            response = self._parse(data, ended=False)
        except ValueError:
            self.close()
            return
        if response is None:
            self._buffer = data
            return
        self._buffer, self._needed = b"", 0
        self._deliver(*response)

    def connection_lost(self, exc: Exception | None) -> None:
        """Deliver a response whose end is the end of the connection, and notify the handler."""
        response = None
        if self._buffer and exc is None:
            try:
                response = self._parse(self._buffer, ended=True)
            except ValueError:
                response = None
        self.closed = True
        if response is not None and self.job is not None:
            self._deliver(*response)
        self.handler.connection_lost(self)

    def _deliver(self, status: int, body: bytes, closing: bool) -> None:
        if self.job is None:  # unsolicited, such as 408 on an idle connection
            self.close()
            return
        if closing and not self.closed:
            self.closed = True
            self._transport.close()
        self.handler.response_received(self, status, body)

    def _parse(self, data: bytes, *, ended: bool) -> tuple[int, bytes, bool] | None:
        """Return status, body, and whether the connection closes; None while the response is incomplete.

        ``ended`` is whether the connection has ended, so that no more data follow.
        """
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > MAX_HEAD_BYTES:
                raise ValueError("the header section is too long")
            return None
        head = data[: end + 2].lower()
        if not head.startswith(b"http/1."):
            raise ValueError("the response is not HTTP/1")
        status, start = int(head[9:12]), end + 4
        if 100 <= status < 200:
            return self._parse(data[start:], ended=ended)
        closing = b"\r\nconnection: close\r\n" in head or head.startswith(b"http/1.0")
        position = head.find(b"\r\ncontent-length:")
        if position >= 0:
            length = int(head[position + 17 : head.find(b"\r\n", position + 17)])
            if not 0 <= length <= MAX_BODY_BYTES:
                raise ValueError("invalid Content-Length")
            stop = start + length
            if len(data) == stop:
                return status, data[start:], closing
            if len(data) > stop:
                raise ValueError("more than one response")
            self._needed = stop
            return None
        if b"\r\ntransfer-encoding: chunked\r\n" in head:
            body = _join_chunks(data, start)
            return None if body is None else (status, body, closing)
        if status in (204, 304):
            return status, b"", closing
        return (status, data[start:], True) if ended else None


def _join_chunks(data: bytes, start: int) -> bytes | None:
    """Return the body of a chunked response that begins at ``start``; None while the body is incomplete."""
    chunks: list[bytes] = []
    while True:
        line = data.find(b"\r\n", start)
        if line < 0:
            return None
        size = int(data[start:line].partition(b";")[0], 16)
        if not 0 <= size <= MAX_BODY_BYTES:
            raise ValueError("invalid chunk size")
        if len(data) < line + 2 + size + 2:
            return None
        if size == 0:
            return b"".join(chunks)
        chunks.append(data[line + 2 : line + 2 + size])
        start = line + 2 + size + 2
