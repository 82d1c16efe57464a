"""RCLUMB's rounds: recommend, update and play. The state is that of CLUB; the neighbours of a user share one estimate.

``float_params`` has one more entry than for CLUB: ε, the level of misspecification. Further symbols are defined in
``locb.kernels``.
"""

import math
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.club.loop import learn_round
from locb.kernels.club.state import ALPHA, GRAPH, SCREEN_WIDTH, SPARSE, TIES, CLUBScratch, CLUBState
from locb.kernels.club.state import allocate_scratch as allocate_club_scratch
from locb.kernels.common.arm_scoring import apply_screen, expand_contexts, pick_arm, score_arms
from locb.kernels.common.bit_sets import ONE, trailing_zeros
from locb.kernels.common.handles import CHOOSE, LEARN
from locb.kernels.common.linear_algebra import solve_ridge

EPSILON = 3  # entry of ``float_params``
SUMS, ESTIMATE = 0, 1  # rows of ``RCLUMBScratch.rows``


class RCLUMBScratch(NamedTuple):
    """Work arrays of one round, allocated once for many rounds of k arms."""

    rows: Floats  # (2, d + p) sums and estimate of the neighbours of a user
    club: CLUBScratch


def allocate_scratch(state: CLUBState, n_arms: int, dim: int) -> RCLUMBScratch:
    """Return new work arrays for rounds with ``n_arms`` arms."""
    return RCLUMBScratch(np.empty((2, state.estimates.shape[1])), allocate_club_scratch(state, n_arms, dim))


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


@no_alloc
def run_rounds(
    state: CLUBState,
    scratch: RCLUMBScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    slack = 0.5 * state.float_params[EPSILON]
    for t in range(users.size):
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scratch.rows, scratch.club)
        if steps & LEARN:
            arm = chosen[t]
            learn_round(state, users[t], contexts[t, arm], rewards[t, arm], slack, scratch.club)
