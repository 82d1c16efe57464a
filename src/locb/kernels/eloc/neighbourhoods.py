"""ELOC's neighbourhoods: whose rewards are lent to which, where their centres are, and seeds that move."""

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline
from locb.kernels.common.linear_algebra import add_observation, packed_trace, squared_distance
from locb.kernels.eloc.posterior import solve_centre, width_inside
from locb.kernels.eloc.state import (
    GAMMA,
    KEPT,
    LEFT,
    MOVED,
    NOISE,
    PRECISION,
    RESEED_ROUNDS,
    ROUNDS,
    SAME_WEIGHT,
    SLOTS,
    TWINS,
    UNEXPLAINED,
    USERS,
    EvidenceScratch,
    EvidenceState,
    T,
    add_row,
    held,
)


@inline
def keep_weights(slots: NDArray[np.int32], weights: Floats, names: Ints, i: int, odds: Floats, own: int) -> None:
    """Keep the largest responsibilities of user i as q, 0 for all others; a seed weighs 1 in its own neighbourhood.

    Equal weights are kept in the order of the seeds, from a different one on for each user, so that at the start, when
    all neighbourhoods look alike, users spread over them.
    """
    n_seeds = odds.size - 2
    for z in range(SLOTS):
        slots[i, z] = -1
        weights[i, z] = 0.0
    first = 0
    if own >= 0:
        slots[i, 0] = own
        weights[i, 0] = 1.0
        first = 1
    s = i % n_seeds
    for _ in range(n_seeds):
        if odds[s] > 0.0 and s != own:
            z = SLOTS
            while z > first and (slots[i, z - 1] < 0 or odds[s] > odds[slots[i, z - 1]] * (1.0 + SAME_WEIGHT)):
                z -= 1
            for y in range(SLOTS - 1, z, -1):
                slots[i, y] = slots[i, y - 1]
                weights[i, y] = weights[i, y - 1]
            if z < SLOTS:
                slots[i, z] = s
                weights[i, z] = odds[s]
        s += 1
        if s == n_seeds:
            s = 0
    for z in range(SLOTS):
        if slots[i, z] >= 0:
            slots[i, z] = names[slots[i, z]]


@inline
def lend(state: EvidenceState, i: int, sign: int, rounds: int, d: int) -> None:
    """Put what user i did in so many rounds into the sums of its neighbourhoods, by its weights, or take it out."""
    size = packed_trace(state.sums, i, d)
    for z in range(SLOTS):
        s = held(state, i, z)
        if s >= 0:
            share = sign * state.weights[i, z]
            add_row(state.pooled, s, state.sums, i, share)
            state.moved[s] += share * size
            state.lent[s, USERS] += sign
            state.lent[s, ROUNDS] += sign * rounds


@inline
def learn_sums(state: EvidenceState, i: int, x: Floats, reward: float, odds: Floats) -> None:
    """The observation, the new weights, and the neighbourhoods' sums, which always equal Σ q (b, G) of what is kept.

    What is taken out is what was put in, to the last bit, also where rows are kept in float32.
    """
    sums, everyone = state.sums, state.seeds.size
    d = x.size
    lend(state, i, -1, state.served[i] - 1, d)  # this round is counted already
    add_row(state.pooled, everyone, sums, i, -1.0)
    state.moved[everyone] -= packed_trace(sums, i, d)
    keep_weights(state.slots, state.weights, state.names, i, odds, state.seed_of[i])
    for q in range(sums.shape[1]):
        sums[i, q] *= state.float_params[KEPT]
    add_observation(sums, i, x, reward)
    lend(state, i, 1, state.served[i], d)
    add_row(state.pooled, everyone, sums, i, 1.0)
    state.moved[everyone] += packed_trace(sums, i, d)


@inline
def renew_centre(state: EvidenceState, s: int, room: EvidenceScratch) -> None:
    """Solve for one centre."""
    rows, noise = room.rows, state.learned[NOISE]
    state.moved[s] = 0.0
    for q in range(rows.shape[1]):
        rows[LEFT, q] = state.pooled[s, q] + noise * state.population[PRECISION, q]
    inside = width_inside(state, s, room.work.shape[0])
    state.levels[s] = solve_centre(rows, noise, inside, state.centres, s, room.work)


@inline
def renew_centres(state: EvidenceState, room: EvidenceScratch) -> None:
    """Solve for the centres whose sums have moved enough, and for one in turn, which σ², Σ_0 and μ_0 moved too."""
    d = room.work.shape[0]
    turn = state.int_params[T] % state.levels.size
    for s in range(state.levels.size):
        if s == turn or abs(state.moved[s]) > MOVED * max(packed_trace(state.pooled, s, d), 0.0):
            renew_centre(state, s, room)


@inline
def twin(state: EvidenceState, d: int) -> int:
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
def move_seed(state: EvidenceState, s: int, i: int, room: EvidenceScratch) -> None:
    """Begin the neighbourhood of seed s anew, around user i."""
    lend(state, i, -1, state.served[i], room.work.shape[0])
    state.names[s] += state.seeds.size
    for z in range(SLOTS):
        state.slots[i, z] = -1
        state.weights[i, z] = 0.0
    state.slots[i, 0] = state.names[s]
    state.weights[i, 0] = 1.0
    state.lent[s, USERS], state.lent[s, ROUNDS] = 1, state.served[i]
    for q in range(state.pooled.shape[1]):
        state.pooled[s, q] = state.sums[i, q]
    state.seed_of[state.seeds[s]] = -1
    state.seeds[s] = i
    state.seed_of[i] = s
    renew_centre(state, s, room)


@inline
def reseed(state: EvidenceState, i: int, room: EvidenceScratch) -> None:
    """Let a seed that another stands in for start anew at a user whom no neighbourhood explains."""
    m = state.served[i]
    if m < RESEED_ROUNDS or m & (m - 1) != 0 or state.seed_of[i] >= 0:
        return
    if room.odds[room.odds.size - 1] > UNEXPLAINED:
        s = twin(state, room.work.shape[0])
        if s >= 0:
            move_seed(state, s, i, room)
