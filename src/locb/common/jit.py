"""Decorators that compile a function with Numba: six sets of options, one decorator each.

| decorator | callable from Python | may allocate arrays | inlined into callers |
| --- | --- | --- | --- |
| `entry_point` | yes, cached on disk | yes | no |
| `alloc` | no | yes | no |
| `no_alloc` | no | no | no |
| `inline` | no | no | yes |
| `inline_fastmath` | no | no | yes, sums may be reordered |
| `inline_entry_point` | yes | no | yes |

All of them use NumPy's error model (x / 0 is inf), so that no inner loop checks for a zero divisor. The disk cache of
an entry point holds the code of everything that it calls, so the other functions need no cache of their own.
With ``NUMBA_DISABLE_JIT=1`` each decorator returns the function unchanged.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

# No kernel is called from C, so no C entry point is compiled.
_COMMON: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
# Without the Numba runtime (NRT) there is no reference counting: arrays are borrowed from the caller, and none can be
# allocated. In a round of 1 µs, counting the references of twenty arrays took a quarter of the time.
_NO_ALLOC: dict[str, Any] = {**_COMMON, "_nrt": False}
_NO_ALLOC_INTERNAL: dict[str, Any] = {**_NO_ALLOC, "no_cpython_wrapper": True}
_ALLOC_INTERNAL: dict[str, Any] = {**_COMMON, "no_cpython_wrapper": True}


def entry_point(function: F) -> F:
    """Compile a function that Python calls. It may allocate arrays. The result is cached on disk."""
    return cast(F, njit(**_COMMON, cache=True)(function))


def alloc(function: F) -> F:
    """Compile a function that allocates arrays and that only compiled code calls."""
    return cast(F, njit(**_ALLOC_INTERNAL)(function))


def no_alloc(function: F) -> F:
    """Compile a function that allocates nothing and that only compiled code calls.

    Without a wrapper for Python, compilation takes a third less time. Tests call such a function through
    ``tests/compiled_calls.py``.
    """
    return cast(F, njit(**_NO_ALLOC_INTERNAL)(function))


def inline_entry_point(function: F) -> F:
    """Compile a function that Python calls and that is also inlined into its compiled callers."""
    return cast(F, njit(**_NO_ALLOC, forceinline=True)(function))


def inline(function: F) -> F:
    """Compile like ``no_alloc`` and inline the function into every caller: for code that runs many times per round."""
    return cast(F, njit(**_NO_ALLOC_INTERNAL, forceinline=True)(function))


def inline_fastmath(function: F) -> F:
    """Compile like ``inline`` and allow sums in any order, so that they use vector registers.

    NaN and infinity keep their meaning. Only the last bits of a sum may differ by rounding.
    """
    return cast(F, njit(**_NO_ALLOC_INTERNAL, forceinline=True, fastmath={"reassoc", "contract", "nsz"})(function))
