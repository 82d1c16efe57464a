"""Export of the event log as a Parquet file. Each export runs in a process of its own (``python -m`` this module).

The process uses its own CPU time, memory and connection to the database, so an export delays no other request. It can
also be ended at any time.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import URL, Connection, inspect

from locb.service import errors
from locb.service.packed_responses import chosen_context, encode_json, unpack, unpack_request
from locb.service.store import schema as tables
from locb.service.store.database import StoreError, close_pool, connect_read_only, database_url, describe_url
from locb.service.store.fencing import read_head
from locb.service.store.reader import LogReader

FOLDER_PREFIX = "export-"
FILE_NAME = "locb.parquet"
READ_ROWS = 20  # rows that are read at a time; the largest has about 2 MB
PART_BYTES = 1 << 25  # bytes of requests and responses per row group; the process uses about 10 times this memory
MAX_ROW_GROUPS = 10_000
_STORE_FAILED, _WRITE_FAILED = 3, 4  # exit statuses, with the reason on standard output


# In the service


class Exports:
    """Exports of one event log.

    Parameters
    ----------
    url : URL
        Address of the database.
    folder : Path
        Folder for the files. Files that a killed process has left are removed.
    maximum : int
        Maximum number of exports at a time.
    """

    def __init__(self, url: URL, folder: Path, maximum: int) -> None:
        self._url = url.render_as_string(hide_password=False)
        self._folder = folder
        self._maximum = maximum
        self._running: set[Export] = set()
        self._threads = ThreadPoolExecutor(maximum + 1, "locb-export")  # one thread can always remove files
        for left in folder.glob(f"{FOLDER_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)

    async def write(self) -> Export:
        """Write all decisions with their rewards to a file. The caller must call ``remove`` with the export.

        If the caller is cancelled, the export ends.

        Raises
        ------
        ProblemError
            429 if too many exports are in progress; 503 if the store cannot be read, or the file cannot be written.
        """
        if len(self._running) >= self._maximum:
            raise errors.too_many_exports(self._maximum)
        export = Export(self._folder)
        self._running.add(export)
        running = asyncio.get_running_loop().run_in_executor(self._threads, export.run, self._url)
        try:
            await asyncio.shield(running)
        except BaseException:
            export.kill()
            await asyncio.wait([running])
            running.exception()  # otherwise, asyncio would log the exit status of a killed process
            await self.remove(export)
            raise
        return export

    def release(self, export: Export) -> None:
        """Allow another export to start. Called before the client can know that its export has ended."""
        self._running.discard(export)

    async def remove(self, export: Export) -> None:
        """Remove the file of an export, after another export was allowed to start."""
        self.release(export)
        await asyncio.get_running_loop().run_in_executor(self._threads, export.remove)

    def stop(self) -> None:
        """End all exports."""
        for export in self._running:
            export.kill()
        self._threads.shutdown(wait=False)


class Export:
    """Export to a file in a new folder inside ``folder``."""

    def __init__(self, folder: Path) -> None:
        try:
            self._target = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=folder))
        except OSError as error:
            raise errors.export_failed(error.strerror) from error
        self.path = self._target / FILE_NAME
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def run(self, url: str) -> None:
        """Run the process of the export until it ends."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
            "POLARS_MAX_THREADS": "1",
        }
        command = [sys.executable, "-P", "-m", __name__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        with subprocess.Popen(command, env=environment, **pipes) as process:  # type: ignore[call-overload]  # noqa: S603
            self._process = process
            if self._killed:
                process.kill()
            # The address is not an argument, because all users of the machine can see arguments. If the process has
            # ended, its exit status states the reason.
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps([url, str(self._target)]).encode() + b"\n")
            reason = process.stdout.read().decode()  # the input stays open until the process ends
        if process.returncode == _STORE_FAILED:
            raise StoreError(reason)
        if process.returncode == _WRITE_FAILED:
            raise errors.export_failed(reason)
        if process.returncode != 0:
            raise RuntimeError(f"the process of an export ended with status {process.returncode}")

    def kill(self) -> None:
        """End the process of the export."""
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def remove(self) -> None:
        """Remove the file."""
        shutil.rmtree(self._target, ignore_errors=True)


# In the process of an export, and in programs that read the store of a service


