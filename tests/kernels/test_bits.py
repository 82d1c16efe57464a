import numpy as np
import pytest

from locb.kernels.common import bit_sets as bits
from through import called

pytestmark = pytest.mark.interpreted


def test_pack_and_unpack_are_inverse() -> None:
    rng = np.random.default_rng(3)
    for columns in (1, 63, 64, 65, 200):
        members = rng.random((4, columns)) < 0.5
        words = bits.pack(members)
        assert words.shape == (4, bits.words_for(columns))
        assert np.array_equal(bits.unpack(words, columns), members)


def test_members_are_found_and_flipped() -> None:
    members = np.zeros((2, 130), bool)
    members[1, [0, 63, 64, 129]] = True
    words = bits.pack(members)
    assert [j for j in range(130) if called(bits.has)(words, 1, j)] == [0, 63, 64, 129]
    assert not any(called(bits.has)(words, 0, j) for j in range(130))
    called(bits.flip)(words, 1, 64)
    called(bits.flip)(words, 0, 129)
    assert not called(bits.has)(words, 1, 64)
    assert called(bits.has)(words, 0, 129)


@pytest.mark.parametrize("place", [0, 1, 31, 32, 63])
def test_trailing_zeros(place: int) -> None:
    word = (np.uint64(1) << np.uint64(place)) | (np.uint64(1) << np.uint64(63))
    assert bits.trailing_zeros(word) == place
