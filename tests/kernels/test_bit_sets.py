import numpy as np
import pytest

from compiled_calls import call_compiled
from locb.kernels.common import bit_sets as bits

pytestmark = pytest.mark.interpreted


def test_pack_and_unpack_are_inverse() -> None:
    rng = np.random.default_rng(3)
    for columns in (1, 63, 64, 65, 200):
        members = rng.random((4, columns)) < 0.5
        words = bits.pack_bits(members)
        assert words.shape == (4, bits.n_words(columns))
        assert np.array_equal(bits.unpack_bits(words, columns), members)


def test_members_are_found_and_flipped() -> None:
    members = np.zeros((2, 130), bool)
    members[1, [0, 63, 64, 129]] = True
    words = bits.pack_bits(members)
    assert [j for j in range(130) if call_compiled(bits.has_bit)(words, 1, j)] == [0, 63, 64, 129]
    assert not any(call_compiled(bits.has_bit)(words, 0, j) for j in range(130))
    call_compiled(bits.flip_bit)(words, 1, 64)
    call_compiled(bits.flip_bit)(words, 0, 129)
    assert not call_compiled(bits.has_bit)(words, 1, 64)
    assert call_compiled(bits.has_bit)(words, 0, 129)


@pytest.mark.parametrize("place", [0, 1, 31, 32, 63])
def test_trailing_zeros(place: int) -> None:
    word = (np.uint64(1) << np.uint64(place)) | (np.uint64(1) << np.uint64(63))
    assert bits.trailing_zeros(word) == place
