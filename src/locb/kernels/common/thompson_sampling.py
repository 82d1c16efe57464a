"""Thompson sampling: draws of parameter vectors, and the choice of an arm by a draw. Symbols: ``locb.kernels``."""

import math

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import is_valid, next_random, pick_arm


@inline
def next_uniform(generator: Words) -> float:
    """Return a random number above 0 and below 1, from the upper 53 bits of the generator."""
    return (float(next_random(generator) >> np.uint64(11)) + 0.5) * 2.0**-53


@no_alloc
def sample_gaussian(
    rows: Floats, i: int, d: int, scale: float, is_random: bool, generator: Words, sample: Floats, workspace: Floats
) -> None:
    """Write a draw from N(v, scale² M) to ``sample`` (d,), or v if ``is_random`` is false.

    Row i of ``rows`` holds v and M, packed. The draw is v + scale · Rᵀz. R is the upper triangular Cholesky factor of
    M, and z has d standard normal numbers, drawn in pairs by the Box–Muller transform. For odd d, the last number of
    the last pair is not used. ``workspace`` has shape (d, d).
    """
    for b in range(d):
        sample[b] = rows[i, b]
    if not is_random:
        return
    q = d
    second = 0.0
    for a in range(d):
        if a % 2 == 0:
            radius = math.sqrt(-2.0 * math.log(next_uniform(generator)))
            angle = 2.0 * math.pi * next_uniform(generator)
            normal, second = radius * math.cos(angle), radius * math.sin(angle)
        else:
            normal = second
        for b in range(a, d):
            total = float(rows[i, q])
            for h in range(a):
                total -= workspace[h, a] * workspace[h, b]
            if a == b:
                workspace[a, a] = math.sqrt(max(total, 0.0))
            else:  # a diagonal of 0 is possible only by rounding
                workspace[a, b] = total / workspace[a, a] if workspace[a, a] > 0.0 else 0.0
            sample[b] += scale * workspace[a, b] * normal
            q += 1


@inline
def choose_by_sample(
    rows: Floats,
    i: int,
    contexts: Floats,
    alpha: float,
    ties: int,
    generator: Words,
    sample: Floats,
    workspace: Floats,
    scores: Floats,
) -> int:
    """Write the score θ̃ᵀx of every arm to ``scores`` (k,), and return the arm with the largest score (``pick_arm``).

    θ̃ is a draw from N(θ̂, alpha² A⁻¹) with (θ̂, A⁻¹) from row i of ``rows``. A single arm is scored by θ̂ without a draw,
    so that learning a reward (``play`` with one arm) does not advance the generator.
    """
    sample_gaussian(rows, i, sample.size, alpha, scores.size > 1, generator, sample, workspace)
    for a in range(scores.size):
        scores[a] = 0.0
        for q in range(sample.size):
            scores[a] += contexts[a, q] * sample[q]
    return pick_arm(scores, ties, generator)


@entry_point
def explain_samples(
    rows: Floats,
    indices: Ints,
    ends: Ints,
    contexts: Floats,
    alphas: Floats,
    ties: int,
    generator: Words,
    estimate: Floats,
    bonus: Floats,
    chosen: Ints,
) -> None:
    """Choose an arm by a draw and explain the choice, for each of u users. See ``arm_scoring.explain``.

    The draw of user number i is from N(θ̂, alphas[i]² A⁻¹). The bonus of an arm is its score minus θ̂ᵀx, which may be
    negative.
    """
    d = contexts.shape[1]
    sample, workspace = np.empty(d), np.empty((d, d))
    stop = 0
    for i in range(indices.size):
        start, stop = stop, ends[i]
        chosen[i] = -1
        if not is_valid(contexts[start:stop].ravel()):
            continue
        scores, row = np.empty(stop - start), indices[i]
        chosen[i] = choose_by_sample(
            rows, row, contexts[start:stop], alphas[i], ties, generator, sample, workspace, scores
        )
        for a in range(start, stop):
            estimate[a] = 0.0
            for q in range(d):
                estimate[a] += contexts[a, q] * rows[row, q]
            bonus[a] = scores[a - start] - estimate[a]
