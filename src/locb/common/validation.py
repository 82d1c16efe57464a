"""Checks of arguments. Each check returns the value as a plain type, or raises a ValueError that names the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from locb.common.arrays import Floats

MAX_CONTEXT = 1e6  # above this, a rank-one update loses its significant digits
MAX_REWARD = 1e100  # above this, a square may overflow


def check_int(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int within [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, not {value!r}") from None
    if (low is not None and number < low) or (high is not None and number > high):
        limits = f"at most {high}" if low is None else f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {limits}, not {number}")
    return number


def check_float(name: str, value: Any, low: float, high: float = MAX_REWARD, *, open_ends: bool = False) -> float:
    """Return ``value`` as a float within [low, high], or strictly between them with ``open_ends``."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) and not isinstance(value, float | np.floating):
        raise ValueError(f"{name} must be a number, not {value!r}")
    inside = low < number < high if open_ends else low <= number <= high
    if not inside:  # NaN is never inside
        allowed = f"{'strictly between' if open_ends else 'between'} {low:g} and {high:g}"
        if high == MAX_REWARD and number <= low:
            allowed = f"{'above' if open_ends else 'at least'} {low:g}"
        raise ValueError(f"{name} must be {allowed}, not {number}")
    return number


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def check_array(
    name: str, values: Any, shape: tuple[int | None, ...], max_abs: float = MAX_CONTEXT, because: str = ""
) -> Floats:
    """Return ``values`` as a C-contiguous, writable float64 array, after checking shape and values.

    Parameters
    ----------
    name : str
        The name of the argument, for error messages.
    values : array-like
        Numbers.
    shape : tuple of int or None
        The required shape. None allows any length.
    max_abs : float, default MAX_CONTEXT
        The largest absolute value that is allowed.
    because : str, default ""
        Text that error messages append to the required shape.

    Raises
    ------
    ValueError
        If the values are not numbers, the shape differs, or a value is not finite or too large.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"they are {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}){because}, not {array.shape}")
    if array.size and not (array.min() >= -max_abs and array.max() <= max_abs):  # NaN fails both comparisons
        index = tuple(int(i) for i in np.argwhere(~(np.abs(array) <= max_abs))[0])
        raise ValueError(
            f"{name} must be finite and at most {max_abs:g} in absolute value, "
            f"but {name}{list(index)} is {array[index]}"
        )
    # Kernels are compiled for contiguous, writable arrays. Any other layout would be compiled again.
    return array if array.flags.carray else np.array(array, order="C")
