"""ELOC's parameter ``memory``: its part of the state, files without this part, and what is unavailable with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats
from locb.kernels.eloc.state import AUTO_MEMORIES, RETENTION, ELOCState
from locb.policies.base.capabilities import UnavailableError
from locb.policies.state.eloc_parameters import AUTO


def initial_memories(memory: float | str | None) -> Floats:
    """Return the array ``memories`` of a policy without rounds. Each row is one memory, and the first is in use."""
    candidates = [None, *AUTO_MEMORIES] if memory == AUTO else [memory]
    memories = np.zeros((len(candidates), 2))
    memories[:, RETENTION] = [1.0 if rounds is None else 1.0 - 1.0 / float(rounds) for rounds in candidates]
    return memories


def memory_in_use(state: ELOCState) -> float | None:
    """Return the memory in use in rounds per user, or None without forgetting."""
    retention = float(state.memories[0, RETENTION])
    return None if retention == 1.0 else 1.0 / (1.0 - retention)


def has_same_memories(state: ELOCState, other: ELOCState) -> bool:
    """Return whether two states have the same memories, in any order."""
    return sorted(state.memories[:, RETENTION].tolist()) == sorted(other.memories[:, RETENTION].tolist())


def upgrade_arrays(arrays: dict[str, NDArray[Any]], blank: ELOCState) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file, with the array ``memories``, which files of earlier versions do not have.

    In these files, ``float_params`` has one more entry. All its entries are parameters, so those of ``blank`` are used.
    """
    if "memories" in arrays:
        return arrays
    return arrays | {"memories": blank.memories.copy(), "float_params": blank.float_params.copy()}


def check_certificates_available(memory: float | str | None) -> None:
    """Raise an ``UnavailableError`` if certificates are unavailable: with ``memory``, preferences may change."""
    if memory is not None:
        raise UnavailableError(
            f"certificates are only available for preferences that do not change: memory must be None, not {memory!r}"
        )


def check_corrections_available(memory: float | str | None) -> None:
    """Raise an ``UnavailableError`` if corrections are unavailable: the weight of an observation must be known."""
    if memory is not None:
        raise UnavailableError(
            f"rewards cannot be corrected with memory={memory!r}, because the current weight of the observation is "
            "not known: memory must be None"
        )
