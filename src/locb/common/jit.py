"""Decorators that compile a function with Numba.

| decorator | callable from Python | may allocate arrays | inlined into callers |
| --- | --- | --- | --- |
| `entry_point` | yes, cached on disk | yes | no |
| `alloc` | no | yes | no |
| `no_alloc` | no | no | no |
| `inline` | no | no | yes |
| `inline_fastmath` | no | no | yes, sums may be reordered |
| `inline_entry_point` | yes | no | yes |

All decorators use NumPy's error model (x / 0 is inf), so that no inner loop checks for a zero divisor. The disk cache
of a function contains the code of all functions that it calls, so only `entry_point` functions are cached (see
``locb.common.kernel_cache``).
With ``NUMBA_DISABLE_JIT=1`` each decorator returns the function unchanged.

``compile_unchecked`` and ``compile_callback`` compile a function for one signature immediately.
"""

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import njit
from numba.core import event

from locb.common.compile_notice import CompileNotice
from locb.common.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., object])

# Versions of Numba with which ``deferred_code``, which uses internals of Numba, is tested. With other versions,
# functions are compiled by Numba's own pipeline: the compiled code is the same, but compilation takes twice as long.
TESTED_NUMBA = ("0.68",)
_DEFERRED: dict[str, Any] = {}
_WHOLE: dict[str, Any] = {}
if numba.__version__.rpartition(".")[0] in TESTED_NUMBA:
    from locb.common.deferred_code import DeferredCompiler, WholeCompiler, ignore_literals

    _DEFERRED["pipeline_class"] = DeferredCompiler
    _WHOLE["pipeline_class"] = WholeCompiler
else:

    def ignore_literals(dispatcher: Any) -> Any:
        """Return the dispatcher unchanged."""
        return dispatcher


# No kernel is called from C, so no C entry point is compiled. An option that is not set has the value of the caller for
# which a function is compiled first, so that the code would depend on the order of compilation.
_COMMON: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True, "forceinline": False, "fastmath": False}
# Without the Numba runtime (NRT) there is no reference counting: functions use the arrays of the caller and cannot
# allocate arrays. In a round of 1 µs, counting the references to twenty arrays took a quarter of the time.
_NO_ALLOC: dict[str, Any] = {**_COMMON, "_nrt": False}
_INTERNAL: dict[str, Any] = {"no_cpython_wrapper": True, **_DEFERRED}
_NO_ALLOC_INTERNAL: dict[str, Any] = {**_NO_ALLOC, **_INTERNAL}
_INLINE: dict[str, Any] = {**_NO_ALLOC_INTERNAL, "forceinline": True}
_ALLOC_INTERNAL: dict[str, Any] = {**_COMMON, **_INTERNAL}


event.register("numba:compile", CompileNotice())  # type: ignore[no-untyped-call]


def entry_point(function: F) -> F:
    """Compile a function that Python calls and that may allocate arrays. The compiled code is cached on disk."""
    compiled = njit(**_COMMON)(function)
    if compiled is not function:  # NUMBA_DISABLE_JIT=1 returns the function itself
        compiled._cache = KernelCache(function)
    return cast(F, compiled)


def alloc(function: F) -> F:
    """Compile a function that allocates arrays and that only compiled code calls."""
    return cast(F, ignore_literals(njit(**_ALLOC_INTERNAL)(function)))


def no_alloc(function: F) -> F:
    """Compile a function that allocates nothing and that only compiled code calls.

    The function has no wrapper for calls from Python, which saves a third of the compilation time. Tests call such
    functions through ``tests/compiled_calls.py``.
    """
    return cast(F, ignore_literals(njit(**_NO_ALLOC_INTERNAL)(function)))


def inline_entry_point(function: F) -> F:
    """Compile a function that Python calls, that allocates nothing, and that is inlined into compiled callers."""
    return cast(F, njit(**{**_NO_ALLOC, "forceinline": True})(function))


def inline(function: F) -> F:
    """Compile like ``no_alloc``, and inline the function into every caller: for code that runs often per round."""
    return cast(F, ignore_literals(njit(**_INLINE)(function)))


def inline_fastmath(function: F) -> F:
    """Compile like ``inline``, and let the compiler reorder sums, so that it can use vector instructions.

    NaN and infinity are handled as usual. The result may differ from that in program order by rounding, and in the sign
    of zero.
    """
    return cast(F, ignore_literals(njit(**{**_INLINE, "fastmath": {"reassoc", "contract", "nsz"}})(function)))


def compile_unchecked(function: F, signature: Any) -> F:
    """Return the compiled code of a function that allocates nothing, for one signature. The code is cached on disk.

    Calls are faster than those of an ``entry_point``, because the types of arguments are not compared with the
    signature. The caller must check the data type and the number of dimensions of arrays.
    """
    return cast(F, _compile(function, signature, _NO_ALLOC)[0].entry_point)


def compile_callback(function: Callable[..., int], signature: Any) -> int:
    """Return the address of a C function: the compiled code of a function that allocates nothing, cached on disk."""
    result, dispatcher = _compile(function, signature, {**_NO_ALLOC, "no_cfunc_wrapper": False})
    _callbacks[function] = dispatcher
    return cast(int, result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


def is_compiled(function: Callable[..., int], signature: Any) -> bool:
    """Return whether ``compile_callback`` has compiled a function before, in this process or in the disk cache."""
    return function in _callbacks or KernelCache(function).has(signature)


_callbacks: dict[Callable[..., int], Any] = {}  # so that the code of callbacks is never freed


def _compile(function: Callable[..., object], signature: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    dispatcher = njit(**options, **_WHOLE)(function)
    dispatcher._cache = KernelCache(function)
    is_enabled = gc.isenabled()
    gc.disable()  # the compiler creates many objects that live until its end; collections take a tenth of the time
    try:
        return dispatcher.get_compile_result(signature), dispatcher
    finally:
        if is_enabled:
            gc.enable()


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function before its compilation."""
    return cast(Callable[..., Any], getattr(function, "py_func", function))
