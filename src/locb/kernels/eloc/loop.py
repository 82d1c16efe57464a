"""ELOC: choosing, the short lessons of a round, and the loop over rounds."""

import math

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.cholesky import solve
from locb.kernels.common.linear_algebra import expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.eloc.neighbourhoods import learn_sums, renew_centres, reseed
from locb.kernels.eloc.population import inside_anew, inside_now, learn_population, learn_terms
from locb.kernels.eloc.posterior import believe, weight_of
from locb.kernels.eloc.state import (
    ANSWER,
    BETA,
    BONUS_ROUNDS,
    CENTRE,
    GATE_ROUNDS,
    LOG_DET,
    N_SERVED_USERS,
    NOISE,
    NOISE_FLOOR,
    NOISE_LAG,
    POPULATION_EVERY,
    POPULATION_ROUNDS,
    PRECISION,
    RETENTION,
    SAME_GROUP,
    SHARE_FLOOR,
    TIES,
    USER_LAG,
    ELOCScratch,
    ELOCState,
    T,
    allocate_scratch,
    refresh_in_turn,
)


@inline
def score(state: ELOCState, i: int, contexts: Floats, room: ELOCScratch) -> None:
    """Mean plus bonus of every arm, from what is believed about user i."""
    fading = math.sqrt(BONUS_ROUNDS / (BONUS_ROUNDS + state.served[i]))
    expand_contexts(contexts, room.arms)
    score_arms(room.arms, room.rows, ANSWER, contexts.shape[1], state.float_params[BETA] * fading, 1.0, room.scores)


@inline
def move_gate(learned_scalars: Floats, seen: int, x: Floats, reward: float, means: Floats) -> None:
    """Each of the three loses by how far its prediction was off; old losses fade."""
    kept = 1.0 - 1.0 / (GATE_ROUNDS * seen)
    first = means.shape[0] - 3  # rows of the means: everyone, the population, the mixture
    for c in range(3):
        error = reward
        for a in range(x.size):
            error -= x[a] * means[first + c, a]
        learned_scalars[c] = kept * learned_scalars[c] - error * error / (2.0 * learned_scalars[NOISE])


@inline
def learn_noise(learned_scalars: Floats, t: int, x: Floats, reward: float, rows: Floats) -> None:
    """σ² from the squared error of the prediction, less what of it is owed to not knowing the user."""
    d = x.size
    error = reward
    spread = 0.0
    q = d
    for a in range(d):
        error -= x[a] * rows[ANSWER, a]
        spread += rows[ANSWER, q] * x[a] * x[a]
        q += 1
        for b in range(a + 1, d):
            spread += 2.0 * rows[ANSWER, q] * x[a] * x[b]
            q += 1
    noise = learned_scalars[NOISE]
    told = error * error / (1.0 + max(spread, 0.0) / noise)
    learned_scalars[NOISE] = max(noise + 2.0 / (t + NOISE_LAG) * (told - noise), NOISE_FLOOR)


@inline
def learn_shares(prior_weights: Floats, odds: Floats, seen: int) -> None:
    """π moves towards the responsibilities of the round."""
    n_seeds = prior_weights.size - 2
    step = 1.0 / (seen + USER_LAG)
    total = 0.0
    for s in range(prior_weights.size):
        floor = SHARE_FLOOR if s >= n_seeds else SHARE_FLOOR / n_seeds
        prior_weights[s] = max(prior_weights[s] + step * (odds[s] - prior_weights[s]), floor)
        total += prior_weights[s]
    for s in range(prior_weights.size):
        prior_weights[s] /= total


@no_alloc
def learn_round(state: ELOCState, i: int, x: Floats, reward: float, room: ELOCScratch) -> None:
    """One observation of user i, about whom the scratch holds what was believed before it."""
    int_params, learned_scalars, population, rows = state.int_params, state.learned_scalars, state.population, room.rows
    int_params[T] += 1
    if state.served[i] == 0:
        int_params[N_SERVED_USERS] += 1
    state.served[i] += 1
    move_gate(learned_scalars, int_params[N_SERVED_USERS], x, reward, room.means)
    learn_sums(state, i, x, reward, room.odds)
    if state.served[i] <= POPULATION_ROUNDS or state.served[i] % POPULATION_EVERY == 0:
        if state.float_params[RETENTION] < 1.0:
            inside_anew(state.sums, i, learned_scalars[NOISE], population, rows, room.square, room.work)
        else:
            inside_now(rows, x, learned_scalars[NOISE], room.square)
        learn_terms(state.sums, state.centre_terms, i, learned_scalars[NOISE], population, rows, room.square)
        learned_scalars[LOG_DET] = learn_population(population, int_params[N_SERVED_USERS], rows, room.work)
    learn_noise(learned_scalars, int_params[T], x, reward, rows)
    learn_shares(state.prior_weights, room.odds, int_params[N_SERVED_USERS])
    renew_centres(state, room)
    reseed(state, i, room)
    refresh_in_turn(state)


@entry_point
def recommend(state: ELOCState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not is_valid(contexts.ravel()):
        return -1
    room = allocate_scratch(state, contexts.shape[0], contexts.shape[1])
    believe(state, user, room)
    score(state, user, contexts, room)
    return pick_arm(room.scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: ELOCState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not is_valid(x):
        return False
    room = allocate_scratch(state, 1, x.size)
    believe(state, user, room)
    learn_round(state, user, x, reward, room)
    return True


@no_alloc
def play_rounds(
    state: ELOCState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, room: ELOCScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        believe(state, users[t], room)
        score(state, users[t], contexts[t], room)
        arm = pick_arm(room.scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], room)


@entry_point
def play(state: ELOCState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, allocate_scratch(state, contexts.shape[1], contexts.shape[2]))


@entry_point
def rebuild_derived(state: ELOCState, dim: int) -> None:
    """Work out Σ_0⁻¹ and all centres from the sums."""
    room = allocate_scratch(state, 1, dim)
    state.learned_scalars[LOG_DET] = solve(state.population, CENTRE, state.population, PRECISION, room.work)
    state.trace_change[:] = 1.0
    renew_centres(state, room)


@entry_point
def compute_posteriors(
    state: ELOCState, users: Ints, dim: int, rows: Floats, weights: Floats, inside: NDArray[np.bool_]
) -> None:
    """What is believed of these users, into those of the last three that have any rows, one a user.

    (θ̄, V̄); the weights of the neighbourhoods, everyone and the population in it, (K + 2); and which of these but the
    population explain the user nearly as well as the best, (K + 1).
    """
    room = allocate_scratch(state, 1, dim)
    n_seeds = state.seeds.size
    for u in range(users.size):
        believe(state, users[u], room)
        if rows.shape[0] > 0:
            rows[u] = room.rows[ANSWER]
        if weights.shape[0] > 0:
            for s in range(n_seeds + 2):
                weights[u, s] = weight_of(s, room.odds, room.gated)
        if inside.shape[0] > 0:
            best = room.evidence.max()
            for s in range(n_seeds + 1):
                inside[u, s] = room.evidence[s] >= best - SAME_GROUP
            if state.seed_of[users[u]] >= 0:
                inside[u, state.seed_of[users[u]]] = True
