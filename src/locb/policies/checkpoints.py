"""A policy as it was at one moment, to be written while the policy goes on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from locb.policies import storage


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
