"""Handles: calls of a kernel from Python without the conversion of each array of its state.

Numba converts each array of an argument in every call, which takes 3 µs for a state of 25 arrays. A *handle* holds the
state, the scratch and a *table*: one array with a header, followed by the address and the shape of every array. A
compiled call receives the address of the table, and builds the arrays from it.

A kernel that is called by handles has two functions. ``allocate_scratch(state, n_arms, dim)`` returns new work arrays.
``run_rounds(state, scratch, steps, users, contexts, rewards, chosen)`` runs T rounds. If ``steps`` contains ``CHOOSE``,
it writes the index of an arm to ``chosen``, or −1 if all scores are NaN. If ``steps`` contains ``LEARN``, it learns the
reward of the arm in ``chosen``. With ``REUSE``, the scratch contains the results of the last ``CHOOSE`` for the user of
the only round, and the state has not changed since. The shapes of the last four arguments are (T,), (T, k, d), (T, k)
and (T,). Symbols are defined in ``locb.kernels``.

``run_rounds`` is compiled once per type of the state; ``recommend`` and ``update`` in this module call it, and serve
all policies. ``Handle.run`` calls ``run_rounds`` directly if it is not compiled: a plain Python function, or any
function with ``NUMBA_DISABLE_JIT=1``.

A kernel can have a third function, ``choose_round(state, scratch, user, contexts)``, which returns the same arm as
``run_rounds`` with ``CHOOSE`` and leaves the same scratch. Its compilation takes less than half the time of
``run_rounds``. ``recommend`` calls it if ``run_rounds`` is not compiled yet, neither in this process nor in the cache.
"""

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # has no type hints
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from locb.common.arrays import Floats, Ints
from locb.common.jit import compile_callback, compile_unchecked, is_compiled, plain
from locb.kernels.common.arm_scoring import is_valid

CHOOSE, LEARN, REUSE = 1, 2, 4  # bits of the argument ``steps`` of ``run_rounds``
# Entries of the header of a table: addresses of the compiled functions for ``recommend`` and for all other calls, or 0
# before their compilation; number of arms and of features of the scratch; largest absolute reward (float64); and user,
# chosen arm and reward (float64) of a call for one user. The user is −1 if the state may have changed since the last
# call of ``recommend``.
CHOOSER, RUNNER, N_ARMS, DIM, MAX_REWARD, USER, ARM, REWARD = 0, 1, 2, 3, 4, 5, 6, 7
HEADER = 8
# Results of ``recommend`` and ``update`` that are not an arm: no result, because an argument is invalid or all scores
# are NaN; no call, because the handle does not exist, does not have the shape of the arguments, or is not compiled.
FAILED, NO_HANDLE = -1, -2
LEARNED = 0
_NO_REWARDS = np.empty((1, 0))
_SIGNATURE = types.int64(*[types.int64] * 7)  # of the compiled functions in a table
_WORD = ir.IntType(64)
_address = cache(compile_callback)
# Functions of Numba without type hints, or with type hints that do not match their use.
_intrinsic: Any = intrinsic
_populate_array: Any = populate_array
_type_of: Any = typeof
_unpack_tuple: Any = cgutils.unpack_tuple


@_intrinsic  # type: ignore[untyped-decorator]
def _as_array(_typing: Any, address: Any, dtype: Any, shape: Any) -> Any:
    """Return the array of a shape at an address."""
    result = types.Array(dtype.dtype, len(shape), "C")

    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        extents = _unpack_tuple(builder, arguments[2])
        return _build_array(context, builder, result, arguments[0], extents)

    return result(address, dtype, shape), build


@_intrinsic  # type: ignore[untyped-decorator]
def _address_of(_typing: Any, array: Any) -> Any:
    """Return the address of the first number of an array."""

    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        return builder.ptrtoint(data, _WORD)

    return types.int64(array), build


@_intrinsic  # type: ignore[untyped-decorator]
def _call(_typing: Any, function: Any, arguments: Any) -> Any:
    """Call the compiled function at an address with a tuple of its seven arguments."""

    def build(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD] * len(arguments))
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), _unpack_tuple(builder, values[1]))

    return types.int64(function, arguments), build


def _build_array(context: Any, builder: Any, array_type: Any, address: Any, shape: Any) -> Any:
    """Return the value of a C-contiguous array in compiled code."""
    array = context.make_array(array_type)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    strides = [_WORD(itemsize)]
    for extent in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], extent))
    data = builder.inttoptr(address, context.get_data_type(array_type.dtype).as_pointer())
    _populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


