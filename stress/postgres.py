"""Temporary PostgreSQL server in its own folder, on a free port of the loopback interface."""

from __future__ import annotations

import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

OWNER = "locb"  # database user
START_TIMEOUT = 600.0  # seconds
PORTS = range(12_000, 32_000)  # Linux assigns ports from 32,768 to outgoing connections


def find_programs() -> Path | None:
    """Return the folder of the programs initdb and postgres, or None if PostgreSQL is not installed.

    The environment variable POSTGRESQL selects a folder. The default is the folder of initdb on PATH, then the newest
    version in /usr/lib/postgresql.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    on_path = shutil.which("initdb")
    folders += [] if on_path is None else [Path(on_path).resolve().parent]
    if "POSTGRESQL" in os.environ:
        folders = [Path(os.environ["POSTGRESQL"])]
    found = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    return found[-1] if found else None


class PostgresServer:
    """PostgreSQL server that a test can stop without a checkpoint and restart with the same data.

    Parameters
    ----------
    fsync : bool, default True
        Whether committed data survive a crash of the machine. A crash of the server alone loses nothing in either case.

    Raises
    ------
    FileNotFoundError
        If PostgreSQL is not installed, or if there is no account to run it.
    ChildProcessError
        If the server does not start.
    """

    def __init__(self, *, fsync: bool = True) -> None:
        bin_folder = find_programs()
        if bin_folder is None:
            raise FileNotFoundError(
                "PostgreSQL is not installed: run apt-get install postgresql, or set POSTGRESQL=/path/to/bin"
            )
        self._bin = bin_folder
        self._account = _account()
        self._password = secrets.token_hex(16)
        self._server: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._fsync = "on" if fsync else "off"
        self.port = 0
        self.folder = Path(tempfile.mkdtemp(prefix="locb-postgres-"))
        try:
            self._change_owner(self.folder)
            self._initialize()
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def start(self) -> None:
        """Start the server, and wait until it responds. All starts use the same port."""
        first = self.port == 0
        for attempt in range(5):
            if first:
                self.port = free_port()
            try:
                self._start()
            except ChildProcessError:  # another process may have taken the port
                if not first or attempt == 4:
                    raise
            else:
                return

    def stop(self, signal_number: signal.Signals = signal.SIGQUIT) -> None:
        """Stop the server with a signal.

        SIGQUIT is an immediate shutdown without a checkpoint. SIGINT is a fast shutdown with a checkpoint.
        """
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(signal_number)
            server.wait(START_TIMEOUT)

    def restart(self) -> None:
        """Stop the server without a checkpoint and start it again."""
        self.stop()
        self.start()

    def processes(self) -> list[int]:
        """Return the ids of the processes of the running server."""
        if self._server is None:
            return []
        parent = self._server.pid  # setpriv replaces itself by the server
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        return [parent, *map(int, children)]

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def create_database(self) -> str:
        """Create an empty database, and return its address (a postgresql:// URL with the password)."""
        self._databases += 1
        name = f"locb_{self._databases}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def url(self, database: str) -> str:
        """Return the address of a database by its name."""
        return f"postgresql://{OWNER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def _initialize(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self._password)
        self._change_owner(secret)
        command: list[str | Path] = [self._bin / "initdb", "-D", self.folder / "data", "-U", OWNER, "--pwfile", secret]
        command += ["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, **_run_as(self._account)
        )
        if done.returncode:
            raise ChildProcessError(f"initdb ended with status {done.returncode}: {done.stderr.strip()}")

    def _start(self) -> None:
        # setpriv stops the server when this process ends, even if this process is killed.
        prefix = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": self._fsync,
            "recovery_init_sync_method": "syncfs",
            "max_connections": 50, "shared_buffers": "64MB", "max_wal_size": "1GB",
        }  # fmt: skip
        command: list[str | Path] = [*prefix, self._bin / "postgres", "-D", self.folder / "data"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "server.log").open("ab") as lines:
            self._server = subprocess.Popen(
                command, cwd=self.folder, stdout=lines, stderr=lines, stdin=subprocess.DEVNULL, **_run_as(self._account)
            )
        end = time.monotonic() + START_TIMEOUT
        while not self._responds():
            if self._server.poll() is not None or time.monotonic() > end:
                self.stop()
                output = (self.folder / "server.log").read_text(errors="replace")
                raise ChildProcessError(f"postgres did not start; end of its output: {output[-500:]}")
            time.sleep(0.02)

    def _responds(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _change_owner(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)


def _account() -> pwd.struct_passwd | None:
    """Return the account that runs the server if this process runs as root; None for the current account.

    PostgreSQL refuses to run as root.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise FileNotFoundError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody; run as another user"
    )


def _run_as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if account is None else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def free_port() -> int:
    """Return a free port of the loopback interface that the system does not assign to outgoing connections.

    A server can stop and start again on such a port. In between, no other connection uses the port, and a client that
    retries cannot connect to itself.
    """
    for port in random.sample(PORTS, 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port found from {PORTS.start} to {PORTS.stop - 1}; stop other servers")
