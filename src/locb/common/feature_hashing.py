"""Names and values as a vector of length 1: signed hashing, with a constant."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

from locb.common.arrays import Floats

Values: TypeAlias = Mapping[str, float | str | bool]

HALF = math.sqrt(0.5)  # length of the constant, and of all the rest
CANCELLED = 1e-12  # of the largest value: a rest shorter than this is rounding, and counts as nothing
VERSION = b"locb.features.v1"  # a part of every hash: vectors of another version have nothing to do with these
KEPT, KEPT_LENGTH = 65_536, 128  # hashes that are remembered, and the longest key among them, so that memory is bounded

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def features(values: Values, dim: int) -> Floats:
    """The vector (dim,) of length 1 that stands for these names and values.

    Place 0 holds the constant 1/√2. A number counts as itself under the key ``name``; a string as 1 under
    ``name=value``; a boolean as 1 under ``name=true`` or ``name=false``. The BLAKE2b hash h of a key (8 bytes,
    personalised with ``locb.features.v1``, little-endian) names its place, 1 + (h >> 1) mod (dim − 1), and its sign,
    plus where h is odd. What meets in one place is added up, and places 1 and up are scaled together to the length
    1/√2.

    Where nothing is left (no names, only zeros, values that cancel in one place, or ``dim=1``) the constant is all
    there is and has the length 1. The same values give the same vector in every version of locb, but for rounding.

    Parameters
    ----------
    values : mapping of str to float, str or bool
        Only how large numbers are beside each other (and beside the 1 of a string) matters: all are scaled as one.
    dim : int
        At least 1. With few places names meet by chance; some ten times as many places as names keep most apart.

    Examples
    --------
    >>> features({"genre": "drama", "new": True, "length": 0.5}, 8).round(4).tolist()
    [0.7071, -0.3162, 0.6325, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> features({}, 3).tolist()
    [1.0, 0.0, 0.0]
    """
    return np.array(feature_row(values, dim))


def feature_row(values: Values, dim: int) -> list[float]:
    """``features`` as a list, which is cheaper where many become one array."""
    dim = _checked_dim(dim)
    _, signed, numbers = _read(values, dim)
    return _spread(signed, numbers, dim)[0]


def feature_contributions(values: Values, dim: int) -> tuple[Floats, list[str], list[int], list[float]]:
    """The vector, and what each name adds to it: keys, their places, and weights.

    The vector is the constant, which stands at place 0, plus the sum of weight · e_place; so its product with any θ is
    vector[0] · θ[0] plus the sum of weight · θ[place].

    Examples
    --------
    >>> vector, names, places, weights = feature_contributions({"genre": "drama", "length": 0.5}, 6)
    >>> names, places, [round(weight, 4) for weight in weights]
    (['genre=drama', 'length'], [5, 1], [0.6325, 0.3162])
    """
    dim = _checked_dim(dim)
    keys, signed, numbers = _read(values, dim)
    vector, largest, scale = _spread(signed, numbers, dim)
    weights = [
        math.copysign(scale, place) * (number / largest) + 0.0  # no −0
        for place, number in zip(signed, numbers, strict=True)
    ]
    return np.array(vector), keys, [abs(place) for place in signed], weights


def signed_indices(values: Values, dim: int) -> dict[str, int]:
    """The place of each key among 1 … dim − 1, negative where its sign is: what θ says of it is ±θ[place].

    Examples
    --------
    >>> signed_indices({"genre": "drama", "length": 0.5}, 6)
    {'genre=drama': 5, 'length': 1}
    """
    keys, signed, _ = _read(values, _checked_dim(dim))
    return dict(zip(keys, signed, strict=True))


def _read(values: Values, dim: int) -> tuple[list[str], list[int], list[float]]:
    """Keys, their places (negative where the sign is) and numbers."""
    if not isinstance(values, Mapping):
        raise ValueError(f"features must be an object of names and values, not {_short.repr(values)}")
    places = _places(dim - 1)
    keys: list[str] = []
    numbers: list[float] = []
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"features must have names that are not empty, not {_short.repr(name)}")
        kind = type(value)
        if kind is str:
            keys.append(f"{name}={value}")
            numbers.append(1.0)
        elif kind is float and value - value == 0.0:  # type: ignore[operator]  # a comparison of types is not followed
            keys.append(name)
            numbers.append(value)  # type: ignore[arg-type]  # as above
        else:
            key, number = _rarer(name, value)
            keys.append(key)
            numbers.append(number)
    return keys, [places[key] for key in keys], numbers


def _rarer(name: str, value: Any) -> tuple[str, float]:
    """Key and number of a boolean, a whole number, NumPy's kinds; an error for what is none of them."""
    if isinstance(value, bool | np.bool_):
        return (f"{name}=true" if value else f"{name}=false"), 1.0
    if isinstance(value, str):
        return f"{name}={value}", 1.0
    if isinstance(value, int | float | np.integer | np.floating):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return name, number
    told = "a finite number, a string or a boolean"
    raise ValueError(f"feature {_short.repr(name)} must be {told}, not {_short.repr(value)}")


def _spread(signed: list[int], numbers: list[float], dim: int) -> tuple[list[float], float, float]:
    """The vector; the largest number, and by how much numbers were scaled once they were divided by it."""
    vector = [0.0] * dim
    largest = max(map(abs, numbers)) if numbers and dim > 1 else 0.0
    if largest > 0.0:
        for place, number in zip(signed, numbers, strict=True):
            # Divided by the largest first, so that nothing overflows or vanishes.
            if place > 0:
                vector[place] += number / largest
            else:
                vector[-place] -= number / largest
        length = math.hypot(*vector)
        if length > CANCELLED:
            scale = HALF / length
            vector = [scale * number for number in vector]
            vector[0] = HALF
            return vector, largest, scale
    return [1.0] + [0.0] * (dim - 1), 1.0, 0.0


class _Places(dict[str, int]):
    """Places of keys among 1 … width, negative where their sign is; some are remembered, so that memory is bounded."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def __missing__(self, key: str) -> int:
        try:
            digest = blake2b(key.encode(), digest_size=8, person=VERSION).digest()
        except UnicodeEncodeError:
            raise ValueError(f"feature {_short.repr(key)} must be text that UTF-8 can hold") from None
        hashed = int.from_bytes(digest, "little")
        place = 1 + (hashed >> 1) % self.width if self.width else 0
        signed = place if hashed & 1 else -place
        if len(key) <= KEPT_LENGTH:
            if len(self) >= KEPT:
                self.clear()
            self[key] = signed
        return signed


_places = lru_cache(maxsize=8)(_Places)


def _checked_dim(dim: Any) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise ValueError(f"dim must be a whole number of at least 1, not {dim!r}")
    return int(dim)
