"""Where a data set's files are: in a folder, in the publisher's zip or tar, or named themselves."""

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
    """One file of a data set, wherever it is."""

    path: Path  # the file itself, or the archive that holds it
    member: str | None = None  # its name inside the archive

    @property
    def name(self) -> str:
        """How to name it in a message."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its bytes, unpacked as they are read; damage becomes a ValueError that names the file."""
        try:
            with self._opened() as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, tarfile.TarError) as error:
            raise ValueError(f"{self.name} is damaged or cut off: {error}") from error

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
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
                    raise ValueError(f"{self.name} is not a file")
                with found:
                    yield found

    def fingerprint(self) -> list[Any]:
        """What changes when the file does: name, size, time, and a checksum of both ends."""
        facts = self.path.stat()
        with self.path.open("rb") as stream:
            ends = zlib.crc32(stream.read(1 << 16))
            stream.seek(max(0, facts.st_size - (1 << 16)))
            ends = zlib.crc32(stream.read(), ends)
        return [str(self.path.resolve()), self.member, facts.st_size, facts.st_mtime_ns, ends]


def _inside(path: Path) -> list[str]:
    """The names of the files in an archive."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return [entry for entry in archive.namelist() if not entry.endswith("/")]
        if path.name.endswith(_TAR):
            with tarfile.open(path) as tar:
                return [entry.name for entry in tar if entry.isfile()]
        if path.suffix == ".zip":
            raise ValueError("it is no zip file")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, ValueError) as error:
        raise ValueError(f"{path} is damaged or cut off: {error}") from error
    return []


def find(path: Path, layouts: Sequence[Sequence[str]], what: str) -> list[Source]:
    """The files of the first layout whose first file is there, in the order of the layout.

    A layout is a list of file names, the first of which tells it from the others. ``path`` is the folder that holds
    them, a folder above, an archive, or the first file itself.
    """
    if not path.exists():
        raise FileNotFoundError(2, f"There is no {what} at", str(path))
    if path.is_dir():
        everything = sorted(entry for pattern in ("*", "*/*") for entry in path.glob(pattern) if entry.is_file())
        folders = {entry.parent for entry in everything if any(entry.name == layout[0] for layout in layouts)}
        if len(folders) > 1 and path not in folders:
            raise ValueError(f"{path} holds more than one {what}; name one of {', '.join(map(str, sorted(folders)))}")
        chosen = path if path in folders else next(iter(folders), path)
        offered = {entry.name: Source(entry) for entry in everything if entry.parent == chosen}
    elif inside := _inside(path):
        offered = {Path(member).name: Source(path, member) for member in reversed(inside)}
    else:
        offered = {entry.name: Source(entry) for entry in sorted(path.parent.iterdir()) if entry.is_file()}
        if not any(layout[0] == path.name for layout in layouts):
            wanted = " or ".join(layout[0] for layout in layouts)
            raise ValueError(f"{path} is no {what}: it is neither {wanted} nor an archive of it")
        layouts = [layout for layout in layouts if layout[0] == path.name]
    for layout in layouts:
        if layout[0] in offered:
            missing = [name for name in layout if name not in offered]
            if missing:
                raise ValueError(f"{path} has {layout[0]} but not {', '.join(missing)}, which {what} needs beside it")
            return [offered[name] for name in layout]
    wanted = " or ".join(sorted({layout[0] for layout in layouts}))
    raise ValueError(f"{path} holds no {what}: looked for {wanted}")
