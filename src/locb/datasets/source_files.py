"""Files of a data set: in a folder, or in a zip or tar archive."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Source:
    """File of a data set, possibly inside an archive."""

    path: Path  # the file, or the archive that contains the file
    member: str | None = None  # name of the file inside the archive

    @property
    def name(self) -> str:
        """Path of the file for error messages: ``path``, or ``archive:member``."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open the file for reading decompressed bytes. If it is damaged, raise a ValueError that names the file."""
        try:
            with self._open_raw() as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError) as error:
            raise ValueError(f"{self.name} is damaged or truncated ({error}); download it again") from error

    @contextmanager
    def _open_raw(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            if self.path.suffix == ".gz":
                with gzip.open(self.path) as packed:
                    yield io.BufferedReader(packed, 1 << 20)
            else:
                with self.path.open("rb", buffering=1 << 20) as plain:
                    yield plain
        elif zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as entry:
                yield entry
        else:
            with tarfile.open(self.path) as tar:
                found = tar.extractfile(self.member)
                if found is None:
                    raise ValueError(f"{self.name} must be a regular file in the archive, not a folder or a link")
                with found:
                    yield found

    def fingerprint(self) -> list[Any]:
        """Return values that identify the content of the file.

        The values are the path, the member, the size, the modification time, and a checksum of the first and the last
        64 KiB of ``path``.
        """
        status = self.path.stat()
        with self.path.open("rb") as stream:
            ends = zlib.crc32(stream.read(1 << 16))
            stream.seek(max(0, status.st_size - (1 << 16)))
            ends = zlib.crc32(stream.read(), ends)
        return [str(self.path.resolve()), self.member, status.st_size, status.st_mtime_ns, ends]


def _archive_members(path: Path) -> list[str]:
    """Return the names of the files in an archive; an empty list if ``path`` is not an archive.

    Raise a ValueError if the archive cannot be read.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return [entry for entry in archive.namelist() if not entry.endswith("/")]
        if path.name.endswith(_TAR):
            with tarfile.open(path) as tar:
                return [entry.name for entry in tar if entry.isfile()]
        if path.suffix == ".zip":
            raise ValueError("not a zip file")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, ValueError) as error:
        raise ValueError(f"cannot read {path} as an archive ({error}); check the file or download it again") from error
    return []


def find_sources(path: Path, layouts: Sequence[Sequence[str]], data_set: str) -> list[Source]:
    """Return the files of a data set, in the order of the first layout whose first file exists.

    Parameters
    ----------
    path : Path
        Folder of the files, parent of that folder, archive of the files, or first file of a layout.
    layouts : sequence of sequences of str
        Lists of the file names that belong together. If the first file of a layout exists, all its files must exist.
    data_set : str
        Name of the data set for error messages.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    ValueError
        If ``path`` has no files of the data set, has several data sets, lacks a file of the layout, or is an archive
        that cannot be read.
    """
    if not path.exists():
        raise FileNotFoundError(2, f"Path of the {data_set} data does not exist", str(path))
    if path.is_dir():
        files = sorted(entry for pattern in ("*", "*/*") for entry in path.glob(pattern) if entry.is_file())
        folders = {entry.parent for entry in files if any(entry.name == layout[0] for layout in layouts)}
        if len(folders) > 1 and path not in folders:
            raise ValueError(
                f"{path} has more than one {data_set} data set; set the path to one of "
                f"{', '.join(map(str, sorted(folders)))}"
            )
        chosen = path if path in folders else next(iter(folders), path)
        available = {entry.name: Source(entry) for entry in files if entry.parent == chosen}
    elif members := _archive_members(path):
        available = {Path(member).name: Source(path, member) for member in reversed(members)}
    else:
        available = {entry.name: Source(entry) for entry in sorted(path.parent.iterdir()) if entry.is_file()}
        if not any(layout[0] == path.name for layout in layouts):
            wanted = " or ".join(layout[0] for layout in layouts)
            raise ValueError(f"{path} is not {data_set} data: expected {wanted}, or an archive that contains one")
        layouts = [layout for layout in layouts if layout[0] == path.name]
    for layout in layouts:
        if layout[0] in available:
            missing = [name for name in layout if name not in available]
            if missing:
                raise ValueError(
                    f"{path}: found {layout[0]}, but not {', '.join(missing)}; {data_set} data needs all of "
                    f"{', '.join(layout)}"
                )
            return [available[name] for name in layout]
    wanted = " or ".join(sorted({layout[0] for layout in layouts}))
    raise ValueError(f"{path} has no {data_set} data: no file {wanted}; choose the folder or archive that contains one")