def _unpacker(structure: Any) -> Any:
    """Return a compiled function that builds nested tuples of arrays of the Numba type ``structure`` from a table."""

    @_intrinsic  # type: ignore[untyped-decorator]
    def unpack(_typing: Any, _table: Any) -> Any:
        def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            words = builder.inttoptr(arguments[0], _WORD.as_pointer())
            position = iter(range(HEADER, 1 << 30))

            def load() -> Any:
                return builder.load(builder.gep(words, [_WORD(next(position))]))

            def build_value(part: Any) -> Any:
                if isinstance(part, types.Array):
                    return _build_array(context, builder, part, load(), [load() for _ in range(part.ndim)])
                return context.make_tuple(builder, part, [build_value(item) for item in part.types])

            return build_value(structure)

        return structure(types.int64), build

    return unpack


def _arrays(values: Any) -> Iterator[Any]:
    """Yield the arrays in nested tuples."""
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays(value)
        else:
            yield value


def _share(new: Any, old: Any) -> Any:
    """Return ``new``, but with each array of ``old`` that has the same shape.

    Handles for different numbers of arms thus share these arrays.
    """
    if not isinstance(new, tuple):
        return old if new.shape == old.shape else new
    parts = [_share(part, other) for part, other in zip(new, old, strict=True)]
    return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)


