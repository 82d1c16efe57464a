"""Bit sets: packing, membership, and the search for set bits."""

import numpy as np
import pytest

from compiled_calls import call_compiled
from locb.kernels.common import bit_sets

pytestmark = pytest.mark.interpreted


def test_unpack_bits_inverts_pack_bits() -> None:
    rng = np.random.default_rng(3)
    for columns in (1, 63, 64, 65, 200):
        members = rng.random((4, columns)) < 0.5
        words = bit_sets.pack_bits(members)
        assert words.shape == (4, bit_sets.n_words(columns))
        assert np.array_equal(bit_sets.unpack_bits(words, columns), members)


def test_has_bit_and_flip_bit() -> None:
    members = np.zeros((2, 130), bool)
    members[1, [0, 63, 64, 129]] = True
    words = bit_sets.pack_bits(members)
    assert [j for j in range(130) if call_compiled(bit_sets.has_bit)(words, 1, j)] == [0, 63, 64, 129]
    assert not any(call_compiled(bit_sets.has_bit)(words, 0, j) for j in range(130))
    call_compiled(bit_sets.flip_bit)(words, 1, 64)
    call_compiled(bit_sets.flip_bit)(words, 0, 129)
    assert not call_compiled(bit_sets.has_bit)(words, 1, 64)
    assert call_compiled(bit_sets.has_bit)(words, 0, 129)


@pytest.mark.parametrize("index", [0, 1, 31, 32, 63])
def test_trailing_zeros(index: int) -> None:
    word = (np.uint64(1) << np.uint64(index)) | (np.uint64(1) << np.uint64(63))
    assert bit_sets.trailing_zeros(word) == index
