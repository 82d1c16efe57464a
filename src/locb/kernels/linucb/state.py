"""LinUCB's state arrays, and the constants that name their columns."""

from typing import NamedTuple

from locb.common.arrays import Floats, Ints, Words

T, TIES, SHARED = 0, 1, 2


class LinUCBState(NamedTuple):
    """What LinUCB knows. e: estimates kept, one a user, or a single one."""

    estimates: Floats  # (e, d + p) θ̂ and A⁻¹, packed
    served: Ints  # (n,) m
    int_params: Ints  # t, ties, 1 if the users share one estimate
    float_params: Floats  # α
    generator: Words  # (1,) for random ties
