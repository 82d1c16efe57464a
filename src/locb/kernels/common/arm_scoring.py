"""Scores of arms, the choice of an arm, and the random generator for ties. Symbols are defined in ``locb.kernels``."""

import math

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import entry_point, inline, inline_fastmath, no_alloc
from locb.common.validation import MAX_CONTEXT

TIE = 1e-9  # arms whose scores are at most this much below the highest score are tied
TIE_FIRST, TIE_RANDOM = 0, 1  # tie rules
SCREEN_SLACK = 2.0  # κ: how far the upper bound of an arm may be below the highest one, in confidence widths of the arm


@inline
def is_valid(values: Floats) -> bool:
    """Return whether every number is finite and at most MAX_CONTEXT in absolute value."""
    for q in range(values.size):
        if not abs(values[q]) <= MAX_CONTEXT:
            return False
    return True


@inline
def expand_contexts(contexts: Floats, arms: Floats) -> None:
    """Write each context x (d,) to a row of ``arms`` (k, d + p): x, and x xᵀ packed with off-diagonal terms doubled.

    The inner product of such a row with an estimate (θ̂, A⁻¹) is θ̂ᵀx over the first d columns, and xᵀA⁻¹x over the
    remaining columns.
    """
    d = contexts.shape[1]
    for a in range(contexts.shape[0]):
        for i in range(d):
            arms[a, i] = contexts[a, i]
        q = d
        for i in range(d):
            arms[a, q] = contexts[a, i] * contexts[a, i]
            q += 1
            for j in range(i + 1, d):
                arms[a, q] = 2.0 * contexts[a, i] * contexts[a, j]
                q += 1


@inline_fastmath
def dot(rows: Floats, i: int, others: Floats, j: int, start: int, stop: int) -> float:
    """Return the inner product of row i of ``rows`` and row j of ``others`` over columns ``start`` to ``stop`` − 1.

    The arguments are matrices and row indices, because creating a view of a row would take longer than the sum.
    """
    total = 0.0
    for q in range(np.uintp(start), np.uintp(stop)):
        total += rows[i, q] * others[j, q]
    return total


@inline
def score_arms(arms: Floats, estimates: Floats, i: int, d: int, alpha: float, factor: float, scores: Floats) -> None:
    """Write the score θ̂ᵀx + α √(xᵀA⁻¹x · factor) of every arm to ``scores`` (k,), with (θ̂, A⁻¹) from estimate row i."""
    for a in range(scores.size):
        variance = dot(arms, a, estimates, i, d, arms.shape[1])
        scores[a] = dot(arms, a, estimates, i, 0, d) + alpha * math.sqrt(max(variance, 0.0) * factor)


@inline
def next_random(generator: Words) -> np.uint64:
    """Advance the xorshift generator (Marsaglia, 2003) in ``generator`` (1,) and return its 64 bits."""
    word: np.uint64 = generator[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    generator[0] = word
    return word


@inline
def pick_arm(scores: Floats, ties: int, generator: Words) -> int:
    """Return the arm with the highest score, or −1 if all scores are NaN.

    ``ties`` is the tie rule: among arms within TIE of the highest score, the first or a random arm is chosen.
    """
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
    # A random integer from 0 to tied − 1, from the upper 31 bits.
    skip = np.int64(((next_random(generator) >> np.uint64(33)) * np.uint64(tied)) >> np.uint64(31))
    for a in range(first, scores.size):
        if scores[a] >= highest - TIE:
            if skip == 0:
                return a
            skip -= 1
    return first


@inline
def screen_arm(
    arms: Floats,
    own: Floats,
    i: int,
    d: int,
    width: float,
    slack: float,
    arm: int,
    ties: int,
    generator: Words,
    bounds: Floats,
) -> int:
    """Return ``arm``, or another arm if the upper confidence bound of ``arm`` is too low: the safety screen.

    The upper bound of an arm is U = θ̂ᵀx + w with w = width · √(xᵀA⁻¹x), where (θ̂, A⁻¹) is the user's own ridge estimate
    in row i of ``own``. An arm passes if U ≥ max U − slack · w; otherwise the arm with the largest U is returned. The
    upper bounds are written to ``bounds`` (k,).
    """
    score_arms(arms, own, i, d, width, 1.0, bounds)
    highest = -np.inf
    for a in range(bounds.size):
        highest = max(highest, bounds[a])
    own_width = bounds[arm] - dot(arms, arm, own, i, 0, d)
    if bounds[arm] >= highest - slack * own_width - TIE:
        return arm
    return pick_arm(bounds, ties, generator)


@no_alloc
def apply_screen(
    arms: Floats, own: Floats, i: int, d: int, width: float, arm: int, ties: int, generator: Words, bounds: Floats
) -> int:
    """Return the result of ``screen_arm`` with the slack SCREEN_SLACK.

    The function is not inlined, so that the code of rounds without a screen stays small.
    """
    return screen_arm(arms, own, i, d, width, SCREEN_SLACK, arm, ties, generator, bounds)


@inline
def explain_arms(
    arms: Floats, rows: Floats, i: int, d: int, alpha: float, factor: float, estimate: Floats, bonus: Floats
) -> None:
    """Write the estimate θ̂ᵀx and the bonus α √(xᵀA⁻¹x · factor) of every arm, with (θ̂, A⁻¹) from row i of ``rows``."""
    for a in range(estimate.size):
        variance = dot(arms, a, rows, i, d, arms.shape[1])
        estimate[a] = dot(arms, a, rows, i, 0, d)
        bonus[a] = alpha * math.sqrt(max(variance, 0.0) * factor)


@entry_point
def explain(
    rows: Floats,
    indices: Ints,
    ends: Ints,
    contexts: Floats,
    alphas: Floats,
    factor: float,
    ties: int,
    generator: Words,
    own: Floats,
    widths: Floats,
    slack: float,
    estimate: Floats,
    bonus: Floats,
    chosen: Ints,
    is_replaced: NDArray[np.bool_],
) -> None:
    """Choose and explain an arm for each of u users.

    User number i has the estimate in row indices[i] of ``rows``, the bonus weight alphas[i], and the arms in rows
    ends[i − 1] to ends[i] − 1 of ``contexts``. Writes the estimate and the bonus of every arm, as ``explain_arms``
    does, and to ``chosen`` (u,) the arm to recommend, or −1 if a context is invalid or all scores are NaN. If ``own``
    has rows, row i and widths[i] define the safety screen of user number i (``screen_arm``), and ``is_replaced`` (u,)
    receives whether it has replaced the arm with the highest score.
    """
    stop = 0
    for i in range(indices.size):
        start, stop = stop, ends[i]
        chosen[i] = -1
        if not is_valid(contexts[start:stop].ravel()):
            continue
        arms = np.empty((stop - start, rows.shape[1]))
        expand_contexts(contexts[start:stop], arms)
        own_estimate, own_bonus = estimate[start:stop], bonus[start:stop]
        explain_arms(arms, rows, indices[i], contexts.shape[1], alphas[i], factor, own_estimate, own_bonus)
        scores = own_estimate + own_bonus
        arm = pick_arm(scores, ties, generator)
        chosen[i], is_replaced[i] = arm, False
        if own.shape[0] > 0 and arm >= 0:
            chosen[i] = screen_arm(arms, own, i, contexts.shape[1], widths[i], slack, arm, ties, generator, scores)
            is_replaced[i] = chosen[i] != arm
