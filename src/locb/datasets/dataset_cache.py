"""Cache of prepared data sets on disk, with one folder per entry."""

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

VERSION = 3  # version of the entry format; it is part of the key, so entries of other versions are not used


def load_or_prepare(
    folder: str | Path | None,
    key: Mapping[str, Any],
    prepare: Callable[[], tuple[dict[str, Any], dict[str, Any]]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays and facts of a data set from the cache, or prepare them and add them to the cache.

    Several processes may prepare the same entry at the same time. The first process to finish renames its folder to the
    name of the entry, and the other processes discard their copies. If an entry cannot be read, a warning is issued and
    the data is prepared again. If the cache folder cannot be written, a warning is issued and the data is returned.

    Parameters
    ----------
    folder : path or None
        Cache folder; None for :func:`locb.common.cache_dir.cache_dir`.
    key : mapping
        All values that determine the data. JSON must be able to represent them. The element "name" is the first part of
        the name of the entry.
    prepare : callable
        Function without arguments that returns (arrays, facts): arrays by name, and facts that can be written as JSON.

    Returns
    -------
    tuple of dict and dict
        Arrays and facts. Arrays from the cache are memory-mapped and read-only.
    """
    digest = hashlib.sha256(json.dumps([VERSION, key], sort_keys=True).encode()).hexdigest()[:24]
    entry = (cache_dir() if folder is None else Path(folder)) / f"{key['name']}-{digest}"
    if entry.is_dir():
        try:
            return _read(entry)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
            warnings.warn(f"cannot use cache entry {entry} ({error}); preparing the data again", stacklevel=2)
            shutil.rmtree(entry, ignore_errors=True)
    arrays, facts = prepare()
    try:
        _write(entry, arrays, facts)
    except OSError as error:
        message = f"cannot write the prepared data to the cache folder {entry.parent} ({error})"
        advice = "to keep the prepared data, use a writable cache folder (--cache-dir)"
        warnings.warn(f"{message}; {advice}", stacklevel=2)
    return arrays, facts


def _read(entry: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    content = json.loads((entry / "facts.json").read_text(encoding="utf-8"))
    if content["checksum"] != _json_checksum(content["arrays"], content["facts"]):
        raise ValueError("the checksum in facts.json does not match its content")
    # Several processes share one copy of a memory-mapped array.
    arrays = {name: np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in content["arrays"]}
    for name, (shape, dtype, checksum) in content["arrays"].items():
        array = arrays[name]
        if list(array.shape) != shape or str(array.dtype) != dtype or _array_checksum(array) != checksum:
            raise ValueError(f"the checksum, shape or type of {name}.npy does not match facts.json")
    return arrays, content["facts"]


def _json_checksum(arrays: Any, facts: Any) -> int:
    return zlib.crc32(json.dumps([arrays, facts], sort_keys=True).encode())


def _array_checksum(array: Any) -> int:
    octets: Any = np.ascontiguousarray(array).view(np.uint8)
    return zlib.crc32(octets.reshape(-1))


def _write(entry: Path, arrays: dict[str, Any], facts: dict[str, Any]) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    temporary = entry.parent / f".{entry.name}.{secrets.token_hex(6)}.part"
    try:
        temporary.mkdir()
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        shapes = {name: (list(array.shape), str(array.dtype), _array_checksum(array)) for name, array in arrays.items()}
        content = {"arrays": shapes, "facts": facts, "checksum": _json_checksum(shapes, facts)}
        (temporary / "facts.json").write_text(json.dumps(content), encoding="utf-8")
        if not entry.exists():
            temporary.rename(entry)
    except OSError:
        if not entry.is_dir():  # another process may have written the same entry
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
