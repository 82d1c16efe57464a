"""LinUCB's state arrays, and the constants that name their entries."""

from typing import NamedTuple

from locb.common.arrays import Floats, Ints, Words

T, TIES, SHARED = 0, 1, 2  # entries of ``int_params``


class LinUCBState(NamedTuple):
    """The arrays of LinUCB's state. The symbols are defined in ``locb.kernels``."""

    estimates: Floats  # (N, d + p) θ̂ and A⁻¹ of each user; (1, d + p) if all users share one estimate
    served: Ints  # (N,) m: rounds per user
    int_params: Ints  # t; tie rule; 1 if all users share one estimate, else 0
    float_params: Floats  # α
    generator: Words  # (1,) random generator for ties


class LinUCBScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    arms: Floats  # (k, d + p) x and x xᵀ of each arm, from ``expand_contexts``
    scores: Floats  # (k,)
    step: Floats  # (d + p,) change of an estimate
