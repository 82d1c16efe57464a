"""Sets of small integers as rows of 64-bit words: member j is bit j % 64 of word j // 64."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload

from locb.common.arrays import Words
from locb.common.jit import inline

ONE = np.uint64(1)


def n_words(count: int) -> int:
    """How many 64-bit words hold ``count`` bits."""
    return (count + 63) // 64


def trailing_zeros(word: Any) -> int:
    """Position of the lowest bit that is set; ``word`` must not be zero."""
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
    """Whether j is in the set of row i."""
    found: bool = (rows[i, j >> 6] >> np.uint64(j & 63)) & ONE != 0
    return found


@inline
def flip_bit(rows: Words, i: int, j: int) -> None:
    """Put j into the set of row i if it is out, take it out if it is in."""
    rows[i, j >> 6] ^= ONE << np.uint64(j & 63)


def pack_bits(members: Any) -> Words:
    """Bits (r, ⌈c/64⌉) of a Boolean matrix (r, c)."""
    rows, columns = members.shape
    padded = np.zeros((rows, 64 * n_words(columns)), dtype=bool)
    padded[:, :columns] = members
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack_bits(words: Words, columns: int) -> Any:
    """The Boolean matrix (r, columns) of some bits (r, ⌈columns/64⌉)."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=columns, bitorder="little").astype(bool)


def pack_bit_indices(rows: Any, columns: Any, n_rows: int, n_columns: int) -> Words:
    """Bits (n_rows, ⌈n_columns/64⌉) with those of the pairs (row, column) set."""
    words = np.zeros((n_rows, n_words(n_columns)), np.uint64)
    places = np.asarray(columns).astype(np.uint64)
    np.bitwise_or.at(words, (rows, places >> np.uint64(6)), ONE << (places & np.uint64(63)))
    return words
