"""HTTP/1.1 from the asking side, one request at a time, as little as it takes."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, cast

LARGEST_HEAD = 65_536
LARGEST_BODY = 64 * 1024 * 1024


class Asker(Protocol):
    """Whoever wants answers."""

    def answered(self, connection: Connection, status: int, body: bytes) -> None:
        """An answer is complete, and the connection can be asked again unless it is closed."""

    def lost(self, connection: Connection) -> None:
        """The connection is gone; what it was asked stays without an answer."""


class Connection(asyncio.Protocol):
    """A connection that is kept alive. ``job`` is the asker's own: what the answer is for."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self.job: Any = None
        self.asked_at = 0.0
        self.closed = False
        self._buffer = b""
        self._needed = 0  # bytes before it is worth looking at the buffer again

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way out."""
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes, job: Any, now: float) -> None:
        """Send; the asker is told the answer."""
        self.job, self.asked_at = job, now
        self._transport.write(request)

    def close(self) -> None:
        """Leave at once; an answer under way is lost."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Put together what came, until it is an answer."""
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = self._buffer
        try:
            answer = self._parse(data, ended=False)
        except ValueError:
            self.close()
            return
        if answer is None:
            self._buffer = data
            return
        self._buffer, self._needed = b"", 0
        self._tell(*answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """An answer without a length ends here; otherwise there is none."""
        answer = None
        if self._buffer and exc is None:
            try:
                answer = self._parse(self._buffer, ended=True)
            except ValueError:
                answer = None
        self.closed = True
        if answer is not None and self.job is not None:
            self._tell(*answer)
        self.asker.lost(self)

    def _tell(self, status: int, body: bytes, closing: bool) -> None:
        if self.job is None:  # an answer that nobody asked for, such as 408 to a connection that was idle
            self.close()
            return
        if closing and not self.closed:
            self.closed = True
            self._transport.close()
        self.asker.answered(self, status, body)

    def _parse(self, data: bytes, *, ended: bool) -> tuple[int, bytes, bool] | None:
        """Status, body, and whether the connection ends; None while something is missing."""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > LARGEST_HEAD:
                raise ValueError("no end of the head")
            return None
        head = data[: end + 2].lower()
        if not head.startswith(b"http/1."):
            raise ValueError("not HTTP/1")
        status, start = int(head[9:12]), end + 4
        if 100 <= status < 200:
            return self._parse(data[start:], ended=ended)
        closing = b"\r\nconnection: close\r\n" in head or head.startswith(b"http/1.0")
        place = head.find(b"\r\ncontent-length:")
        if place >= 0:
            length = int(head[place + 17 : head.find(b"\r\n", place + 17)])
            if not 0 <= length <= LARGEST_BODY:
                raise ValueError("a length that cannot be")
            stop = start + length
            if len(data) == stop:
                return status, data[start:], closing
            if len(data) > stop:
                raise ValueError("more than one answer")
            self._needed = stop
            return None
        if b"\r\ntransfer-encoding: chunked\r\n" in head:
            body = _joined(data, start)
            return None if body is None else (status, body, closing)
        if status in (204, 304):
            return status, b"", closing
        return (status, data[start:], True) if ended else None


def _joined(data: bytes, start: int) -> bytes | None:
    """The chunks of a body as one; None while the last is missing."""
    chunks: list[bytes] = []
    while True:
        line = data.find(b"\r\n", start)
        if line < 0:
            return None
        size = int(data[start:line].partition(b";")[0], 16)
        if not 0 <= size <= LARGEST_BODY:
            raise ValueError("a chunk that cannot be")
        if len(data) < line + 2 + size + 2:
            return None
        if size == 0:
            return b"".join(chunks)
        chunks.append(data[line + 2 : line + 2 + size])
        start = line + 2 + size + 2
