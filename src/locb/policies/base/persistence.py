"""Base class of policies that can be saved, and ``load``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from locb.kernels.common.linear_algebra import packed_size
from locb.policies.base import file_format
from locb.policies.base.checkpoints import BufferPool, Checkpoint
from locb.policies.base.inspectable import InspectablePolicy
from locb.policies.state.user_rows import skip_row_initialization

if TYPE_CHECKING:
    from locb.policies.base.compiled import CompiledPolicy


class PersistentPolicy(InspectablePolicy):
    """Base class of policies that can be saved: the parameters and the arrays of the state describe the policy."""

    _policy_classes: ClassVar[dict[str, type[PersistentPolicy]]] = {}  # by ``_saved_name``
    # Name of the array with d + d (d + 1) / 2 columns, from which ``load`` checks the number d of features.
    _row_array: ClassVar[str] = "estimates"
    # Names of arrays with one row per user, followed by spare rows for new users. Spare rows are not saved.
    _user_rows: ClassVar[tuple[str, ...]] = ()
    # Names of arrays that are not saved, because ``_rebuild_derived`` computes them from the other arrays.
    _not_saved: ClassVar[tuple[str, ...]] = ()
    # Parts of arrays that hold parameters. ``load`` takes these parts from the constructor, not from the file.
    _settings: ClassVar[dict[str, slice]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if getattr(cls, "_kernel", None) is not None:
            PersistentPolicy._policy_classes[cls._saved_name()] = cls

    @classmethod
    def _saved_name(cls) -> str:
        """Return the name of the class in saved files: ``Class`` if it is built in, otherwise ``module:Class``."""
        return cls.__name__ if _is_built_in(cls) else f"{cls.__module__}:{cls.__qualname__}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the policy to a file. The policy that ``locb.load`` returns continues exactly like this policy."""
        file_format.write(path, self._header(), self._arrays())

    def checkpoint(self, buffers: BufferPool | None = None) -> Checkpoint:
        """Return a copy of the state that another thread can save to a file while the policy keeps learning.

        Parameters
        ----------
        buffers : BufferPool, optional
            Memory for the copy. The copy is valid until the next checkpoint with the same pool. By default, new memory
            is allocated.
        """
        arrays, state = self._arrays(), self._state._asdict()
        shared = [name for name, array in arrays.items() if name in state and np.may_share_memory(array, state[name])]
        copy = (buffers or BufferPool()).copy
        return Checkpoint(self._header(), arrays | {name: copy(name, arrays[name]) for name in shared})

    def reserve(self, buffers: BufferPool) -> None:
        """Allocate memory in a pool for later checkpoints, including memory for new users in the spare rows."""
        buffers.reserve(self._state._asdict())

    def _header(self) -> dict[str, Any]:
        """Return the class and the parameters, from which ``restore_policy`` creates the policy."""
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
        """Replace the state by the arrays of a file; raise a ValueError if they are invalid or inconsistent."""
        blank = {name: array for name, array in self._state._asdict().items() if name not in self._not_saved}
        if arrays.keys() != blank.keys():
            raise ValueError(f"the file has the arrays {sorted(arrays)}, not {sorted(blank)}")
        for name, array in arrays.items():
            if array.shape != blank[name].shape or array.dtype != blank[name].dtype:
                expected = f"{blank[name].dtype} of shape {blank[name].shape}"
                raise ValueError(f"array {name!r} is {array.dtype} of shape {array.shape}, not {expected}")
        for name, (low, high) in self._index_limits().items():
            values = arrays[name]
            if values.size and not low <= values.min() <= values.max() < high:
                raise ValueError(
                    f"array {name!r} has values from {values.min()} to {values.max()}, but the allowed values are "
                    f"from {low} to {high - 1}"
                )
        for name, part in self._settings.items():
            arrays[name][part] = blank[name][part]
        state = self._state._replace(**{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        for name, is_consistent in self._consistency(state).items():
            if not is_consistent:
                raise ValueError(f"array {name!r} is invalid or inconsistent with the other arrays")
        self._state = state
        self._rebuild_derived()

    def _rebuild_derived(self) -> None:
        """Compute the arrays of ``_not_saved`` from the other arrays."""

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        """Return the range [low, high) of each array of indices, so that no index in a file is outside an array."""
        return {}

    def _consistency(self, state: Any) -> dict[str, bool]:
        """Return, by array name, whether the array of a loaded state is valid and consistent with the other arrays."""
        floats = [array for array in state if array.dtype.kind == "f" and array is not state.float_params]
        return {
            "served": bool((state.served >= 0).all()) and int(state.served.sum()) == int(state.int_params[0]),
            "estimates": all(bool(np.isfinite(array).all()) for array in floats),
            "generator": bool(state.generator[0] != 0),
        }


def _is_built_in(policy_class: type) -> bool:
    return policy_class.__module__.startswith("locb.")


def _find_class(path: str | os.PathLike[str], name: str) -> type[PersistentPolicy]:
    """Return the class with a given ``_saved_name``. Does not import modules, so that loading a file runs no code."""
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
    """Load a policy from a file.

    Parameters
    ----------
    path : str or path-like
        A file that ``policy.save`` or ``Checkpoint.save`` wrote.

    Returns
    -------
    CompiledPolicy
        A policy that continues exactly as the saved policy would.

    Raises
    ------
    ValueError
        If the file is damaged, is not a saved policy, has another format version, or has a policy of a class that is
        not defined in this process; also if the memory is insufficient.
    OSError
        If the file does not exist or cannot be opened.
    """
    return restore_policy(path, *file_format.read(path))


def restore_policy(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> CompiledPolicy:
    """Return the policy with this header and these arrays, which were read from the file ``path``.

    Raises
    ------
    ValueError
        As ``load`` does.
    """
    policy_class = _find_class(path, str(header.get("policy")))
    try:
        parameters = header["parameters"]
        n_users, dim = len(arrays["served"]), parameters["dim"]
        # Check the sizes in the header against the arrays before memory of these sizes is allocated.
        if parameters["n_users"] != n_users or arrays[policy_class._row_array].shape[1] != dim + packed_size(dim):
            name = policy_class._row_array
            raise ValueError(
                f"the header specifies {parameters['n_users']} users and {dim} features, but the arrays have {n_users} "
                f"users, and {name!r} has shape {arrays[name].shape}"
            )
        with skip_row_initialization():
            policy = policy_class(**parameters)
        policy._restore(arrays)
    except MemoryError as error:
        raise ValueError(f"{path} cannot be loaded: {error}; memory is insufficient, or the file is damaged") from error
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        if isinstance(error, TypeError) and not _is_built_in(policy_class):
            advice = "load the file with the version of the class that saved it"
            raise ValueError(f"{path} does not match its class {header['policy']!r}: {error}; {advice}") from error
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} is damaged: {reason}; use another copy of the file") from error
    return cast("CompiledPolicy", policy)
