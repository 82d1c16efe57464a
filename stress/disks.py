"""Disks that are full when told to be: a small one of memory, or a limit on the size of the service's files."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from stress.server import Server

MEGABYTES = 256
KINDS = ("tmpfs", "limit")


class Disk(Protocol):
    """Where a service keeps its data."""

    folder: Path

    def fill(self, server: Server) -> None:
        """From now on nothing more fits."""

    def free(self, server: Server) -> None:
        """There is room again."""


@contextmanager
def new_disk(kind: str) -> Iterator[Disk]:
    """A disk that goes away in the end.

    Raises
    ------
    PermissionError
        If a disk of this kind cannot be had here, with the reason.
    """
    with tempfile.TemporaryDirectory(prefix="locb-disk-") as room:
        if kind == "limit":
            yield _Limited(Path(room))
            return
        folder = Path(room) / "disk"
        folder.mkdir()
        _mount(folder)
        try:
            yield _Small(folder)
        finally:
            # A file that is still open must not keep the folder from being removed.
            if subprocess.run(["umount", folder], capture_output=True, check=False).returncode:
                subprocess.run(["umount", "--lazy", folder], check=True)


def _mount(folder: Path) -> None:
    mount = shutil.which("mount")
    if mount is None or not sys.platform.startswith("linux"):
        raise PermissionError("a disk of memory cannot be mounted on this system")
    command = [mount, "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(f"a disk of memory may not be mounted here: {done.stderr.strip()}")


class _Small:
    """A file system of a few megabytes, and something large on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: Server) -> None:  # noqa: ARG002 - all disks are called alike
        with (self.folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError:
                    continue

    def free(self, server: Server) -> None:  # noqa: ARG002 - all disks are called alike
        (self.folder / "ballast").unlink()


class _Limited:
    """The files of the service may not grow any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: Server) -> None:
        largest = max(path.stat().st_size for path in server.folder.glob("log.db*"))
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (max(largest, 1 << 16), resource.RLIM_INFINITY))

    def free(self, server: Server) -> None:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
