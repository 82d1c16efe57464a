"""ELOC's neighbourhoods: whose rewards are lent to which, where their centres are, and seeds that move."""

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline
from locb.kernels.common.linear_algebra import add_observation, packed_trace, squared_distance
from locb.kernels.eloc.posterior import solve_centre, width_inside
from locb.kernels.eloc.state import (
    GAMMA,
    LEFT,
    MAX_NEIGHBOURHOODS,
    MOVED,
    NOISE,
    PRECISION,
    RESEED_ROUNDS,
    RETENTION,
    ROUNDS,
    SAME_WEIGHT,
    TWINS,
    UNEXPLAINED,
    USERS,
    ELOCScratch,
    ELOCState,
    T,
    add_row,
    held,
)


@inline
def keep_weights(
    user_neighbourhoods: NDArray[np.int32], weights: Floats, neighbourhood_ids: Ints, i: int, odds: Floats, own: int
) -> None:
    """Keep the largest responsibilities of user i as q, 0 for all others; a seed weighs 1 in its own neighbourhood.

    Equal weights are kept in the order of the seeds, from a different one on for each user, so that at the start, when
    all neighbourhoods look alike, users spread over them.
    """
    n_seeds = odds.size - 2
    for z in range(MAX_NEIGHBOURHOODS):
        user_neighbourhoods[i, z] = -1
        weights[i, z] = 0.0
    first = 0
    if own >= 0:
        user_neighbourhoods[i, 0] = own
        weights[i, 0] = 1.0
        first = 1
    s = i % n_seeds
    for _ in range(n_seeds):
        if odds[s] > 0.0 and s != own:
            z = MAX_NEIGHBOURHOODS
            while z > first and (
                user_neighbourhoods[i, z - 1] < 0 or odds[s] > odds[user_neighbourhoods[i, z - 1]] * (1.0 + SAME_WEIGHT)
            ):
                z -= 1
            for y in range(MAX_NEIGHBOURHOODS - 1, z, -1):
                user_neighbourhoods[i, y] = user_neighbourhoods[i, y - 1]
                weights[i, y] = weights[i, y - 1]
            if z < MAX_NEIGHBOURHOODS:
                user_neighbourhoods[i, z] = s
                weights[i, z] = odds[s]
        s += 1
        if s == n_seeds:
            s = 0
    for z in range(MAX_NEIGHBOURHOODS):
        if user_neighbourhoods[i, z] >= 0:
            user_neighbourhoods[i, z] = neighbourhood_ids[user_neighbourhoods[i, z]]


@inline
def lend(state: ELOCState, i: int, sign: int, rounds: int, d: int) -> None:
    """Put what user i did in so many rounds into the sums of its neighbourhoods, by its weights, or take it out."""
    size = packed_trace(state.sums, i, d)
    for z in range(MAX_NEIGHBOURHOODS):
        s = held(state, i, z)
        if s >= 0:
            share = sign * state.weights[i, z]
            add_row(state.pooled_sums, s, state.sums, i, share)
            state.trace_change[s] += share * size
            state.contributors[s, USERS] += sign
            state.contributors[s, ROUNDS] += sign * rounds


@inline
def learn_sums(state: ELOCState, i: int, x: Floats, reward: float, odds: Floats) -> None:
    """The observation, the new weights, and the neighbourhoods' sums, which always equal Σ q (b, G) of what is kept.

    What is taken out is what was put in, to the last bit, also where rows are kept in float32.
    """
    sums, everyone = state.sums, state.seeds.size
    d = x.size
    lend(state, i, -1, state.served[i] - 1, d)  # this round is counted already
    add_row(state.pooled_sums, everyone, sums, i, -1.0)
    state.trace_change[everyone] -= packed_trace(sums, i, d)
    keep_weights(state.user_neighbourhoods, state.weights, state.neighbourhood_ids, i, odds, state.seed_of[i])
    for q in range(sums.shape[1]):
        sums[i, q] *= state.float_params[RETENTION]
    add_observation(sums, i, x, reward)
    lend(state, i, 1, state.served[i], d)
    add_row(state.pooled_sums, everyone, sums, i, 1.0)
    state.trace_change[everyone] += packed_trace(sums, i, d)


@inline
def renew_centre(state: ELOCState, s: int, room: ELOCScratch) -> None:
    """Solve for one centre."""
    rows, noise = room.rows, state.learned_scalars[NOISE]
    state.trace_change[s] = 0.0
    for q in range(rows.shape[1]):
        rows[LEFT, q] = state.pooled_sums[s, q] + noise * state.population[PRECISION, q]
    inside = width_inside(state, s, room.work.shape[0])
    state.width_levels[s] = solve_centre(rows, noise, inside, state.centres, s, room.work)


@inline
def renew_centres(state: ELOCState, room: ELOCScratch) -> None:
    """Solve for the centres whose sums have moved enough, and for one in turn, which σ², Σ_0 and μ_0 moved too."""
    d = room.work.shape[0]
    turn = state.int_params[T] % state.width_levels.size
    for s in range(state.width_levels.size):
        if s == turn or abs(state.trace_change[s]) > MOVED * max(packed_trace(state.pooled_sums, s, d), 0.0):
            renew_centre(state, s, room)


@inline
def twin(state: ELOCState, d: int) -> int:
    """Of the seeds whose centre is near another's, the one that was served least, the first of these; −1 for none."""
    centres, served, seeds = state.centres, state.served, state.seeds
    limit = TWINS * state.float_params[GAMMA]
    found = -1
    for s in range(seeds.size):
        if found < 0 or served[seeds[s]] < served[seeds[found]]:
            for r in range(seeds.size):
                if r != s and squared_distance(centres, s, centres, r, d) < limit * limit:
                    found = s
                    break
    return found


@inline
def move_seed(state: ELOCState, s: int, i: int, room: ELOCScratch) -> None:
    """Begin the neighbourhood of seed s anew, around user i."""
    lend(state, i, -1, state.served[i], room.work.shape[0])
    state.neighbourhood_ids[s] += state.seeds.size
    for z in range(MAX_NEIGHBOURHOODS):
        state.user_neighbourhoods[i, z] = -1
        state.weights[i, z] = 0.0
    state.user_neighbourhoods[i, 0] = state.neighbourhood_ids[s]
    state.weights[i, 0] = 1.0
    state.contributors[s, USERS], state.contributors[s, ROUNDS] = 1, state.served[i]
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[s, q] = state.sums[i, q]
    state.seed_of[state.seeds[s]] = -1
    state.seeds[s] = i
    state.seed_of[i] = s
    renew_centre(state, s, room)


@inline
def reseed(state: ELOCState, i: int, room: ELOCScratch) -> None:
    """Let a seed that another stands in for start anew at a user whom no neighbourhood explains."""
    m = state.served[i]
    if m < RESEED_ROUNDS or m & (m - 1) != 0 or state.seed_of[i] >= 0:
        return
    if room.odds[room.odds.size - 1] > UNEXPLAINED:
        s = twin(state, room.work.shape[0])
        if s >= 0:
            move_seed(state, s, i, room)