def recommend(table: int, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, ``FAILED`` or ``NO_HANDLE``.

    ``contexts`` can be any two-dimensional float64 array.
    """
    header = _as_array(table, np.int64, (HEADER,))
    n_arms, dim = contexts.shape
    address = _address_of(contexts)
    is_ready = header[CHOOSER] != 0 and n_arms == header[N_ARMS] and dim == header[DIM]
    if not is_ready or contexts.strides != (8 * dim, 8) or address & 7:
        return NO_HANDLE
    if not is_valid(_as_array(address, np.float64, (n_arms * dim,))):
        return FAILED
    header[USER] = user
    _call(header[CHOOSER], (table, CHOOSE, 1, table + 8 * USER, address, 0, table + 8 * ARM))
    arm: int = header[ARM]
    return arm


def update(table: int, user: int, x: Floats, reward: float) -> int:
    """Learn the reward of context x. Return ``LEARNED``, ``FAILED`` or ``NO_HANDLE``."""
    header = _as_array(table, np.int64, (HEADER,))
    floats = _as_array(table, np.float64, (HEADER,))
    dim, address = x.size, _address_of(x)
    if dim != header[DIM] or x.strides != (8,) or address & 7 or header[RUNNER] == 0:
        return NO_HANDLE
    if not abs(reward) <= floats[MAX_REWARD] or not is_valid(x):
        return FAILED
    steps = LEARN | REUSE if header[USER] == user else LEARN
    header[USER], header[ARM], floats[REWARD] = user, 0, reward
    _call(header[RUNNER], (table, steps, 1, table + 8 * USER, address, table + 8 * REWARD, table + 8 * ARM))
    header[USER] = -1
    return LEARNED


@cache
def _compile_calls() -> tuple[Callable[..., int], Callable[..., int]]:
    """Return the compiled ``recommend`` and ``update``. They do not check the types of arrays."""
    contexts, context = types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C")
    return (
        compile_unchecked(recommend, types.int64(types.int64, types.int64, contexts)),
        compile_unchecked(update, types.int64(types.int64, types.int64, context, types.float64)),
    )


@cache
def _runner(run_rounds: Any, structure: Any) -> Any:
    """Return the function that is compiled to call ``run_rounds`` with a type of the state and the scratch."""
    unpack = _unpacker(structure)

    def run(table: int, steps: int, count: int, users: int, contexts: int, rewards: int, arms: int) -> int:
        header = _as_array(table, np.int64, (HEADER,))
        n_arms = header[N_ARMS] if steps & CHOOSE else 1
        state, scratch = unpack(table)
        run_rounds(
            state,
            scratch,
            steps,
            _as_array(users, np.int64, (count,)),
            _as_array(contexts, np.float64, (count, n_arms, header[DIM])),
            _as_array(rewards, np.float64, (count, n_arms)),
            _as_array(arms, np.int64, (count,)),
        )
        return 0

    return _name(run, run_rounds, structure)


@cache
def _chooser(choose_round: Any, structure: Any) -> Any:
    """Return the function that is compiled to call ``choose_round`` with a type of the state and the scratch."""
    unpack = _unpacker(structure)

    def choose(table: int, _steps: int, count: int, users: int, contexts: int, _rewards: int, arms: int) -> int:
        header = _as_array(table, np.int64, (HEADER,))
        state, scratch = unpack(table)
        offered = _as_array(contexts, np.float64, (count, header[N_ARMS], header[DIM]))
        for t in range(count):
            user = _as_array(users, np.int64, (count,))[t]
            _as_array(arms, np.int64, (count,))[t] = choose_round(state, scratch, user, offered[t])
        return 0

    return _name(choose, choose_round, structure)


def _name(function: Any, called: Any, structure: Any) -> Any:
    """Return the function with a name per type of state, because symbols of compiled code are global."""
    digest = hashlib.sha256(str(structure).encode()).hexdigest()[:16]
    function.__module__, function.__qualname__ = called.py_func.__module__, f"{called.__name__}_{digest}"
    return function


class Handle:
    """State and scratch of a policy, from which compiled calls read and to which they write.

    A handle is valid as long as it exists, because it owns the arrays. A copy would contain the addresses of the
    original arrays, so a handle cannot be copied or pickled.

    Parameters
    ----------
    kernel : module
        The module with the functions of the kernel.
    state : tuple of arrays
        The state of a policy.
    n_arms, dim : int
        Number of arms per round, and of features per arm.
    max_reward : float
        Largest absolute value of a reward for ``update``.
    other : Handle or None
        Another handle of the same state, with which scratch is shared.
    """

    __slots__ = ("_choose", "_kernel", "_run", "_table", "address", "recommend", "scratch", "state", "update")

    def __init__(
        self, kernel: ModuleType, state: Any, n_arms: int, dim: int, max_reward: float, other: "Handle | None"
    ) -> None:
        self._kernel, self.state = kernel, state
        scratch = plain(kernel.allocate_scratch)(state, n_arms, dim)
        self.scratch: Any = scratch if other is None else _share(scratch, other.scratch)
        self.address, self.recommend, self.update = 0, _no_call, _no_call
        if plain(kernel.run_rounds) is kernel.run_rounds:
            return
        words = [0] * HEADER
        for array in _arrays((state, self.scratch)):
            if not array.flags.c_contiguous:
                raise ValueError(f"the arrays of a state must be C-contiguous, but one has strides {array.strides}")
            words += [array.ctypes.data, *array.shape]
        self._table = np.array(words)
        self._table[[N_ARMS, DIM]] = n_arms, dim
        self._table.view(np.float64)[MAX_REWARD] = max_reward
        self.address = self._table.ctypes.data
        self.recommend, self.update = _compile_calls()
        self.forget()

    def compile(self, steps: int) -> None:
        """Compile the functions that these steps need, or load them from the cache, unless this was done before."""
        if self.address == 0 or self._table[RUNNER] or (steps == CHOOSE and self._table[CHOOSER]):
            return
        structure, kinds = _type_of((self.state, self.scratch)), [ctypes.c_int64] * 8
        runner, choose_round = _runner(self._kernel.run_rounds, structure), getattr(self._kernel, "choose_round", None)
        if steps != CHOOSE or choose_round is None or is_compiled(runner, _SIGNATURE):
            self._table[[CHOOSER, RUNNER]] = _address(runner, _SIGNATURE)
            self._run = ctypes.PYFUNCTYPE(*kinds)(int(self._table[RUNNER]))
        else:
            self._table[CHOOSER] = _address(_chooser(choose_round, structure), _SIGNATURE)
        self._choose = ctypes.CFUNCTYPE(*kinds)(int(self._table[CHOOSER]))  # releases the GIL during a call

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a handle cannot be copied or pickled: create a new one from the copied state")

    @property
    def scratch_bytes(self) -> int:
        """Memory of the scratch in bytes."""
        return sum(array.nbytes for array in _arrays(self.scratch))

    def forget(self) -> None:
        """Discard the results of the last ``recommend``, because the state may have changed."""
        if self.address:
            self._table[USER] = -1

    def run(self, steps: int, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
        """Run T rounds, with the arguments of ``run_rounds``. All arrays are C-contiguous."""
        if self.address == 0:
            self._kernel.run_rounds(self.state, self.scratch, steps, users, contexts, rewards, chosen)
            return
        self.compile(steps | LEARN)
        self.forget()
        addresses = (array.ctypes.data for array in (users, contexts, rewards, chosen))
        self._run(self.address, steps, len(users), *addresses)

    def choose(self, users: Ints, contexts: Floats, chosen: Ints) -> None:
        """Choose the arms of T rounds without learning. All arrays are C-contiguous.

        The GIL is released, so threads can choose at the same time, each with a handle that has its own scratch. The
        state must not change in the meantime.
        """
        if self.address == 0:
            self._kernel.run_rounds(self.state, self.scratch, CHOOSE, users, contexts, _NO_REWARDS, chosen)
            return
        self.compile(CHOOSE)
        self.forget()
        self._choose(self.address, CHOOSE, len(users), users.ctypes.data, contexts.ctypes.data, 0, chosen.ctypes.data)


def _no_call(*_arguments: Any) -> int:
    return NO_HANDLE


class NoHandle:
    """A handle without arrays, which runs nothing."""

    address = 0
    recommend = update = staticmethod(_no_call)

    def forget(self) -> None:
        """Do nothing, because no results are kept."""
