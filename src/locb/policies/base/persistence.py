"""Saving and loading of policies whose state is a tuple of arrays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from locb.kernels.common.linear_algebra import packed_size
from locb.policies.base import serialization
from locb.policies.base.checkpoints import BufferPool, Checkpoint
from locb.policies.base.inspectable import InspectablePolicy
from locb.policies.state.user_rows import skip_row_initialization

if TYPE_CHECKING:
    from locb.policies.base.compiled import CompiledPolicy


class PersistentPolicy(InspectablePolicy):
    """A policy that can be saved: its parameters and the arrays of its state describe it completely."""

    _policy_classes: ClassVar[dict[str, type[PersistentPolicy]]] = {}  # by the name in a file
    # The array of the state with d + d (d + 1) / 2 numbers per user.
    _row_array: ClassVar[str] = "estimates"
    # Arrays with one row per user, followed by spare rows for new users.
    _user_rows: ClassVar[tuple[str, ...]] = ()
    # Arrays that a file does not contain, because ``_rebuild_derived`` computes them from the others.
    _not_saved: ClassVar[tuple[str, ...]] = ()
    # Parts of the state that hold parameters. A file cannot change them without the checks of the constructor.
    _settings: ClassVar[dict[str, slice]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if getattr(cls, "_kernel", None) is not None:
            PersistentPolicy._policy_classes[cls._saved_name()] = cls

    @classmethod
    def _saved_name(cls) -> str:
        """Return the name in a file: the class name of a built-in policy, ``module:Class`` of any other."""
        return cls.__name__ if _is_built_in(cls) else f"{cls.__module__}:{cls.__qualname__}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file. The policy that ``locb.load`` reads from it continues exactly like this one."""
        serialization.write(path, self._header(), self._arrays())

    def checkpoint(self, buffers: BufferPool | None = None) -> Checkpoint:
        """Return a copy of what ``save`` would write now; another thread can save it to a file later.

        Parameters
        ----------
        buffers : BufferPool, optional
            Memory for the copy. The copy is valid until the next checkpoint uses the same pool.
        """
        arrays, state = self._arrays(), self._state._asdict()
        shared = [name for name, array in arrays.items() if name in state and np.may_share_memory(array, state[name])]
        copy = (buffers or BufferPool()).copy
        return Checkpoint(self._header(), arrays | {name: copy(name, arrays[name]) for name in shared})

    def reserve(self, buffers: BufferPool) -> None:
        """Allocate memory in a pool for a checkpoint, including the spare rows for new users."""
        buffers.reserve(self._state._asdict())

    def _header(self) -> dict[str, Any]:
        return {"policy": self._saved_name(), "parameters": dict(self._parameters)}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, in the shapes that a new policy with the same parameters has."""
        arrays: dict[str, NDArray[Any]] = self._state._asdict()
        users = slice(self._n_users)
        return {
            name: array[users] if name in self._user_rows else array
            for name, array in arrays.items()
            if name not in self._not_saved
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Replace the state by the arrays of a file; raise ValueError if they are inconsistent."""
        blank = {name: array for name, array in self._state._asdict().items() if name not in self._not_saved}
        if arrays.keys() != blank.keys():
            raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(blank)}")
        for name, array in arrays.items():
            if array.shape != blank[name].shape or array.dtype != blank[name].dtype:
                expected = f"{blank[name].dtype} of shape {blank[name].shape}"
                raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, not {expected}")
        for name, (low, high) in self._index_limits().items():
            values = arrays[name]
            if values.size and not low <= values.min() <= values.max() < high:
                raise ValueError(f"{name} holds {values.min()} … {values.max()}, outside {low} … {high - 1}")
        for name, part in self._settings.items():
            arrays[name][part] = blank[name][part]
        state = self._state._replace(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        for name, is_consistent in self._consistency(state).items():
            if not is_consistent:
                raise ValueError(f"array {name!r} is invalid or inconsistent with the other arrays")
        self._state = state
        self._rebuild_derived()

    def _rebuild_derived(self) -> None:
        """Compute the arrays that a file does not contain."""

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        """Return the range [low, high) of each array of indices, so that no file can point outside an array."""
        return {}

    def _consistency(self, state: Any) -> dict[str, bool]:
        """Return, per array of a state that was read, whether it agrees with the other arrays."""
        floats = [array for array in state if array.dtype.kind == "f" and array is not state.float_params]
        return {
            "served": bool((state.served >= 0).all()) and int(state.served.sum()) == int(state.int_params[0]),
            "estimates": all(bool(np.isfinite(array).all()) for array in floats),
            "generator": bool(state.generator[0] != 0),
        }


def _is_built_in(policy_class: type) -> bool:
    return policy_class.__module__.startswith("locb.")


def _find_class(path: str | os.PathLike[str], name: str) -> type[PersistentPolicy]:
    """Return the class that has a name in files. Nothing is imported, so that reading a file executes no code."""
    classes = PersistentPolicy._policy_classes
    if name in classes:
        return classes[name]
    module, colon, _ = name.partition(":")
    if colon:
        raise ValueError(
            f"{path} has a policy of the class {name!r}, which is not defined in this process: import {module} before "
            "loading, or define the class under this name"
        )
    known = ", ".join(sorted(known for known, policy_class in classes.items() if _is_built_in(policy_class)))
    raise ValueError(f"{path} has a policy of the unknown class {name!r}; the built-in classes are {known}")


def load(path: str | os.PathLike[str]) -> CompiledPolicy:
    """Read a saved policy.

    Parameters
    ----------
    path : str or path-like
        A file that ``policy.save`` or ``Checkpoint.save`` wrote.

    Returns
    -------
    CompiledPolicy
        A policy that continues exactly as the saved one would.

    Raises
    ------
    ValueError
        If the file is damaged, is not a saved policy, has another format version, or has a policy of a class that is
        not defined in this process.
    """
    header, arrays = serialization.read(path)
    policy_class = _find_class(path, str(header.get("policy")))
    try:
        parameters = header["parameters"]
        n_users, dim = len(arrays["served"]), parameters["dim"]
        # The arrays must confirm the sizes of the header before anything of that size is allocated.
        if parameters["n_users"] != n_users or arrays[policy_class._row_array].shape[1] != dim + packed_size(dim):
            name = policy_class._row_array
            raise ValueError(
                f"the header specifies {parameters['n_users']} users and {dim} features, but the arrays have {n_users} "
                f"users, and {name!r} has shape {arrays[name].shape}"
            )
        with skip_row_initialization():
            policy = policy_class(**parameters)
        policy._restore(arrays)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    return cast("CompiledPolicy", policy)
