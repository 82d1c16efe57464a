"""CAB's rounds: recommend, update and play. Each arm has its own neighbourhood of users, who share their estimates.

The neighbourhood of user i for an arm x is the set of all users j with |θ̂_iᵀx − θ̂_jᵀx| ≤ c_i(x) + c_j(x). The
confidence width of user j in round t is c_j(x) = α √(xᵀA_j⁻¹x · log(t + 1)). Symbols are defined in ``locb.kernels``.
"""

import math

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.cab.state import ALPHA, GAMMA, N_USERS, TIES, CABScratch, CABState, T, allocate_scratch
from locb.kernels.common.arm_scoring import dot, expand_contexts, is_valid, pick_arm
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import rank_one_update


@no_alloc
def predict(state: CABState, arm: int, d: int, scratch: CABScratch) -> None:
    """Write θ̂_jᵀx and c_j(x) of all users j for one arm to ``scratch.predictions`` and ``scratch.widths``."""
    arms, estimates = scratch.arms, state.estimates
    factor = math.log(state.int_params[T] + 2.0)  # int_params[T] rounds are complete, so this is round t = T + 1
    for j in range(state.int_params[N_USERS]):
        variance = dot(arms, arm, estimates, j, d, arms.shape[1])
        scratch.predictions[j] = dot(arms, arm, estimates, j, 0, d)
        scratch.widths[j] = state.float_params[ALPHA] * math.sqrt(max(variance, 0.0) * factor)


@inline
def is_neighbour(scratch: CABScratch, i: int, j: int) -> bool:
    """Return whether user j is in the neighbourhood of user i for the arm of the last call of ``predict``."""
    gap = abs(scratch.predictions[i] - scratch.predictions[j])
    return bool(i == j or gap <= scratch.widths[i] + scratch.widths[j])


@inline
def score(state: CABState, user: int, contexts: Floats, scratch: CABScratch) -> None:
    """Write the score of every arm to ``scratch.scores``, and its estimate and bonus to ``scratch.parts``.

    Estimate and bonus are the means of θ̂_jᵀx and c_j(x) over the neighbourhood of the user for this arm.
    """
    expand_contexts(contexts, scratch.arms)
    for a in range(contexts.shape[0]):
        predict(state, a, contexts.shape[1], scratch)
        estimate, bonus, count = 0.0, 0.0, 0
        for j in range(state.int_params[N_USERS]):
            if is_neighbour(scratch, user, j):
                estimate += scratch.predictions[j]
                bonus += scratch.widths[j]
                count += 1
        scratch.parts[a, 0], scratch.parts[a, 1] = estimate / count, bonus / count
        scratch.scores[a] = scratch.parts[a, 0] + scratch.parts[a, 1]


@inline
def learn_round(state: CABState, user: int, x: Floats, reward: float, scratch: CABScratch) -> None:
    """Learn one observation of the context x, the first row of ``scratch.arms``.

    The user learns it. If c(x) of the user is below γ / 4, all neighbours j with c_j(x) below γ / 4 learn it, too. γ is
    the parameter ``gamma`` of CAB.
    """
    limit = 0.25 * state.float_params[GAMMA]
    predict(state, 0, x.size, scratch)
    for j in range(state.int_params[N_USERS]):
        shares = scratch.widths[user] < limit and scratch.widths[j] < limit and is_neighbour(scratch, user, j)
        if j == user or shares:
            rank_one_update(state.estimates, j, x, reward, scratch.step)
    state.served[user] += 1
    state.int_params[T] += 1


@inline
def summarize_neighbourhood(state: CABState, user: int, scratch: CABScratch, theta: Floats, counts: Ints) -> None:
    """Write the mean estimate of the neighbours for the arm of the last call of ``predict`` to ``theta`` (d,).

    ``counts`` receives the number of neighbours, and the number of rounds in which they were served.
    """
    theta[:] = 0.0
    counts[:] = 0
    for j in range(state.int_params[N_USERS]):
        if is_neighbour(scratch, user, j):
            counts[0] += 1
            counts[1] += state.served[j]
            for q in range(theta.size):
                theta[q] += state.estimates[j, q]
    for q in range(theta.size):
        theta[q] /= counts[0]


@entry_point
def explain(
    state: CABState,
    users: Ints,
    ends: Ints,
    contexts: Floats,
    estimate: Floats,
    bonus: Floats,
    chosen: Ints,
    theta: Floats,
    counts: Ints,
) -> None:
    """Choose an arm for each of n users.

    Write the arms to ``chosen``, and the estimate and the bonus of every arm to ``estimate`` and ``bonus``. The arms of
    ``users[i]`` are the rows from ``ends[i - 1]``, or from 0 for the first user, to ``ends[i]`` − 1 of ``contexts``.
    ``theta`` (n, d) and ``counts`` (n, 2) describe the neighbourhoods for the chosen arms, see
    ``summarize_neighbourhood``.
    """
    start = 0
    for i in range(users.size):
        own = contexts[start : ends[i]]
        chosen[i] = -1
        if is_valid(own.ravel()):
            scratch = allocate_scratch(state, own.shape[0], own.shape[1])
            score(state, users[i], own, scratch)
            chosen[i] = pick_arm(scratch.scores, state.int_params[TIES], state.generator)
            estimate[start : ends[i]], bonus[start : ends[i]] = scratch.parts[:, 0], scratch.parts[:, 1]
            if chosen[i] >= 0:
                predict(state, chosen[i], own.shape[1], scratch)
                summarize_neighbourhood(state, users[i], scratch, theta[i], counts[i])
        start = ends[i]


@no_alloc
def run_rounds(
    state: CABState,
    scratch: CABScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    for t in range(users.size):
        if steps & CHOOSE:
            score(state, users[t], contexts[t], scratch)
            chosen[t] = pick_arm(scratch.scores, state.int_params[TIES], state.generator)
        if steps & LEARN:
            arm = chosen[t]
            expand_contexts(contexts[t, arm : arm + 1], scratch.arms)
            learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)
