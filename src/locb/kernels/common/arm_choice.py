"""Choice of an arm from its scores: tie rules and the random numbers of the kernels."""

import numpy as np

from locb.common.arrays import Floats, Words
from locb.common.jit import inline

TIE = 1e-9  # arms whose scores are within this of the highest score are tied
TIE_FIRST, TIE_RANDOM = 0, 1  # tie rules


@inline
def next_random(generator: Words) -> np.uint64:
    """Advance a xorshift generator (Marsaglia, 2003) and return its 64 bits."""
    word: np.uint64 = generator[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    generator[0] = word
    return word


@inline
def pick_arm(scores: Floats, ties: int, generator: Words) -> int:
    """Return the arm with the highest score; among tied arms the first or a random one. −1 if the scores are NaN."""
    highest = -np.inf
    for a in range(scores.size):
        highest = max(highest, scores[a])
    first = -1
    tied = 0
    for a in range(scores.size):
        if scores[a] >= highest - TIE:
            tied += 1
            if first < 0:
                first = a
    if ties == TIE_FIRST or tied == 1:
        return first
    # The upper 31 bits, scaled to 0 … tied − 1.
    skip = np.int64(((next_random(generator) >> np.uint64(33)) * np.uint64(tied)) >> np.uint64(31))
    for a in range(first, scores.size):
        if scores[a] >= highest - TIE:
            if skip == 0:
                return a
            skip -= 1
    return first
