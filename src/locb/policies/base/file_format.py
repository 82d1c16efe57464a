"""File format of saved policies and recommenders: a zip archive of one JSON header and one .npy file per array.

The format does not use pickle, so reading a file does not run code from the file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FORMAT = "locb policy"
VERSION = 3
HEADER = "header.json"


class FileKind(NamedTuple):
    """Kind of a file: what it holds, and the version of its header and arrays."""

    format: str = FORMAT
    version: int = VERSION
    noun: str = "policy"
    if_older: str = "train the policy again or replay its events"  # what to do with a file of an earlier version


POLICY = FileKind()
CHUNK_BYTES = 1 << 22  # largest number of bytes that one read requests
# Exceptions that reading a damaged file can raise, in addition to zipfile.BadZipFile.
_DAMAGE = (KeyError, EOFError, ValueError, OSError, NotImplementedError, RuntimeError, MemoryError, OverflowError)


class _FormatError(Exception):
    """The header shows that the file is not a saved policy in a format that this version reads."""


def write(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    kind: FileKind | None = None,
) -> None:
    """Write a file atomically: the name ``path`` refers to the new file only when the file is complete and on disk.

    ``kind`` is ``POLICY`` by default. Raises ``FileNotFoundError`` if the folder does not exist.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "Folder does not exist", str(target.parent))
    kind = kind or POLICY
    full_header = {"format": kind.format, "version": kind.version, **header}
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    try:
        with temporary.open("xb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                # The default date of a ZipInfo is constant, so the same policy gives the same bytes.
                archive.writestr(zipfile.ZipInfo(HEADER), json.dumps(full_header, indent=1))
                for name, array in arrays.items():
                    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Flush the new directory entry to disk, if the operating system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: str | os.PathLike[str], kind: FileKind | None = None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file.

    Raises
    ------
    ValueError
        If the file is damaged, is of another kind, or has another format version.
    OSError
        If the file does not exist or cannot be opened.
    """
    source, kind = Path(path), kind or POLICY
    try:
        with zipfile.ZipFile(source) as archive:
            header = json.loads(archive.read(HEADER))
            _check_header(source, header, kind)
            arrays = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as entry:
                        size = archive.getinfo(name).file_size
                        arrays[name.removesuffix(".npy")] = _read_array(entry, size)
                        entry.read()  # reading to the end makes zipfile check the checksum
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except _FormatError as error:
        raise ValueError(str(error)) from None
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(f"{source} is not a saved {kind.noun}, or is damaged: {error}; use another file") from error
    return header, arrays


def _read_array(entry: IO[bytes], size: int) -> NDArray[Any]:
    """Read one .npy file of ``size`` bytes directly into a new array."""
    version = np.lib.format.read_magic(entry)
    if version != (1, 0):
        raise ValueError(f"an array must have .npy version 1.0, not {version[0]}.{version[1]}")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(entry)
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, which could run code when read")
    if is_fortran or entry.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of {dtype} has shape {shape} in its header, which does not fit its {size} bytes")
    array = np.empty(shape, dtype)
    buffer = array.reshape(-1).view(np.uint8).data
    filled = 0
    while filled < len(buffer):
        count = entry.readinto(buffer[filled : filled + CHUNK_BYTES])  # type: ignore[attr-defined]  # a zip entry has it
        if not count:
            raise EOFError(f"an array is truncated: it has {filled} of {len(buffer)} bytes")
        filled += count
    return array


def _check_header(source: Path, header: Any, kind: FileKind) -> None:
    if not isinstance(header, dict) or header.get("format") != kind.format:
        raise _FormatError(
            f"{source} is not a saved {kind.noun}: the format in its header is not {kind.format!r}; use another file"
        )
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise _FormatError(
            f"{source} is damaged: its format version is {version!r}, not an integer above 0; use another copy"
        )
    if version != kind.version:
        age, remedy = ("newer", "upgrade locb")
        if version < kind.version:
            age, remedy = ("older", kind.if_older)
        raise _FormatError(
            f"{source} was saved by {'an' if age == 'older' else 'a'} {age} locb (format {version}); "
            f"this version reads format {kind.version}: {remedy}"
        )
