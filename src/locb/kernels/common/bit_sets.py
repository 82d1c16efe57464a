"""Bit sets: sets of small integers as rows of 64-bit words. Element j is bit j % 64 of word j // 64."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload

from locb.common.arrays import Words
from locb.common.jit import inline

ONE = np.uint64(1)


def n_words(count: int) -> int:
    """Return the number of 64-bit words that hold ``count`` bits."""
    return (count + 63) // 64


def trailing_zeros(word: Any) -> int:
    """Return the index of the lowest set bit. ``word`` must not be zero."""
    value = int(word)
    return (value & -value).bit_length() - 1


@intrinsic
def _count_trailing_zeros(_typing: Any, _word: Any) -> Any:  # pragma: no cover - runs inside the compiler
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zero_is_undefined = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], zero_is_undefined)

    return types.int64(types.uint64), generate


@overload(trailing_zeros)
def _compile_trailing_zeros(word: Any) -> Any:  # noqa: ARG001  # pragma: no cover - runs inside the compiler
    count: Any = _count_trailing_zeros

    def implementation(word: Any) -> Any:
        return count(word)

    return implementation


@inline
def has_bit(rows: Words, i: int, j: int) -> bool:
    """Return whether row i of ``rows``, a bit set, contains element j."""
    found: bool = (rows[i, j >> 6] >> np.uint64(j & 63)) & ONE != 0
    return found


@inline
def flip_bit(rows: Words, i: int, j: int) -> None:
    """Add element j to row i of ``rows``, a bit set, or remove j if the set contains it."""
    rows[i, j >> 6] ^= ONE << np.uint64(j & 63)


def pack_bits(members: Any) -> Words:
    """Return a Boolean matrix (r, c) as bit sets (r, ⌈c/64⌉)."""
    rows, columns = members.shape
    padded = np.zeros((rows, 64 * n_words(columns)), dtype=bool)
    padded[:, :columns] = members
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack_bits(words: Words, columns: int) -> Any:
    """Return bit sets (r, ⌈columns/64⌉) as a Boolean matrix (r, columns)."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=columns, bitorder="little").astype(bool)


def pack_bit_indices(rows: Any, columns: Any, n_rows: int, n_columns: int) -> Words:
    """Return bit sets (n_rows, ⌈n_columns/64⌉) in which bit columns[e] of row rows[e] is set, for each e."""
    words = np.zeros((n_rows, n_words(n_columns)), np.uint64)
    bits = np.asarray(columns).astype(np.uint64)
    np.bitwise_or.at(words, (rows, bits >> np.uint64(6)), ONE << (bits & np.uint64(63)))
    return words
