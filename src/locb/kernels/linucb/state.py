"""LinUCB's state arrays, and the constants that name their entries."""

from typing import NamedTuple

from locb.common.arrays import Floats, Ints, Words

T, TIES, SHARED = 0, 1, 2  # entries of ``int_params``


class LinUCBState(NamedTuple):
    """The state of LinUCB. e: the number of estimates, one per user, or 1 if all users share it."""

    estimates: Floats  # (e, d + p) θ̂ and A⁻¹, packed
    served: Ints  # (n,) m: rounds per user
    int_params: Ints  # t, tie rule, 1 if the users share one estimate
    float_params: Floats  # α
    generator: Words  # (1,) random generator for ties
