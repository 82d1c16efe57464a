"""Explanation of a choice that is scored with one row (θ̂, A⁻¹): estimate and bonus of every arm."""

import math

import numpy as np

from locb.common.arrays import Floats, Words
from locb.common.jit import entry_point, inline
from locb.kernels.common.arm_choice import pick_arm
from locb.kernels.common.linear_algebra import dot, expand_contexts, is_valid


@inline
def explain_arms(
    arms: Floats, rows: Floats, i: int, d: int, alpha: float, factor: float, estimate: Floats, bonus: Floats
) -> None:
    """Compute the estimate θ̂ᵀx and the bonus α √(xᵀA⁻¹x · factor) of every arm from row i."""
    for a in range(estimate.size):
        variance = dot(arms, a, rows, i, d, arms.shape[1])
        estimate[a] = dot(arms, a, rows, i, 0, d)
        bonus[a] = alpha * math.sqrt(max(variance, 0.0) * factor)


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
    """Return the arm to recommend, or −1 if a context is invalid; write estimate and bonus of every arm, (k,) each."""
    if not is_valid(contexts.ravel()):
        return -1
    arms = np.empty((contexts.shape[0], rows.shape[1]))
    expand_contexts(contexts, arms)
    explain_arms(arms, rows, row, contexts.shape[1], alpha, factor, estimate, bonus)
    return pick_arm(estimate + bonus, ties, generator)
