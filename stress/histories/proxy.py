"""Proxy between a service and PostgreSQL, which can lose the responses to commits."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType

CHUNK_BYTES = 65_536
COMMIT = b"COMMIT"
# Batches without users and activations are one prepared statement, which commits by itself. psycopg chooses its name.
PREPARED, MIN_BATCH_BYTES = b"_pg3_", 400


class Proxy:
    """Proxy in background threads, on a free port of the loopback interface.

    Parameters
    ----------
    port : int
        Port of the PostgreSQL server.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._armed = threading.Event()
        self._lost = threading.Event()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for opened in (self._listener, *self._sockets):
            _close(opened)

    def lose_response(self, timeout: float) -> bool:
        """Close the connection of the next commit after the server has executed it, and before its response.

        Return whether there was a commit within ``timeout`` seconds.
        """
        self._lost.clear()
        self._armed.set()
        lost = self._lost.wait(timeout)
        self._armed.clear()
        return lost

    def _accept(self) -> None:
        with suppress(OSError):  # the proxy is closed
            while True:
                _Link(self, self._listener.accept()[0])

    def connect(self) -> socket.socket:
        """Open a connection to the server."""
        return socket.create_connection(("127.0.0.1", self._server_port))

    def track(self, *sockets: socket.socket) -> None:
        """Close these sockets at the end."""
        self._sockets.update(sockets)

    def take_commit(self, data: bytes) -> bool:
        """Return whether the response to these data must be lost."""
        commits = COMMIT in data or (PREPARED in data and len(data) >= MIN_BATCH_BYTES)
        if not commits or not self._armed.is_set():
            return False
        self._armed.clear()
        return True

    def count_loss(self) -> None:
        """Report that a response was lost."""
        self._lost.set()


class _Link:
    """Connection of a client with its connection to the server, and two threads that forward data."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy, self._client = proxy, client
        self._losing = False
        try:
            self._server = proxy.connect()
        except OSError:  # the server is down
            _close(client)
            return
        proxy.track(client, self._server)
        threading.Thread(target=self._forward_requests, daemon=True).start()
        threading.Thread(target=self._forward_responses, daemon=True).start()

    def _forward_requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(CHUNK_BYTES):
                if self._proxy.take_commit(data):
                    self._losing = True
                self._server.sendall(data)
        self._close()

    def _forward_responses(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(CHUNK_BYTES):
                if self._losing:
                    self._proxy.count_loss()
                    break
                self._client.sendall(data)
        self._close()

    def _close(self) -> None:
        _close(self._client)
        _close(self._server)


def _close(opened: socket.socket) -> None:
    with suppress(OSError):  # ends a call of recv or accept in another thread
        opened.shutdown(socket.SHUT_RDWR)
    opened.close()
