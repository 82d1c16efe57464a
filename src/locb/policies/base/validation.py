"""Checks of what a policy is given: the value in plain form, or a ValueError that names it."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from locb.common.rounds import MAX_REWARD
from locb.kernels.common.linear_algebra import TIE_FIRST, TIE_RANDOM

MAX_REWARDS = {"float64": MAX_REWARD, "float32": 1e30}
TIE_RULES = {"first": TIE_FIRST, "random": TIE_RANDOM}


def check_int(name: str, value: Any, low: int, high: int | None = None) -> int:
    """``value`` as an int within [low, high], or a ValueError that names it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None
    if number < low or (high is not None and number > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be {limits}, not {number}")
    return number


def check_float(name: str, value: Any, low: float, high: float = MAX_REWARD, *, open_ends: bool = False) -> float:
    """``value`` as a float within [low, high], or strictly between them, or a ValueError that names it."""
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) and not isinstance(value, float | np.floating):
        raise ValueError(f"{name} must be a number, not {value!r}")
    inside = low < number < high if open_ends else low <= number <= high
    if not inside:  # NaN is inside nothing
        between = "strictly between" if open_ends else "between"
        raise ValueError(f"{name} must be {between} {low:g} and {high:g}, not {number}")
    return number


def number_type(value: Any) -> str:
    """The name of a floating-point type that policies keep their numbers in, or a ValueError."""
    for name in MAX_REWARDS:
        if isinstance(value, str | type | np.dtype) and value in (name, np.dtype(name), np.dtype(name).type):
            return name
    raise ValueError(f"dtype must be 'float64' or 'float32', not {value!r}")


def one_of(name: str, value: Any, choices: dict[str, int]) -> int:
    """The code of a named choice, or a ValueError that lists the names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return choices[value]
