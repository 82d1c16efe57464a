"""The six ways in which this package compiles a function.

All divide as NumPy does (x / 0 is inf), so that no check stands in an inner loop. What Python calls is kept on disk
once compiled, with all that went into it; so the parts need not be.
With NUMBA_DISABLE_JIT=1 each gives the function back unchanged.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

# Nobody calls a kernel from C: a way in from there is not made.
_COMMON: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
# No counting of references: arrays are borrowed from the caller, and none may be made here. In a round of a
# microsecond the counting of twenty arrays took a quarter of the time.
_BORROWED: dict[str, Any] = {**_COMMON, "_nrt": False}
_HIDDEN: dict[str, Any] = {**_BORROWED, "no_cpython_wrapper": True}
_MADE: dict[str, Any] = {**_COMMON, "no_cpython_wrapper": True}


def entry_point(function: F) -> F:
    """Compile a function that Python calls; it may make arrays."""
    return cast(F, njit(**_COMMON, cache=True)(function))


def alloc(function: F) -> F:
    """Compile a function that makes arrays for others, and that Python never calls."""
    return cast(F, njit(**_MADE)(function))


def no_alloc(function: F) -> F:
    """Compile a function that works on its caller's arrays and makes none, and that Python never calls.

    Without a way in from Python it is a third less to compile. Tests call it through ``tests/through.py``.
    """
    return cast(F, njit(**_HIDDEN)(function))


def inline_entry_point(function: F) -> F:
    """Compile with a way in from Python, and as a part of every compiled caller: for what is used by both."""
    return cast(F, njit(**_BORROWED, forceinline=True)(function))


def inline(function: F) -> F:
    """Compile as ``no_alloc`` does, and as a part of every caller: for what runs many times a round."""
    return cast(F, njit(**_HIDDEN, forceinline=True)(function))


def inline_fastmath(function: F) -> F:
    """Compile as ``part`` does, and let sums add up in any order, so that they use vector registers.

    NaN and infinity keep their meaning; only the rounding of the sum may differ in its last bits.
    """
    return cast(F, njit(**_HIDDEN, forceinline=True, fastmath={"reassoc", "contract", "nsz"})(function))
