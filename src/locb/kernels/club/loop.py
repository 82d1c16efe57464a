"""CLUB: a graph on the users that only loses edges; users in one connected component share one estimate."""

import math
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.jit import alloc, entry_point, inline, no_alloc
from locb.evaluation.confidence import shrinkage
from locb.kernels.club.components import split
from locb.kernels.club.graph import ALPHA, TIES, GraphState, T, cut
from locb.kernels.common.linear_algebra import add_observation, expand, learn, pick, score_arms, usable


class GraphScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    room: Floats  # (2d, d)


@alloc
def scratch_for(state: GraphState, n_arms: int, dim: int) -> GraphScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return GraphScratch(np.empty((n_arms, columns)), np.empty(n_arms), np.empty(columns), np.empty((2 * dim, dim)))


@inline
def score(state: GraphState, user: int, contexts: Floats, scratch: GraphScratch) -> None:
    """θ_Vᵀx + α √(xᵀ A_V⁻¹ x · log(t + 1)) of every arm, V the component of the user."""
    log_round = math.log(state.int_params[T] + 2.0)  # T rounds are over, so this is round t = T + 1
    row = state.component[user]
    expand(contexts, scratch.arms)
    score_arms(scratch.arms, state.shared, row, contexts.shape[1], state.float_params[ALPHA], log_round, scratch.scores)


@inline
def learn_round(state: GraphState, i: int, x: Floats, reward: float, scratch: GraphScratch) -> None:
    """One observation of user i: its own estimate, its component's, then the edges that must go."""
    name = state.component[i]
    learn(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    learn(state.shared, name, x, reward, scratch.step)
    add_observation(state.shared_sums, name, x, reward)
    state.int_params[T] += 1
    state.served[i] += 1
    state.observed[name] += 1
    state.width[i] = shrinkage(state.served[i])
    n_cut = cut(state, i, x.size)
    if n_cut > 0:
        split(state, i, n_cut, scratch.room)


@entry_point
def recommend(state: GraphState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    scratch = scratch_for(state, contexts.shape[0], contexts.shape[1])
    score(state, user, contexts, scratch)
    return pick(scratch.scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: GraphState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    learn_round(state, user, x, reward, scratch_for(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: GraphState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: GraphScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        score(state, users[t], contexts[t], scratch)
        arm = pick(scratch.scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry_point
def play(state: GraphState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, scratch_for(state, contexts.shape[1], contexts.shape[2]))
