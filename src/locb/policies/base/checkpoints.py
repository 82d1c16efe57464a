"""A policy as it was at one moment, to be written while the policy goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.policies.base import serialization as storage

LARGE = 1 << 20  # bytes from which on memory is kept


class BufferPool:
    """Memory that is kept for one checkpoint after another.

    To touch memory for the first time takes ten times as long as to copy into it, or more.
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[np.uint8]] = {}

    def make(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Have memory ready for arrays of these names that are no larger."""
        for name, array in arrays.items():
            if array.nbytes >= LARGE and (name not in self._kept or self._kept[name].size < array.nbytes):
                fresh = np.empty(array.nbytes, np.uint8)
                fresh.fill(0)
                self._kept[name] = fresh

    def copy(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """A copy, in what is kept if there is enough."""
        kept = self._kept.get(name)
        if kept is None or kept.size < array.nbytes:
            return np.array(array)
        copy: NDArray[Any] = kept[: array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        return copy


class Checkpoint:
    """What ``save`` would have written when it was taken. It shares nothing with the policy.

    Examples
    --------
    >>> import tempfile
    >>> import locb
    >>> policy = locb.LinUCB(n_users=2, dim=2)
    >>> checkpoint = policy.checkpoint()
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(f"{folder}/policy.locb")
    ...     locb.load(f"{folder}/policy.locb").served.tolist()
    [0, 0]
    """

    __slots__ = ("_arrays", "_header")

    def __init__(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self._header, self._arrays = header, arrays

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, the same to the byte as ``save`` would have written then."""
        storage.write(path, self._header, self._arrays)
