"""Access rights of the data folder: only the user of the service can read its files."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
OTHER_USERS = 0o077  # rights of the group and of all other users
MAX_LISTED = 5  # paths in a warning
_log = logging.getLogger("locb.service")


def protect(folder: Path, database: str | None) -> None:
    """Create the data folder and the database file, if they are missing, so that only their owner can read them.

    SQLite creates its further files with the rights of the database file. Existing files and folders are not changed: a
    warning lists those that other users can read. Errors are ignored, because opening the store reports them.

    Parameters
    ----------
    folder : Path
        The data folder.
    database : str or None
        Path of the SQLite database; None for a database server.
    """
    if os.name == "nt":  # the rights of a file on Windows are those of its folder
        return
    with suppress(OSError):
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        (folder / "snapshots").mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        for path in (folder / "lock", *([] if database is None else [Path(database), Path(f"{database}.lock")])):
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE_FILE))
        readable = list(_readable_by_others(_files(folder, database)))
        if readable:
            listed = ", ".join(map(str, readable[:MAX_LISTED])) + (", …" if len(readable) > MAX_LISTED else "")
            outside = [str(path) for path in readable if not path.is_relative_to(folder)]
            changed = shlex.join([str(folder)] * (len(outside) < len(readable)) + outside)
            _log.warning("other users can access %s; to prevent that, run: chmod -R go= %s", listed, changed)


def make_private(folder: Path) -> None:
    """Let only the owner access a folder of files."""
    folder.chmod(PRIVATE_FOLDER)
    for path in folder.iterdir():
        path.chmod(PRIVATE_FILE)


def _files(folder: Path, database: str | None) -> Iterator[Path]:
    yield folder
    yield from (folder / name for name in ("lock", "snapshots"))
    yield from sorted((folder / "snapshots").glob("*.locb"))
    if database is not None:
        yield from (Path(f"{database}{suffix}") for suffix in ("", "-wal", "-shm", ".lock"))


def _readable_by_others(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        with suppress(FileNotFoundError):
            if path.stat().st_mode & OTHER_USERS:
                yield path