class StoredLog(LogReader):
    """Read-only access to the event log of a service, which may be running.

    Parameters
    ----------
    address : str
        Address of the database: ``postgresql://user@host/name`` or ``sqlite:///path``.

    Raises
    ------
    StoreError
        If the database cannot be read.
    ValueError
        If the database has no event log in a supported format.
    """

    def __init__(self, address: str) -> None:
        url = database_url(Path(), address)
        if url.get_backend_name() == "sqlite" and not Path(str(url.database)).is_file():
            raise FileNotFoundError(2, "Store does not exist", str(url.database))
        self.name = describe_url(url, address).removeprefix("--store ")
        self._engine = connect_read_only(url)
        try:
            with self._reading() as connection:
                tables.check_format(connection)
                if not inspect(connection).has_table(tables.settings.name) or "model" not in self.settings():
                    raise ValueError(f"{self.name} is not the store of a service, or the service has never started")
        except BaseException:
            self.close()
            raise

    def last_event(self) -> int:
        """Return the sequence number of the last event."""
        with self._reading() as connection:
            return read_head(connection).last_seq

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open a connection on which all queries read the same state of the store."""
        with self._reading() as connection:
            if self.backend == "sqlite":
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def close(self) -> None:
        """Close all connections."""
        close_pool(self._engine)


def export_store(address: str, target: Path) -> Path:
    """Write the decisions in a store, also of a running service, to a file in a folder, and return its path.

    Raises
    ------
    ValueError
        If the store cannot be read.
    """
    try:
        log = StoredLog(address)
        try:
            write_parquet(log, target)
        finally:
            log.close()
    except StoreError as error:
        raise ValueError(f"cannot read the store: {error}") from error
    return target / FILE_NAME


def write_parquet(log: LogReader, target: Path) -> None:
    """Write all decisions with their rewards to the file ``FILE_NAME`` in the folder ``target``.

    The log is read in parts of a bounded number of bytes, so the memory use does not depend on the length of the log.
    """
    import polars as pl  # imported here, because the process of the service does not need it

    time = pl.Datetime("us", "UTC")
    schema: dict[str, Any] = {
        "decision_id": pl.String,
        "user": pl.String,
        "time": time,
        "arm": pl.String,
        "estimate": pl.Float64,
        "bonus": pl.Float64,
        "context": pl.List(pl.Float64),
        "arms": pl.String,
        "reward": pl.Float64,
        "reward_time": time,
        "reward_is_default": pl.Boolean,
        "seq": pl.Int64,
        "observations": pl.List(
            pl.Struct({"seq": pl.Int64, "kind": pl.Int16, "reward": pl.Float64, "time": time}),
        ),
    }
    pl.DataFrame(schema=schema).write_parquet(target / "00000000.part")
    rows = (row for chunk in log.decisions_with_rewards(READ_ROWS) for row in chunk)
    lengths = []
    dim = log.settings()["model"]["dim"]
    for number, part in enumerate(split_by_bytes(rows, dim, PART_BYTES), 1):
        frame = pl.DataFrame(part, schema, orient="row")
        lengths.append(len(part))
        del part[:]
        frame.write_parquet(target / f"{number:08d}.part")
    # Every part but the last has about PART_BYTES, so a row group with the rows of the smallest of them has no more.
    group_rows = max(min(lengths[:-1], default=1 << 16), sum(lengths) // MAX_ROW_GROUPS, 1)
    pl.scan_parquet(target / "*.part").sink_parquet(target / FILE_NAME, row_group_size=group_rows)
    for path in target.glob("*.part"):
        path.unlink()


def split_by_bytes(rows: Iterable[Any], dim: int, max_bytes: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of the export in parts, each of which ends when it has at least ``max_bytes``.

    ``dim`` is the number of features per arm.
    """
    part: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        part.append(_export_row(row, dim))
        size += len(row.request) + len(row.response) + 8 * dim
        if size >= max_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


def _export_row(row: Any, dim: int) -> tuple[Any, ...]:
    # Without the payload, the observations still have the features of the chosen arm.
    choice: tuple[Any, ...] = None, None, None, row.context and np.frombuffer(row.context).tolist(), None
    if row.request:
        arms, response = unpack_request(row.request).arms, unpack(row.response)
        choice = (
            arms[response.ranking[0]].id,
            None if response.estimates is None else response.estimates[0],
            None if response.estimates is None else response.bonuses[0],
            np.frombuffer(chosen_context(row.request, row.response, dim)).tolist(),
            encode_json(arms).decode(),
        )
    is_default = row.reward is None and row.default is not None
    reward, reward_time = (row.default, row.default_time) if is_default else (row.reward, row.reward_time)
    return (
        row.id.decode(),
        None if row.user is None else row.user.decode(),
        _utc(row.time),
        *choice,
        reward,
        None if reward_time is None else _utc(reward_time),
        None if reward is None else is_default,
        row.seq,
        [
            {"seq": seq, "kind": kind, "reward": learned, "time": _utc(learned_at)}
            for seq, kind, learned, learned_at in row.observations
        ],
    )


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _exit_with_service() -> None:
    os.read(sys.stdin.fileno(), 1)  # returns when the service ends, also if it is killed
    os._exit(1)


def main() -> int:
    """Write the export that standard input names, and return the exit status."""
    import polars as pl

    url, target = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_exit_with_service, daemon=True).start()
    try:
        write_parquet(StoredLog(url), Path(target))
    except (StoreError, ValueError) as error:
        sys.stdout.write(str(error))
        return _STORE_FAILED
    except (OSError, pl.exceptions.PolarsError) as error:
        found = re.search(r"([^:]+) \(os error \d+\)", str(error))  # in a message of Polars
        sys.stdout.write(found[1].strip() if found else str(getattr(error, "strerror", None) or error))
        return _WRITE_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
