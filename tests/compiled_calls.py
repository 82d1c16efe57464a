"""Functions that call kernels from Python if the kernels are compiled without a Python wrapper."""

from functools import cache
from typing import Any

from numba import njit


@cache
def call_compiled(function: Any) -> Any:
    """Return a function that Python can call and that calls the compiled one."""
    if not hasattr(function, "py_func"):  # the compiler is disabled
        return function

    @njit
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call
