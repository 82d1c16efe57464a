"""Faults of a history, which are injected while clients send requests."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from stress.histories.clients import Clients
from stress.histories.forks import LEASE_SECONDS, ForkedService
from stress.histories.plan import Fault
from stress.histories.proxy import Proxy
from stress.stores import StoreLocation

TAKEOVER_SECONDS = 3.0  # time after which a second service that cannot open the store is given up
EXIT_SECONDS = 30.0  # time in which a service that has lost the store must end
OFFSETS = (-3600.0, 3600.0, -5.0, 5.0, 0.0)  # seconds, of the system time
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
MIN_FILE_BYTES = 1 << 14  # limit of the file size; snapshots are larger
PAGE_BYTES = 4096  # SQLite writes pages of this size, after a header
COMMIT_SECONDS = 10.0  # time in which the clients send a request that is committed


class Faults:
    """Injects faults into a service and its store.

    Parameters
    ----------
    location : StoreLocation
        Store of the service.
    service : ForkedService
        The service. It is running again after each fault.
    other : ForkedService
        Second service, with another data folder on the same store. It is running only during a fault.
    clients : Clients
        Clients, which some faults redirect to the second service.
    proxy : Proxy or None
        Proxy through which the service connects to PostgreSQL.
    """

    def __init__(
        self,
        location: StoreLocation,
        service: ForkedService,
        other: ForkedService,
        clients: Clients,
        proxy: Proxy | None,
    ) -> None:
        self._proxy = proxy
        self._location, self._service, self._other, self._clients = location, service, other, clients
        self.effects: Counter[str] = Counter()

    def inject(self, fault: Fault) -> None:
        """Inject a fault, and wait until the service is ready again."""
        faults: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "stop": self._stop,
            "hang service": self._hang_service,
            "hang store": self._hang_store,
            "full disk": self._fill_disk,
            "clock step": self._step_clock,
            "second service": self._start_second,
            "terminate connections": self._terminate,
            "crash store": self._crash_store,
            "take over": self._take_over,
            "steal lock": self._steal_lock,
            "expire lease": self._expire_lease,
            "lose responses": self._lose_responses,
        }
        faults[fault.name](fault)
        self._service.wait_ready()

    # Faults of the process

    def _kill(self, fault: Fault) -> None:  # noqa: ARG002 - all faults have the same parameter
        self._service.kill()
        self._service.launch()

    def _stop(self, fault: Fault) -> None:  # noqa: ARG002
        self._service.stop()
        self._service.launch()

    def _hang_service(self, fault: Fault) -> None:
        with stopped([self._service.pid]):
            time.sleep(fault.seconds)

    def _step_clock(self, fault: Fault) -> None:
        self._service.set_clock(OFFSETS[int(fault.strength * len(OFFSETS))])

    # Faults of the store

    def _fill_disk(self, fault: Fault) -> None:
        """Limit the size of the files that the service writes: the log (SQLite only) and the snapshots.

        With strength 0, nothing can be written to the log; otherwise, its files can only be overwritten.
        """
        sizes = [path.stat().st_size for path in self._service.folder.glob("log.db*")]
        limit = max([*sizes, MIN_FILE_BYTES]) if fault.strength else PAGE_BYTES
        unlimited = resource.RLIM_INFINITY
        resource.prlimit(self._service.pid, resource.RLIMIT_FSIZE, (limit, unlimited))
        try:
            time.sleep(fault.seconds)
        finally:
            resource.prlimit(self._service.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))

    def _hang_store(self, fault: Fault) -> None:
        """Stop all processes of PostgreSQL for some time, or hold the write lock of SQLite."""
        if self._location.cluster is not None:
            with stopped(self._location.cluster.processes()):
                time.sleep(fault.seconds)
            return
        database = sqlite3.connect(self._service.folder / "log.db", timeout=10.0, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            time.sleep(fault.seconds)
            database.execute("ROLLBACK")
        except sqlite3.OperationalError:  # the service writes all the time
            pass
        finally:
            database.close()

    def _terminate(self, fault: Fault) -> None:  # noqa: ARG002
        if self._location.url is not None:
            terminate_connections(self._location.url)

    def _crash_store(self, fault: Fault) -> None:
        if self._location.cluster is not None:
            self._location.cluster.stop()
            time.sleep(fault.seconds / 2)
            self._location.cluster.start()

    def _lose_responses(self, fault: Fault) -> None:
        """Close the connection of a commit after PostgreSQL has executed it, several times."""
        if self._proxy is not None:
            for _ in range(3 + int(fault.strength * 4)):
                self.effects["responses of commits lost"] += self._proxy.lose_response(COMMIT_SECONDS)
                time.sleep(fault.seconds / 5)

    # Two services on one store

    def _start_second(self, fault: Fault) -> None:  # noqa: ARG002
        """Start a second service while the first one is running.

        It gets the store only if the first one was too slow to extend its lease.
        """
        ready = self._try_second(0.0)
        self._other.stop()
        if ready:
            self._wait_for_exit()

    def _take_over(self, fault: Fault) -> None:
        """Let a second service take the store while the first one has lost its connections, then return."""
        others = [self._other] if fault.strength < 0.5 else [self._service, self._other]
        before = self._clients.services
        if fault.strength < 0.25:  # no request reaches the first service
            self._clients.services = others
        with stopped([self._service.pid] if fault.strength > 0.75 else []):
            self._terminate(fault)
            ready = self._try_second(TAKEOVER_SECONDS)
        self._use_second(fault, ready, others)
        self._clients.services = before

    def _steal_lock(self, fault: Fault) -> None:
        """Let a second service take a SQLite database whose lock file was removed, while the first one is running."""
        (self._service.folder / "log.db.lock").unlink(missing_ok=True)
        others = [self._other] if fault.strength < 0.5 else [self._service, self._other]
        self._use_second(fault, self._try_second(TAKEOVER_SECONDS), others)

    def _expire_lease(self, fault: Fault) -> None:
        """Let a second service take the store while the first one hangs, then continue the first one."""
        others = [self._other] if fault.strength < 0.5 else [self._service, self._other]
        with stopped([self._service.pid]):
            time.sleep(LEASE_SECONDS)
            ready = self._try_second(TAKEOVER_SECONDS)
        self._use_second(fault, ready, others)

    def _use_second(self, fault: Fault, ready: bool, others: list[ForkedService]) -> None:
        """Send requests to the services ``others``, then to the first one, which must end; then start it again."""
        if ready:
            before = [self._service]
            self._clients.services = others
            time.sleep(fault.seconds)
            self._clients.services = before
            time.sleep(fault.seconds / 2)  # the first service gets requests while the second one has the store
            self._other.kill() if fault.seconds < 0.5 else self._other.stop()
            self._wait_for_exit()
        self._other.kill()

    def _wait_for_exit(self) -> None:
        """Wait until the first service has found that it has lost the store, and start it again."""
        end = time.monotonic() + EXIT_SECONDS
        while self._service.exit_status is None:
            if time.monotonic() > end:
                raise TimeoutError(f"the service did not end within {EXIT_SECONDS:g} s after it lost the store")
            time.sleep(0.02)
        if self._service.exit_status != 1:
            raise ChildProcessError(f"the service ended with status {self._service.exit_status} instead of 1")
        self._service.launch()

    def _try_second(self, seconds: float) -> bool:
        """Start the second service, repeatedly for ``seconds``, and return whether it is ready."""
        end = time.monotonic() + seconds
        while True:
            self._other.launch()
            try:
                self._other.wait_ready()
            except ChildProcessError:  # another process has the lock
                self._other.kill()
                if time.monotonic() > end:
                    return False
            else:
                self.effects["stores taken over"] += 1
                return True


def terminate_connections(url: str) -> None:
    """End all connections to a PostgreSQL database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TERMINATE)


@contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """Stop processes with SIGSTOP, and continue them at the end of the block."""
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(pid, signal.SIGCONT)


def second_service_store(location: StoreLocation) -> str:
    """Return the address under which a service with another data folder opens the store."""
    return location.url or f"sqlite:///{Path(location.folder, 'log.db').absolute()}"
