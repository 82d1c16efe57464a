"""Interruption of the connections of a PostgreSQL database while another thread opens a connection."""

import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

from sqlalchemy import make_url

from locb.service.store import database


class ClosedConnection:
    """Driver connection without a socket."""

    def fileno(self) -> int:
        raise OSError("closed")


class SharedSet(WeakSet[Any]):
    """Set of connections to which another thread adds one during an iteration, unless it must wait."""

    def __iter__(self) -> Iterator[Any]:
        for number, connection in enumerate(super().__iter__()):
            if number == 0:
                self.opened = ClosedConnection()
                self.thread = threading.Thread(target=database._add_connection, args=(self, self.opened))
                self.thread.start()
                self.thread.join(0.05)
            yield connection


def test_another_thread_can_open_a_connection_during_an_interruption() -> None:
    engine = database.connect(make_url("postgresql+psycopg://locb@127.0.0.1:1/none"))
    first, second = ClosedConnection(), ClosedConnection()
    database._opened[engine] = connections = SharedSet([first, second])
    database.interrupt(engine)
    connections.thread.join()
    assert len(connections) == 3
