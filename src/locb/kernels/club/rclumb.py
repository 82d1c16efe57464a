"""RCLUMB's rounds: recommend, update and play. The state is that of CLUB; the neighbours of a user share one estimate.

``float_params`` has one more entry than for CLUB: ε, the level of misspecification. Further symbols are defined in
``locb.kernels``.
"""

import math

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.loop import learn_round
from locb.kernels.club.state import ALPHA, GRAPH, SCREEN_WIDTH, SPARSE, TIES, CLUBScratch, CLUBState, allocate_scratch
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.bit_sets import ONE, trailing_zeros
from locb.kernels.common.linear_algebra import solve_ridge

EPSILON = 3  # entry of ``float_params``
SUMS, ESTIMATE = 0, 1  # rows of ``rows`` in ``solve_neighbours``


@inline
def add_user(state: CLUBState, j: int, rows: Floats) -> int:
    """Add the sums of user j to row SUMS of ``rows``, and return the rounds of the user."""
    if state.served[j] > 0:
        for q in range(rows.shape[1]):
            rows[SUMS, q] += state.sums[j, q]
    return int(state.served[j])


@no_alloc
def solve_neighbours(state: CLUBState, user: int, rows: Floats, workspace: Floats) -> tuple[int, int]:
    """Write the ridge estimate of a user and its neighbours in the graph to row ESTIMATE of ``rows`` (2, d + p).

    Returns the number of these users and the sum of their rounds.
    """
    for q in range(rows.shape[1]):
        rows[SUMS, q] = 0.0
    users, served = 1, add_user(state, user, rows)
    if state.int_params[GRAPH] == SPARSE:
        start = state.list_start[user]
        for e in range(start, start + state.degree[user]):
            served += add_user(state, state.neighbour_lists[e], rows)
            users += 1
    else:
        for w in range(state.neighbour_bits.shape[1]):
            word = state.neighbour_bits[user, w]
            while word != 0:
                served += add_user(state, (w << 6) + trailing_zeros(word), rows)
                users += 1
                word &= word - ONE
    solve_ridge(rows, SUMS, rows, ESTIMATE, workspace)
    return users, served


@inline
def bonus_weight(state: CLUBState, served: int) -> float:
    """Return the weight α + ε √T of the bonus, where T is the number of rounds of the neighbours."""
    return float(state.float_params[ALPHA] + state.float_params[EPSILON] * math.sqrt(served))


@entry_point
def describe_neighbours(state: CLUBState, users: Ints, rows: Floats, alphas: Floats, counts: Ints, dim: int) -> None:
    """Write the estimate of the neighbours of u users to ``rows`` (u, d + p) and the weight of the bonus to ``alphas``.

    ``counts`` (u, 2) receives the number of the neighbours, including the user, and the sum of their rounds.
    """
    pair, workspace = np.empty((2, rows.shape[1])), np.empty((2 * dim, dim))
    for k in range(users.size):
        counts[k, 0], counts[k, 1] = solve_neighbours(state, users[k], pair, workspace)
        rows[k] = pair[ESTIMATE]
        alphas[k] = bonus_weight(state, counts[k, 1])


@inline
def choose(state: CLUBState, user: int, contexts: Floats, rows: Floats, scratch: CLUBScratch) -> int:
    """Return the arm with the highest score, or its replacement by the safety screen; −1 if the scores are NaN."""
    served = solve_neighbours(state, user, rows, scratch.workspace)[1]
    d, ties, width = contexts.shape[1], state.int_params[TIES], state.float_params[SCREEN_WIDTH]
    expand_contexts(contexts, scratch.arms)
    score_arms(scratch.arms, rows, ESTIMATE, d, bonus_weight(state, served), 1.0, scratch.scores)
    arm = pick_arm(scratch.scores, ties, state.generator)
    if width == 0.0 or arm < 0:
        return arm
    return apply_screen(scratch.arms, state.estimates, user, d, width, arm, ties, state.generator, scratch.scores)


@entry_point
def recommend(state: CLUBState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    scratch = allocate_scratch(state, contexts.shape[0], contexts.shape[1])
    return choose(state, user, contexts, np.empty((2, state.estimates.shape[1])), scratch)


@entry_point
def update(state: CLUBState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    learn_round(state, user, x, reward, 0.5 * state.float_params[EPSILON], allocate_scratch(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: CLUBState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    rows: Floats,
    scratch: CLUBScratch,
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    slack = 0.5 * state.float_params[EPSILON]
    for t in range(users.size):
        arm = choose(state, users[t], contexts[t], rows, scratch)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], slack, scratch)


@entry_point
def play(state: CLUBState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    scratch = allocate_scratch(state, contexts.shape[1], contexts.shape[2])
    play_rounds(state, users, contexts, rewards, chosen, np.empty((2, state.estimates.shape[1])), scratch)
