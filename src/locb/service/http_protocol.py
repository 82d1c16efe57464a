"""Extension of uvicorn's HTTP protocol: one write per response, problems for invalid HTTP, timeouts and limits."""

from __future__ import annotations

import asyncio
import logging
import math
from contextvars import copy_context
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from locb.recommender.interfaces import REQUEST_ID
from locb.service import errors
from locb.service.api.middleware import REQUEST_ID_HEADER, make_request_id
from locb.service.connections import Connections, client_network
from locb.service.errors import ProblemError
from locb.service.responses import problem_response

# Received data are parsed in parts, so that a client with many small requests, headers or chunks neither blocks the
# event loop nor fills the memory: the requests of one part are handled before the next part is parsed.
PART_BYTES = 4_096
MAX_PARTS = 4  # parts of one connection that are parsed before other connections have their turn
_log = logging.getLogger("locb.service")


class SingleWriteProtocol(HttpToolsProtocol):
    """HTTP protocol of one connection, which sends the head and the body of a response in one write.

    Parameters
    ----------
    open_connections : Connections
        All connections. This object closes connections on which requests do not arrive.
    max_header_bytes : int
        Maximum size of the request line and the headers of a request, and of the trailers of its body, in bytes.
    """

    def __init__(self, *arguments: Any, open_connections: Connections, max_header_bytes: int, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.reading_since = math.inf
        self.sending_since = math.inf
        self._idle_since = math.inf  # event loop time of the last response
        self.client_network = ""
        self._open_connections = open_connections
        self._max_header_bytes = max_header_bytes
        self._header_bytes = 0  # bytes since the start of the request, or since the last part of its body
        self._head_complete = False
        self._unparsed = bytearray()  # received data; no more are received until these are parsed
        self._parsing: asyncio.Handle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the read timeout of a new connection."""
        super().connection_made(_SingleWriteTransport(transport))  # type: ignore[arg-type]  # duck-typed
        self.flow = self._flow = _FlowControl(transport)
        self.reading_since = self.loop.time()
        self.client_network = client_network(self.client[0]) if self.client else ""
        self._open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking the read timeout of a closed connection."""
        self._open_connections.discard(self)
        self._unparsed.clear()
        super().connection_lost(exc)

    def _unset_keepalive_if_required(self) -> None:
        """Restart the read timeout when data arrive between requests, even a blank line that starts no request."""
        if self.timeout_keep_alive_task is not None:
            self.reading_since = self.loop.time()
            super()._unset_keepalive_if_required()

    def on_message_begin(self) -> None:
        """Start the read timeout of a request."""
        self.reading_since = self.loop.time()
        self._head_complete = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start to handle a request, unless its head is too large."""
        self._head_complete = True
        if self._header_bytes > self._max_header_bytes:  # perhaps with a part of the body
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > self._max_header_bytes:
                raise errors.headers_too_large(self._max_header_bytes)
        super().on_headers_complete()
        self.scope["send_whole"] = partial(send_whole, self.cycle)  # type: ignore[typeddict-unknown-key]

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body, whose size the middleware limits."""
        self._header_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the read timeout of a request."""
        self.reading_since = math.inf
        self._header_bytes = 0
        self.headers = []  # they belong to this request, and not to data that follow
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request, or with data that are not parsed yet."""
        super().on_response_complete()
        self._idle_since = self.loop.time()
        if self.transport.is_closing():
            self._send_rest()
        elif self._unparsed and not self.pipeline:
            self._parse_soon()

    def pause_writing(self) -> None:
        """Start the send timeout: the client reads more slowly than it requests."""
        super().pause_writing()
        self.sending_since = self.loop.time()

    def resume_writing(self) -> None:
        """End the send timeout."""
        super().resume_writing()
        self.sending_since = math.inf

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without requests, also if its client has not read all responses."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def waiting_since(self) -> float:
        """Return the event loop time since which the service waits for the client, see ``Connection``."""
        since = min(self.reading_since, self.sending_since)
        if since < math.inf or self.timeout_keep_alive_task is None:
            return since
        return self._idle_since

    def refuse(self, problem: ProblemError) -> None:
        """Close the connection, with a problem if a part of a request has arrived and no response has started."""
        self._unparsed.clear()
        responding = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if self.reading_since == math.inf or responding:
            self.transport.close()
        else:
            self._respond_and_close(problem)
        self.reading_since = math.inf
        if self.transport.get_write_buffer_size():  # the client does not read the responses
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse data, or the first part of many data."""
        self._unset_keepalive_if_required()
        if len(data) <= PART_BYTES and not self._unparsed:
            self._parse(data)
        else:
            self._unparsed += data
            self._flow.hold_reading()
            self._parse_parts()

    def _parse_soon(self) -> None:
        if self._parsing is None:
            self._parsing = self.loop.call_soon(self._parse_parts)

    def _parse_parts(self) -> None:
        """Parse up to ``MAX_PARTS`` parts of the received data; stop if a request must wait for an earlier response."""
        if self._parsing is not None:
            self._parsing.cancel()
            self._parsing = None
        for _ in range(MAX_PARTS):
            if not self._unparsed or self.pipeline or self.transport.is_closing():
                break
            self._unset_keepalive_if_required()
            part = bytes(self._unparsed[:PART_BYTES])
            del self._unparsed[:PART_BYTES]
            self._parse(part)
        if self.transport.is_closing():
            self._unparsed.clear()
        elif not self._unparsed:
            self._flow.release_reading(paused=bool(self.pipeline))
        elif self.pipeline:  # ``on_response_complete`` continues; this connection does not wait for its client
            self.reading_since = math.inf
        else:
            self._parse_soon()

    def _parse(self, data: bytes) -> None:
        """Parse data. Respond to invalid HTTP with 400, and handle requests for a websocket as plain HTTP requests."""
        self._header_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            invalid = errors.bad_request(  # the texts of the parser do not contain data of the request
                f"the request is not valid HTTP: {error}; the service accepts only plain HTTP/1.1; use a reverse proxy "
                "for HTTPS or HTTP/2"
            )
            problem = error.__context__ if isinstance(error.__context__, ProblemError) else invalid
            self._respond_and_close(problem, log=True)
        except httptools.HttpParserUpgrade:
            pass
        else:
            if self._header_bytes > self._max_header_bytes:
                self._close_large()

    def _close_large(self) -> None:
        """Close the connection because the head or the trailers of a request are too large.

        A large head gets a response with status 431; large trailers get no response.
        """
        if self._head_complete:
            self.transport.close()
            self._send_rest()
        else:
            self._respond_and_close(errors.headers_too_large(self._max_header_bytes), log=True)

    def _send_rest(self) -> None:
        """Start the send timeout of a connection that is closed when its client has read all responses."""
        if self.sending_since == math.inf and self.transport.get_write_buffer_size():
            self.sending_since = self.loop.time()

    def _respond_and_close(self, error: ProblemError, *, log: bool = False) -> None:
        # In a copy of the context, so that the request id does not apply to later requests of the connection.
        copy_context().run(self._write_problem, error, log)
        self.transport.close()
        self._send_rest()

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


def send_whole(cycle: Any, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
    """Send a whole response, or return False if the caller must send it with the messages of ASGI.

    This is faster than the messages of ASGI, for which uvicorn checks all headers with regular expressions. The headers
    must be valid, with names in lower case, and include ``Content-Length``.

    Parameters
    ----------
    cycle : RequestResponseCycle
        The request and its response, an object of uvicorn.
    status : int
        HTTP status.
    headers : list of (bytes, bytes)
        Headers of the response.
    body : bytes
        Body of the response.
    """
    unusual = cycle.response_started or cycle.disconnected or not cycle.keep_alive or cycle.flow.write_paused
    if unusual or cycle.scope["method"] == "HEAD":
        return False
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    lines = [STATUS_LINE[status]]
    for name, value in (*cycle.default_headers, *headers):
        lines += (name, b": ", value, b"\r\n")
    cycle.transport.write_whole(b"".join([*lines, b"\r\n", body]))
    cycle.message_event.set()
    cycle.on_response()
    return True


class _FlowControl(FlowControl):
    """Flow control that receives no data while earlier data are not parsed."""

    _held = False

    def hold_reading(self) -> None:
        """Receive no data until ``release_reading`` is called."""
        self._held = True
        self.pause_reading()

    def release_reading(self, *, paused: bool) -> None:
        """Receive data again; if ``paused``, only when ``resume_reading`` is called."""
        self._held = False
        if not paused:
            self.resume_reading()

    def resume_reading(self) -> None:
        """Receive data again, unless earlier data are not parsed."""
        if not self._held:
            super().resume_reading()


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
        if self._transport.is_closing():  # perhaps aborted while the response waited to be sent
            return
        if self._held is not None:
            data, self._held = self._held + data, None
            self._transport.write(data)
        elif data.startswith(b"HTTP/"):
            self._held = data
            self._loop.call_soon(self._send_held)
        else:
            self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """Send a whole response."""
        if self._transport.is_closing():
            return
        self._send_held()
        self._transport.write(data)

    def _send_held(self) -> None:
        if self._held is not None:
            data, self._held = self._held, None
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Send delayed data and close the transport."""
        self._send_held()
        self._transport.close()
