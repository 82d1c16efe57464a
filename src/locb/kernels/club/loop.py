"""CLUB's rounds: recommend, update and play. Users in one connected component of the graph share one estimate.

Symbols are defined in ``locb.kernels``.
"""

import math

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.club.components import split_component
from locb.kernels.club.graph import cut_edges
from locb.kernels.club.state import ALPHA, SCREEN_WIDTH, TIES, CLUBScratch, CLUBState, T, allocate_scratch
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import add_observation, rank_one_update
from locb.kernels.confidence_radii import shrinkage

__all__ = ["allocate_scratch", "run_rounds"]


@inline
def score(state: CLUBState, user: int, contexts: Floats, scratch: CLUBScratch) -> None:
    """Write the score θ_Vᵀx + α √(xᵀA_V⁻¹x · log(t + 1)) of every arm to ``scratch.scores``.

    θ_V and A_V are the estimate and the matrix A of the component V of the user.
    """
    log_round = math.log(state.int_params[T] + 2.0)  # int_params[T] rounds are complete, so this is round t = T + 1
    row = state.component[user]
    expand_contexts(contexts, scratch.arms)
    score_arms(
        scratch.arms,
        state.cluster_estimates,
        row,
        contexts.shape[1],
        state.float_params[ALPHA],
        log_round,
        scratch.scores,
    )


@inline
def choose(state: CLUBState, user: int, contexts: Floats, scratch: CLUBScratch) -> int:
    """Return the arm with the highest score, or its replacement by the safety screen; −1 if the scores are NaN."""
    score(state, user, contexts, scratch)
    ties, width = state.int_params[TIES], state.float_params[SCREEN_WIDTH]
    arm = pick_arm(scratch.scores, ties, state.generator)
    if width == 0.0 or arm < 0:
        return arm
    d = contexts.shape[1]
    return apply_screen(scratch.arms, state.estimates, user, d, width, arm, ties, state.generator, scratch.scores)


@inline
def learn_round(state: CLUBState, i: int, x: Floats, reward: float, slack: float, scratch: CLUBScratch) -> None:
    """Learn one observation: update the estimates of user i and its component, cut edges, split the component.

    ``slack`` is added to the radius width of the user, which increases the distance above which edges are cut.
    """
    c = state.component[i]
    rank_one_update(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    rank_one_update(state.cluster_estimates, c, x, reward, scratch.step)
    add_observation(state.cluster_sums, c, x, reward)
    state.int_params[T] += 1
    state.served[i] += 1
    state.cluster_served[c] += 1
    state.radius_widths[i] = shrinkage(state.served[i]) + slack
    n_cut = cut_edges(state, i, x.size)
    if n_cut > 0:
        split_component(state, i, n_cut, scratch.workspace)


@no_alloc
def run_rounds(
    state: CLUBState,
    scratch: CLUBScratch,
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
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], 0.0, scratch)
