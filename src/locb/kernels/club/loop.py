"""CLUB's rounds: recommend, update and play. Users in one connected component of the graph share one estimate."""

import math

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.components import split_component
from locb.kernels.club.graph import cut_edges
from locb.kernels.club.state import ALPHA, SCREEN_WIDTH, TIES, CLUBScratch, CLUBState, T, allocate_scratch
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.linear_algebra import add_observation, rank_one_update
from locb.kernels.confidence_radii import shrinkage


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

    ``slack`` is added to the radius width of the user, so that users with more different estimates keep their edges.
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


@entry_point
def recommend(state: CLUBState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    scratch = allocate_scratch(state, contexts.shape[0], contexts.shape[1])
    return choose(state, user, contexts, scratch)


@entry_point
def update(state: CLUBState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    learn_round(state, user, x, reward, 0.0, allocate_scratch(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: CLUBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: CLUBScratch
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    for t in range(users.size):
        arm = choose(state, users[t], contexts[t], scratch)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], 0.0, scratch)


@entry_point
def play(state: CLUBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    play_rounds(state, users, contexts, rewards, chosen, allocate_scratch(state, contexts.shape[1], contexts.shape[2]))
