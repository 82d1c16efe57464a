"""Checks of arguments: each returns the value in its plain form or raises a ValueError that names the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from locb.common.rounds import MAX_REWARD
from locb.kernels.common.linear_algebra import TIE_FIRST, TIE_RANDOM

MAX_REWARDS = {"float64": MAX_REWARD, "float32": 1e30}  # largest absolute reward by number type
TIE_RULES = {"first": TIE_FIRST, "random": TIE_RANDOM}


def check_int(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int within [low, high]."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, not {value!r}") from None
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
    if not inside:  # always so for NaN
        between = "strictly between" if open_ends else "between"
        raise ValueError(f"{name} must be {between} {low:g} and {high:g}, not {number}")
    return number


def check_dtype(value: Any) -> str:
    """Return the name of a number type of the per-user state: "float64" or "float32"."""
    for name in MAX_REWARDS:
        if isinstance(value, str | type | np.dtype) and value in (name, np.dtype(name), np.dtype(name).type):
            return name
    raise ValueError(f"dtype must be 'float64' or 'float32', not {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value
