"""Prepared data on disk: a folder an entry, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.cache_dir import cache_dir

VERSION = 1  # of what an entry holds; a newer locb does not read older entries


def prepared(
    folder: str | Path | None,
    key: Mapping[str, Any],
    make: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and facts for this key: read if they were prepared before, else made and kept.

    Any number of processes may do this at once: an entry appears under its name by one rename, and whoever comes second
    throws its own away. An entry that cannot be read is made again; a folder that cannot be written to is done without.
    """
    digest = hashlib.sha256(json.dumps([VERSION, key], sort_keys=True).encode()).hexdigest()[:24]
    entry = (cache_dir() if folder is None else Path(folder)) / f"{key['name']}-{digest}"
    if entry.is_dir():
        try:
            return _read(entry)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            warnings.warn(f"{entry} is damaged ({error}): preparing the data again", stacklevel=2)
            shutil.rmtree(entry, ignore_errors=True)
    arrays, about = make()
    try:
        _write(entry, arrays, about)
    except OSError as error:
        warnings.warn(f"prepared data are not kept: {error}", stacklevel=2)
    return arrays, about


def _read(entry: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    about = json.loads((entry / "about.json").read_text(encoding="utf-8"))
    if about["checksum"] != _facts_checksum(about["arrays"], about["about"]):
        raise ValueError("about.json is not what was written")
    # Mapped: what is read twice stays in the system's cache, not in this process.
    arrays = {name: np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in about["arrays"]}
    for name, (shape, dtype, checksum) in about["arrays"].items():
        if list(arrays[name].shape) != shape or str(arrays[name].dtype) != dtype or _checksum(arrays[name]) != checksum:
            raise ValueError(f"{name} is not what was written")
    return arrays, about["about"]


def _facts_checksum(arrays: Any, about: Any) -> int:
    return zlib.crc32(json.dumps([arrays, about], sort_keys=True).encode())


def _checksum(array: Any) -> int:
    octets: Any = np.ascontiguousarray(array).view(np.uint8)
    return zlib.crc32(octets.reshape(-1))


def _write(entry: Path, arrays: dict[str, Any], about: dict[str, Any]) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    part = entry.parent / f".{entry.name}.{secrets.token_hex(6)}.part"
    try:
        part.mkdir()
        for name, array in arrays.items():
            np.save(part / f"{name}.npy", array, allow_pickle=False)
        shapes = {name: (list(array.shape), str(array.dtype), _checksum(array)) for name, array in arrays.items()}
        facts = {"arrays": shapes, "about": about, "checksum": _facts_checksum(shapes, about)}
        (part / "about.json").write_text(json.dumps(facts), encoding="utf-8")
        if not entry.exists():
            part.rename(entry)
    except OSError:
        if not entry.is_dir():  # somebody else was first: theirs is as good
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
