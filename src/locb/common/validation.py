"""Checks of arguments. Each check returns the value as a plain type, or raises an error that names the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints

MAX_CONTEXT = 1e6  # largest absolute feature value; above it, a rank-one update loses its significant digits
MAX_REWARD = 1e100  # largest absolute reward; above it, a square may overflow


class ParameterName(str):
    """Name of a parameter inside the message of a ``ParameterError``."""

    __slots__ = ()


class ParameterError(ValueError):
    """Error about the value of a parameter. The command line shows the names of its options instead of the parameters.

    Parameters
    ----------
    name : str
        Name of the parameter, with which the message starts.
    *parts : str
        Rest of the message, without spaces between the parts. A ``ParameterName`` is the name of another parameter.

    Examples
    --------
    >>> error = ParameterError("low", " must be at most ", ParameterName("high"), ", not 'low'")
    >>> str(error)
    "low must be at most high, not 'low'"
    >>> error.describe(lambda name: f"--{name}")
    "--low must be at most --high, not 'low'"
    """

    def __init__(self, name: str, *parts: str) -> None:
        super().__init__(ParameterName(name), *parts)

    def __str__(self) -> str:
        return self.describe(str)

    def describe(self, rename: Callable[[str], str]) -> str:
        """Return the message with ``rename(name)`` in the place of the name of each parameter."""
        return "".join(rename(part) if isinstance(part, ParameterName) else part for part in self.args)


def check_int(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int, or raise a ValueError unless it is an integer from ``low`` to ``high``.

    None means that there is no limit on that side.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(name, f" must be an integer, not {value!r}") from None
    if (low is not None and number < low) or (high is not None and number > high):
        limits = f"at most {high}" if low is None else f"at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(name, f" must be {limits}, not {number}")
    return number


def check_float(name: str, value: Any, low: float, high: float = MAX_REWARD, *, open_ends: bool = False) -> float:
    """Return ``value`` as a float, or raise a ValueError unless it is a number from ``low`` to ``high``.

    With ``open_ends``, the value must not be equal to ``low`` or ``high``.
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) and not isinstance(value, float | np.floating):
        raise ParameterError(name, f" must be a number, not {value!r}")
    inside = low < number < high if open_ends else low <= number <= high
    if not inside:  # NaN is never inside
        allowed = f"{'strictly between' if open_ends else 'between'} {low:g} and {high:g}"
        if high == MAX_REWARD and number <= low:
            allowed = f"{'above' if open_ends else 'at least'} {low:g}"
        raise ParameterError(name, f" must be {allowed}, not {number}")
    return number


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value``, or raise a ValueError unless it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(name, f" must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def check_array(
    name: str,
    values: Any,
    shape: tuple[int | None, ...],
    max_abs: float = MAX_CONTEXT,
    because: str = "",
    *,
    allow_nan: bool = False,
) -> Floats:
    """Return ``values`` as a C-contiguous, writable float64 array, or raise a ValueError if they are invalid.

    Parameters
    ----------
    name : str
        The name of the argument, for error messages.
    values : array-like
        The numbers to check.
    shape : tuple of int or None
        The required shape. None allows any length of that dimension.
    max_abs : float, default MAX_CONTEXT
        The largest absolute value that is allowed.
    because : str, default ""
        Reason for the required shape, which the error message appends to it, such as ", because users has length 3".
    allow_nan : bool, default False
        Whether values can be missing (NaN).

    Raises
    ------
    ValueError
        If the values are not numbers, the shape differs, or a value is not finite or too large.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise ValueError(f"the dtype is {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(name, f" must be an array of numbers: {error}") from None
    fits = array.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ParameterError(name, f" must have shape ({wanted}), not {array.shape}{because}")
    if array.size and not (array.min() >= -max_abs and array.max() <= max_abs):  # NaN fails both comparisons
        wrong = np.argwhere((np.abs(array) > max_abs) if allow_nan else ~(np.abs(array) <= max_abs))
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            raise ParameterError(
                name,
                f" must be finite and at most {max_abs:g} in absolute value, but {name}{list(index)} is {array[index]}",
            )
    # Kernels are compiled for contiguous, writable arrays. An array with another layout would trigger a compilation.
    return array if array.flags.carray else np.array(array, order="C")


def check_choices(users: Any, contexts: Any, n_users: int, dim: int) -> tuple[Ints, NDArray[Any]]:
    """Return n users as an array (n,), and their contexts as an array (n, k, d), or (k, d) if they are shared.

    The values of ``contexts`` are not checked.

    Raises
    ------
    ValueError
        If a user is not an integer from 0 to ``n_users`` − 1, if there is no arm, or if the shapes do not match.
    """
    users = np.asarray(users)
    try:
        contexts = np.asarray(contexts)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise ParameterError("contexts", f" must be an array of numbers: {error}") from None
    if users.ndim != 1 or (users.size and users.dtype.kind not in "iu"):
        raise ParameterError(
            "users", f" must be an array of one integer per choice, not {users.dtype} of shape {users.shape}"
        )
    for index in (int(users.argmin()), int(users.argmax())) if users.size else ():
        check_int(f"users[{index}]", users[index], 0, n_users - 1)
    shapes = [("arms", dim), (users.size, "arms", dim)]
    fits = contexts.ndim in (2, 3) and contexts.shape[-2] > 0 and contexts.shape[-1] == dim
    if not fits or (contexts.ndim == 3 and len(contexts) != users.size):
        wanted = " or ".join(f"({', '.join(map(str, shape))})" for shape in shapes)
        raise ParameterError("contexts", f" must have shape {wanted} with at least one arm, not {contexts.shape}")
    return users.astype(np.int64, copy=False), contexts
