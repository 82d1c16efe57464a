"""A policy in a file: a zip of one JSON header and one .npy an array. No pickle, so a file cannot run code."""

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
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "locb policy"
VERSION = 1
HEADER = "header.json"
CHUNK = 1 << 22
# What reading a damaged file may raise, beside zipfile's own error.
_DAMAGE = (KeyError, EOFError, ValueError, OSError, NotImplementedError, RuntimeError, MemoryError, OverflowError)


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write all or nothing: the file appears under its name only when it is complete and on disk."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "There is no folder to save into", str(target.parent))
    full_header = {"format": FORMAT, "version": VERSION, **header}
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    try:
        with temporary.open("xb") as raw:
            with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
                # An entry made by hand has no date: the same policy gives the same bytes.
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
    """Bring the new name to disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a saved policy, or a ValueError that says what is wrong with the file."""
    source = Path(path)
    try:
        with zipfile.ZipFile(source) as archive:
            header = json.loads(archive.read(HEADER))
            _check_header(source, header)
            arrays = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as entry:
                        size = archive.getinfo(name).file_size
                        arrays[name.removesuffix(".npy")] = _read_array(entry, size)
                        entry.read()  # reaching the end is what makes zipfile compare the checksum
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except _NotOursError as error:
        raise ValueError(str(error)) from None
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        raise ValueError(f"{source} is not a saved policy, or is damaged: {error}") from error
    return header, arrays


def _read_array(entry: IO[bytes], size: int) -> NDArray[Any]:
    """One .npy of ``size`` bytes, straight into its array."""
    if np.lib.format.read_magic(entry) != (1, 0):
        raise ValueError("an array is in a format that locb does not write")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(entry)
    count = math.prod(shape)
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, which could run code when read")
    if by_columns or entry.tell() + count * dtype.itemsize != size:
        raise ValueError("an array does not have the size that it claims")
    array = np.empty(shape, dtype)
    room = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(room):
        read = entry.readinto(room[done : done + CHUNK])  # type: ignore[attr-defined]  # a zip entry has it
        if not read:
            raise EOFError("an array ends too soon")
        done += read
    return array


class _NotOursError(Exception):
    """The file is whole, but not one that this version can read."""


def _check_header(source: Path, header: Any) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _NotOursError(f"{source} is not a saved policy: its header does not say {FORMAT!r}")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise _NotOursError(f"{source} is damaged: its version is {version!r}")
    if version > VERSION:
        raise _NotOursError(
            f"{source} was written by a newer locb (file version {version}; this one reads up to {VERSION}): "
            "upgrade locb"
        )
