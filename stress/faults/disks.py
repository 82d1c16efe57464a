"""Disks that a test can fill: a small tmpfs (file system in memory), or a limit of the file size of the service."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from stress.service_process import ServiceProcess

MEGABYTES = 256  # size of the tmpfs
PAGE = 4096  # bytes; unit in which a tmpfs allocates memory
KINDS = ("tmpfs", "limit")


class Disk(Protocol):
    """Disk with a data folder that a test can fill and free."""

    folder: Path

    def fill(self, server: ServiceProcess) -> None:
        """Fill the disk, so that the service cannot write."""

    def free(self, server: ServiceProcess) -> None:
        """Free the space that ``fill`` used."""


@contextmanager
def new_disk(kind: str) -> Iterator[Disk]:
    """Create a disk, and remove it at the end of the block.

    Parameters
    ----------
    kind : {"tmpfs", "limit"}
        Small file system in memory, or limit of the size of the files.

    Raises
    ------
    PermissionError
        If a tmpfs cannot be mounted on this system.
    """
    with tempfile.TemporaryDirectory(prefix="locb-disk-") as parent:
        if kind == "limit":
            yield _LimitedFiles(Path(parent))
            return
        folder = Path(parent) / "disk"
        folder.mkdir()
        _mount(folder)
        try:
            yield _SmallDisk(folder)
        finally:
            # If a file is still open, a lazy unmount makes it possible to remove the folder.
            if subprocess.run(["umount", folder], capture_output=True, check=False).returncode:
                subprocess.run(["umount", "--lazy", folder], check=True)


def _mount(folder: Path) -> None:
    mount = shutil.which("mount")
    if mount is None or not sys.platform.startswith("linux"):
        raise PermissionError("tmpfs cannot be mounted: this test needs Linux and the program mount")
    command = [mount, "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(f"tmpfs cannot be mounted ({done.stderr.strip()}); run the test as root")


class _SmallDisk:
    """Small tmpfs that is filled with a large file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: ServiceProcess) -> None:  # noqa: ARG002 - part of the protocol
        with (self.folder / "ballast").open("wb") as ballast:
            size, step = 0, MEGABYTES << 20
            while step >= PAGE:
                try:
                    os.posix_fallocate(ballast.fileno(), size, step)
                    size += step
                except OSError:
                    step //= 2

    def free(self, server: ServiceProcess) -> None:  # noqa: ARG002 - part of the protocol
        (self.folder / "ballast").unlink()


class _LimitedFiles:
    """Folder whose files cannot grow while a resource limit of the service process is set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, server: ServiceProcess) -> None:
        largest = max(path.stat().st_size for path in server.folder.glob("log.db*"))
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (max(largest, 1 << 16), resource.RLIM_INFINITY))

    def free(self, server: ServiceProcess) -> None:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
