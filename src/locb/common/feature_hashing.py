"""Feature hashing: unit vectors of fixed dimension from named features, with signed hashing and a constant term."""

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

SQRT_HALF = math.sqrt(0.5)  # the norm of the constant term, and the norm of all other entries together
# If the norm of entries 1 to dim − 1 is at most this fraction of the largest absolute number, they are rounding errors
# and count as 0.
CANCELLED = 1e-12
VERSION = b"locb.features.v1"  # BLAKE2b personalization; another value would change every index and sign
MAX_CACHED_KEYS, MAX_CACHED_KEY_LENGTH = 65_536, 128  # limits of the cache of hashed keys: keys, characters per key

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def features(values: Values, dim: int) -> Floats:
    """Return a unit vector with ``dim`` entries that represents named features, by signed feature hashing.

    Each feature has a key and a number. A number has the key ``name`` and counts as its value. A string has the key
    ``name=value`` and counts as 1. A boolean has the key ``name=true`` or ``name=false`` and counts as 1.

    The BLAKE2b hash h of a key (8 bytes, little-endian, personalized with ``locb.features.v1``) determines the index of
    the key, 1 + (h >> 1) mod (dim − 1), and its sign: plus if h is odd, minus if h is even. Signed numbers with the
    same index are added. Entries 1 to dim − 1 are then scaled together to the norm 1/√2. Entry 0 is the constant 1/√2.

    If entries 1 to dim − 1 are all zero, entry 0 is 1 instead. This is the case without features, if all numbers are 0
    or cancel each other, and if ``dim`` is 1. The same values give the same vector in every version of locb, up to
    rounding.

    Parameters
    ----------
    values : mapping of str to float, str or bool
        The features by name. Only the ratios between the numbers matter, because all entries are scaled together.
        Strings and booleans count as 1 in these ratios. Scale numbers to about 1, for example by their mean or their
        standard deviation: with a price of 14, all other features have almost no influence.
    dim : int
        The number of entries of the vector, at least 1. Hash collisions become rare if ``dim`` is about ten times the
        number of different keys.

    Returns
    -------
    (dim,) array of float
        A vector of norm 1.

    Raises
    ------
    ValueError
        If a name is empty, a value is not a finite number, a string or a boolean, or ``dim`` is not a positive integer.

    Examples
    --------
    >>> features({"genre": "drama", "new": True, "length": 0.5}, 8).round(4).tolist()
    [0.7071, -0.3162, 0.6325, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> features({}, 3).tolist()
    [1.0, 0.0, 0.0]
    """
    return np.array(feature_row(values, dim))


def feature_row(values: Values, dim: int) -> list[float]:
    """Return the vector of ``features`` as a list, which is faster if the caller combines many vectors."""
    dim = _check_dim(dim)
    _, signed, numbers = _hash_values(values, dim)
    return _accumulate(signed, numbers, dim)[0]


def feature_contributions(values: Values, dim: int) -> tuple[Floats, list[str], list[int], list[float]]:
    """Return the vector of ``features``, and the key, the index and the weight of each feature.

    Each entry after entry 0 is the sum of the weights of the features with that index. The inner product of the vector
    with any θ (dim,) is therefore vector[0] · θ[0] plus the sum of weight · θ[index] over the features.

    Examples
    --------
    >>> vector, keys, indices, weights = feature_contributions({"genre": "drama", "length": 0.5}, 6)
    >>> keys, indices, [round(weight, 4) for weight in weights]
    (['genre=drama', 'length'], [5, 1], [0.6325, 0.3162])
    """
    dim = _check_dim(dim)
    keys, signed, numbers = _hash_values(values, dim)
    vector, largest, scale = _accumulate(signed, numbers, dim)
    weights = [
        math.copysign(scale, index) * (number / largest) + 0.0  # + 0.0 turns −0 into 0
        for index, number in zip(signed, numbers, strict=True)
    ]
    return np.array(vector), keys, [abs(index) for index in signed], weights


def signed_indices(values: Values, dim: int) -> dict[str, int]:
    """Return the signed index of each key: its index times its sign. The index is from 1 to dim − 1, or 0 if dim is 1.

    With a parameter vector θ (dim,), the coefficient of a key with index i is θ[i], or −θ[i] if its sign is negative.

    Examples
    --------
    >>> signed_indices({"genre": "drama", "length": 0.5}, 6)
    {'genre=drama': 5, 'length': 1}
    """
    keys, signed, _ = _hash_values(values, _check_dim(dim))
    return dict(zip(keys, signed, strict=True))


def _hash_values(values: Values, dim: int) -> tuple[list[str], list[int], list[float]]:
    """Return the key, the signed index (see ``signed_indices``) and the number of each feature."""
    if not isinstance(values, Mapping):
        raise ValueError(f"features must be a JSON object or a mapping of names to values, not {_short.repr(values)}")
    index_of_key = _key_index(dim - 1)
    keys: list[str] = []
    numbers: list[float] = []
    for name, value in values.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"feature names must be non-empty strings, not {_short.repr(name)}")
        kind = type(value)
        if kind is str:
            keys.append(f"{name}={value}")
            numbers.append(1.0)
        elif kind is float and value - value == 0.0:  # type: ignore[operator]  # mypy does not narrow by type()
            keys.append(name)
            numbers.append(value)  # type: ignore[arg-type]  # as above
        else:
            key, number = _key_and_number(name, value)
            keys.append(key)
            numbers.append(number)
    return keys, [index_of_key[key] for key in keys], numbers


def _key_and_number(name: str, value: Any) -> tuple[str, float]:
    """Return the key and the number of a feature of any allowed type, or raise a ValueError."""
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
    allowed = "a finite number, a string or a boolean"
    raise ValueError(f"feature {_short.repr(name)} must be {allowed}, not {_short.repr(value)}")


def _accumulate(signed: list[int], numbers: list[float], dim: int) -> tuple[list[float], float, float]:
    """Return the vector, the largest absolute number, and the scale: a number adds scale · number / largest."""
    vector = [0.0] * dim
    largest = max(map(abs, numbers)) if numbers and dim > 1 else 0.0
    if largest > 0.0:
        for index, number in zip(signed, numbers, strict=True):
            # Division by the largest number prevents overflow and underflow.
            if index > 0:
                vector[index] += number / largest
            else:
                vector[-index] -= number / largest
        norm = math.hypot(*vector)
        if norm > CANCELLED:
            scale = SQRT_HALF / norm
            vector = [scale * number for number in vector]
            vector[0] = SQRT_HALF
            return vector, largest, scale
    return [1.0] + [0.0] * (dim - 1), 1.0, 0.0


class _KeyIndex(dict[str, int]):
    """Cache of signed indices by key. A missing key is hashed to an index from 1 to ``width``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def __missing__(self, key: str) -> int:
        try:
            digest = blake2b(key.encode(), digest_size=8, person=VERSION).digest()
        except UnicodeEncodeError:
            raise ValueError(f"feature {_short.repr(key)} must be valid Unicode text that UTF-8 can encode") from None
        hashed = int.from_bytes(digest, "little")
        index = 1 + (hashed >> 1) % self.width if self.width else 0
        signed = index if hashed & 1 else -index
        if len(key) <= MAX_CACHED_KEY_LENGTH:
            if len(self) >= MAX_CACHED_KEYS:
                self.clear()
            self[key] = signed
        return signed


_key_index = lru_cache(maxsize=8)(_KeyIndex)


def _check_dim(dim: Any) -> int:
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise ValueError(f"dim must be an integer of at least 1, not {dim!r}")
    return int(dim)
