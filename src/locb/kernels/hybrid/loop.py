"""The rounds of HybridLinUCB: recommend, update and play. The symbols are defined in ``locb.kernels.hybrid.state``."""

import math

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import multiply_packed, rank_one_update
from locb.kernels.hybrid.state import TIES, HybridScratch, HybridState, T, allocate_scratch


@no_alloc
def combine(state: HybridState, user: int, rows: Floats, to: int, scratch: HybridScratch) -> None:
    """Write w_u = θ̂_u + A_u⁻¹β̂ and S_u = A_u⁻¹ + A_u⁻¹ A₀⁻¹ A_u⁻¹ of a user to row ``to`` of ``rows``."""
    estimates, shared, inverse, product = state.estimates, state.shared, scratch.inverse, scratch.product
    d = inverse.shape[0]
    q = d
    for a in range(d):
        for b in range(a, d):
            inverse[a, b] = estimates[user, q]
            inverse[b, a] = estimates[user, q]
            q += 1
    for c in range(d):  # the columns of A₀⁻¹ A_u⁻¹, as rows
        multiply_packed(shared, 0, inverse[c], product[c])
    q = d
    for a in range(d):
        total = float(estimates[user, a])
        for b in range(d):
            total += inverse[a, b] * shared[0, b]
        rows[to, a] = total
        for b in range(a, d):
            total = inverse[a, b]
            for h in range(d):
                total += inverse[a, h] * product[b, h]
            rows[to, q] = total
            q += 1


@entry_point
def combine_users(state: HybridState, users: Ints, rows: Floats, dim: int) -> None:
    """Write w_u and S_u of u users to ``rows`` (u, d + p)."""
    scratch = allocate_scratch(state, 1, dim)
    for k in range(users.size):
        combine(state, users[k], rows, k, scratch)


@inline
def choose(state: HybridState, user: int, contexts: Floats, scratch: HybridScratch) -> int:
    """Return the arm with the largest score w_uᵀx + α √(xᵀS_u x), or −1 if the scores are NaN."""
    combine(state, user, scratch.row, 0, scratch)
    expand_contexts(contexts, scratch.arms)
    alpha = state.float_params[0]
    score_arms(scratch.arms, scratch.row, 0, contexts.shape[1], alpha, 1.0, scratch.scores)
    return pick_arm(scratch.scores, state.int_params[TIES], state.generator)


@inline
def learn_round(state: HybridState, user: int, x: Floats, reward: float, scratch: HybridScratch) -> None:
    """Learn one observation.

    Let v = A_u⁻¹x, c = 1 + xᵀv and e = r − θ̂_uᵀx. The matrix A_u⁻¹ changes by −v vᵀ / c, and θ̂_u changes by v e / c.
    A₀ and b₀ therefore change as by an observation of the context v / √c with the reward e / √c.
    """
    y, d = scratch.vector, x.size
    multiply_packed(state.estimates, user, x, y)
    det_ratio = 1.0
    residual = reward
    for a in range(d):
        det_ratio += y[a] * x[a]
        residual -= state.estimates[user, a] * x[a]
    rank_one_update(state.estimates, user, x, reward, scratch.step)
    root = math.sqrt(det_ratio)
    for a in range(d):
        y[a] /= root
    rank_one_update(state.shared, 0, y, residual / root, scratch.step)
    state.served[user] += 1
    state.int_params[T] += 1


@no_alloc
def run_rounds(
    state: HybridState,
    scratch: HybridScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    for t in range(users.size):
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scratch)
        if steps & LEARN:
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], scratch)
