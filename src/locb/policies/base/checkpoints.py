"""Checkpoints: copies of a policy's state that can be saved while the policy keeps learning."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.policies.base import file_format

MIN_POOLED_BYTES = 1 << 20  # smaller arrays do not use a buffer of the pool


class BufferPool:
    """Memory buffers, by array name, that successive checkpoints of a policy reuse.

    A copy into new memory takes at least ten times as long as a copy into memory that was written before.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def reserve(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Allocate buffers that are large enough for copies of these arrays."""
        for name, array in arrays.items():
            buffer = self._buffers.get(name)
            if array.nbytes >= MIN_POOLED_BYTES and (buffer is None or buffer.size < array.nbytes):
                buffer = np.empty(array.nbytes, np.uint8)
                buffer.fill(0)
                self._buffers[name] = buffer

    def copy(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the array ``name``, in the buffer of that name if it is large enough."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < array.nbytes:
            return np.array(array)
        copy: NDArray[Any] = buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(copy, array)
        return copy


class Checkpoint:
    """A copy of the state of a policy that can be saved to a file and shares no memory with the policy.

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
        """Write the same bytes that ``policy.save`` would have written when the checkpoint was taken."""
        file_format.write(path, self._header, self._arrays)
