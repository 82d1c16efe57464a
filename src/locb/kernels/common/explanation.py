"""What each arm is worth to a user whom one row (θ̂, A⁻¹) serves, apart from the choice of an arm."""

import math

import numpy as np

from locb.common.arrays import Floats, Words
from locb.common.jit import entry_point, inline
from locb.kernels.common.linear_algebra import dot, expand_contexts, is_valid, pick_arm


@inline
def explain_arms(
    arms: Floats, rows: Floats, i: int, d: int, alpha: float, factor: float, estimate: Floats, bonus: Floats
) -> None:
    """θ̂ᵀx and α √(xᵀA⁻¹x · factor) of every arm, from row i."""
    for a in range(estimate.size):
        spread = dot(arms, a, rows, i, d, arms.shape[1])
        estimate[a] = dot(arms, a, rows, i, 0, d)
        bonus[a] = alpha * math.sqrt(max(spread, 0.0) * factor)


@entry_point
def explain(
    rows: Floats,
    row: int,
    contexts: Floats,
    alpha: float,
    factor: float,
    ties: int,
    generator: Words,
    estimate: Floats,
    bonus: Floats,
) -> int:
    """The arm for one user now, −1 if a context is not usable; what each arm is worth, (k,), into the last two."""
    if not is_valid(contexts.ravel()):
        return -1
    arms = np.empty((contexts.shape[0], rows.shape[1]))
    expand_contexts(contexts, arms)
    explain_arms(arms, rows, row, contexts.shape[1], alpha, factor, estimate, bonus)
    return pick_arm(estimate + bonus, ties, generator)
