"""ELOC's memory: the choice of how fast observations are forgotten, with ``memory="auto"``.

A *memory* of M rounds multiplies the sums of a user by 1 − 1/M in each round of the user. With ``memory="auto"``, the
sums of users and the pooled sums have one *block* of columns per candidate memory. Block 0 has the memory in use: only
the functions of this module, and those that add up sums, read other blocks. Each block predicts the reward of a round
before it is learned. The *score* of a memory decreases by the squared error of the prediction, and past errors decay.
Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

from locb.common.arrays import Floats
from locb.common.jit import inline, no_alloc
from locb.kernels.common.linear_algebra import mean_diagonal
from locb.kernels.eloc.evidence import recompute_all_centres, within_variance
from locb.kernels.eloc.posterior import component_weight
from locb.kernels.eloc.state import (
    CENTRE_VARIANCE_SHARE,
    MEMORY_LEAD,
    MIN_MEMORY_WEIGHT,
    N_SERVED_USERS,
    NOISE,
    PRECISION,
    RETENTION,
    SCORE,
    SCORE_ROUNDS,
    SCORE_SHARE,
    SOLUTION,
    SYSTEM,
    ELOCScratch,
    ELOCState,
    T,
)


@no_alloc
def solve_row(rows: Floats, workspace: Floats) -> None:
    """Write the solution z of the system M z = v in row SYSTEM to the first d columns of row SOLUTION.

    Takes half the time of ``decompose`` and ``substitute``, because L⁻¹ of M = L D Lᵀ is not computed.
    """
    d = workspace.shape[0]
    q = d
    for a in range(d):  # workspace[b, a] = L[b, a], workspace[b, d + a] = L[b, a] D[a], workspace[a, 2d] = 1 / D[a]
        for b in range(a, d):
            total = rows[SYSTEM, q]
            for h in range(a):
                total -= workspace[a, h] * workspace[b, d + h]
            if a == b:
                workspace[a, d + d] = 1.0 / max(total, 1e-15 * rows[SYSTEM, q])
            else:
                workspace[b, d + a] = total
                workspace[b, a] = total * workspace[a, d + d]
            q += 1
    for b in range(d):
        total = rows[SYSTEM, b]
        for a in range(b):
            total -= workspace[b, a] * rows[SOLUTION, a]
        rows[SOLUTION, b] = total
    for b in range(d - 1, -1, -1):
        total = rows[SOLUTION, b] * workspace[b, d + d]
        for a in range(b + 1, d):
            total -= workspace[a, b] * rows[SOLUTION, a]
        rows[SOLUTION, b] = total


@inline
def predict_from_population(state: ELOCState, i: int, x: Floats, first: int, scratch: ELOCScratch) -> float:
    """Return the prediction for user i under the population, from the sums in columns ``first``, …"""
    rows, scale = scratch.rows, 1.0 / state.learned_scalars[NOISE]
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.sums[i, first + q] * scale + state.population[PRECISION, q]
    solve_row(rows, scratch.workspace)
    prediction = 0.0
    for a in range(x.size):
        prediction += x[a] * rows[SOLUTION, a]
    return prediction


@inline
def predict_from_pool(state: ELOCState, i: int, x: Floats, first: int, scratch: ELOCScratch) -> float:
    """Return the prediction for user i under one neighbourhood, from the sums in columns ``first``, …

    The sums of this neighbourhood are the mean of the pooled sums of all neighbourhoods and of everyone, with the
    weights of these components in the posterior of user i. Its covariance C is approximated by σ² I, divided by the
    mean of the diagonal of A + σ² Σ⁻¹ over the used features.
    """
    rows, noise, d = scratch.rows, state.learned_scalars[NOISE], x.size
    total = 0.0
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = 0.0
    for c in range(1, state.components[0]):
        s = state.components[c]
        weight = component_weight(s, scratch.responsibilities, scratch.gate_weights)
        if weight > MIN_MEMORY_WEIGHT:
            total += weight
            for q in range(rows.shape[1]):
                rows[SYSTEM, q] += weight * state.pooled_sums[s, first + q]
    scale = 1.0 / max(total, MIN_MEMORY_WEIGHT)
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = rows[SYSTEM, q] * scale + noise * state.population[PRECISION, q]
    solve_row(rows, scratch.workspace)
    precision = mean_diagonal(rows, SYSTEM, state.pooled_sums, state.seeds.size, d)
    v = within_variance(state, 0, d) + CENTRE_VARIANCE_SHARE * noise / precision
    scale, precision = 1.0 / noise, 1.0 / v
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.sums[i, first + q] * scale
    q = d
    for a in range(d):
        rows[SYSTEM, a] += rows[SOLUTION, a] * precision
        rows[SYSTEM, q] += precision
        q += d - a
    solve_row(rows, scratch.workspace)
    prediction = 0.0
    for a in range(d):
        prediction += x[a] * rows[SOLUTION, a]
    return prediction


@no_alloc
def score_memories(state: ELOCState, i: int, x: Floats, reward: float, spread: float, scratch: ELOCScratch) -> None:
    """Update the scores of all memories with the reward of user i, before the reward is learned.

    Past errors decay. The score then decreases by the squared error of the prediction / 2(σ² + xᵀV̄x), where ``spread``
    is √(1 + xᵀV̄x / σ²). The prediction is the weighted mean of two: under the population, and under the pool of the
    user's neighbourhoods.
    """
    n_served_users, t = state.int_params[N_SERVED_USERS], state.int_params[T]
    retention = 1.0 - 1.0 / min(SCORE_ROUNDS * n_served_users, 2.0 + SCORE_SHARE * t)
    width, double_variance = scratch.rows.shape[1], 2.0 * state.learned_scalars[NOISE] * spread * spread
    weight = component_weight(state.seeds.size + 1, scratch.responsibilities, scratch.gate_weights)
    if weight <= MIN_MEMORY_WEIGHT:
        weight = 0.0
    elif weight >= 1.0 - MIN_MEMORY_WEIGHT:
        weight = 1.0
    for c in range(state.memories.shape[0]):
        prediction = 0.0
        if weight > 0.0:
            prediction += weight * predict_from_population(state, i, x, c * width, scratch)
        if weight < 1.0:
            prediction += (1.0 - weight) * predict_from_pool(state, i, x, c * width, scratch)
        error = reward - prediction
        state.memories[c, SCORE] = retention * state.memories[c, SCORE] - error * error / double_variance


@no_alloc
def select_memory(state: ELOCState, width: int) -> None:
    """Use the memory with the highest score, where the score of a shorter memory counts MEMORY_LEAD less."""
    memories = state.memories
    best, best_score = 0, memories[0, SCORE]
    for c in range(1, memories.shape[0]):
        score = memories[c, SCORE]
        if memories[c, RETENTION] < memories[0, RETENTION]:
            score -= MEMORY_LEAD
        if score > best_score:
            best, best_score = c, score
    if best == 0:
        return
    for i in range(state.n_users[0]):
        swap_blocks(state.sums, i, best, width)
    for s in range(state.pooled_sums.shape[0]):
        swap_blocks(state.pooled_sums, s, best, width)
    recompute_all_centres(state)
    for column in range(memories.shape[1]):
        memories[0, column], memories[best, column] = memories[best, column], memories[0, column]


@inline
def swap_blocks(rows: Floats, i: int, block: int, width: int) -> None:
    """Swap the first ``width`` columns of row i of ``rows`` with block number ``block``."""
    for q in range(width):
        rows[i, q], rows[i, block * width + q] = rows[i, block * width + q], rows[i, q]
