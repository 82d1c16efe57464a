"""LOCB's round: score, choose, learn, cluster; and the loop over rounds."""

import math

import numpy as np

from locb.arrays import Floats, Ints
from locb.confidence import ELLIPSOID, THEORY, width
from locb.jit import borrowing, entry, part
from locb.kernels.bits import ONE, flip, trailing_zeros
from locb.kernels.linear import learn, pick, usable
from locb.kernels.locb_clustering import cluster
from locb.kernels.locb_scores import keep_departures, renew_departures, score
from locb.kernels.locb_state import (
    DELTA,
    MIN_EIGENVALUE,
    N_USERS,
    RADIUS,
    SIGMA,
    TIES,
    UNREFRESHED,
    LearnScratch,
    LocalState,
    PullScratch,
    T,
    find_distinct,
    learn_scratch,
    pull_scratch,
    refresh_sums,
)
from locb.kernels.solving import largest_eigenvalue

REFRESH_ROUNDS = 16_384  # within this many rounds, or 64 a user if that is more, all sums are added up anew


@part
def user_width(state: LocalState, i: int, d: int, room: Floats) -> float:
    """The width of user i's radius, from what is known of i now."""
    whole = state.whole
    real = state.real
    largest = largest_eigenvalue(state.estimates, i, room) if whole[RADIUS] == ELLIPSOID else 0.0
    return width(
        whole[RADIUS],
        state.served[i],
        whole[N_USERS],
        d,
        real[SIGMA],
        real[DELTA],
        real[MIN_EIGENVALUE],
        state.log_det[i],
        largest,
    )


@part
def refresh_in_turn(state: LocalState) -> None:
    """Now and then add the sums of one set up anew: in ``cycle`` rounds all sets have their turn, evenly spaced."""
    whole = state.whole
    n_seeds = state.seeds.size
    cycle = max(REFRESH_ROUNDS, 64 * whole[N_USERS])
    before = whole[UNREFRESHED] * n_seeds // cycle
    whole[UNREFRESHED] += 1
    turn = whole[UNREFRESHED] * n_seeds // cycle
    if turn > before:
        refresh_sums(state, before)
    if whole[UNREFRESHED] >= cycle:
        whole[UNREFRESHED] = 0


@part
def learn_round(state: LocalState, i: int, x: Floats, reward: float, scratch: LearnScratch) -> None:
    """One observation of user i: the estimate, the sums of the sets that hold i, then the clusters."""
    d = x.size
    step = scratch.step
    sums, sets_of, whole = state.sums, state.sets_of, state.whole
    growth = learn(state.estimates, i, x, reward, step)
    whole[T] += 1
    state.served[i] += 1
    newly = state.served[i] == 1
    q = d
    for a in range(d):
        state.departure[state.seeds.size] -= step[q]  # of rank one, the step of A⁻¹ has minus its trace for a norm
        q += d - a
    if whole[RADIUS] == ELLIPSOID:
        state.log_det[i] += math.log(growth)
    state.width[i] = user_width(state, i, d, scratch.room)
    seed = state.seed_of[i]
    if seed >= 0:
        for q in range(d):
            state.seed_points[q, seed] = state.estimates[i, q]
        state.seed_points[d, seed] = state.width[i]
    for w in range(sets_of.shape[1]):
        word = sets_of[i, w]
        while word != 0:
            s = (w << 6) + trailing_zeros(word)
            for q in range(step.size):
                sums[s, q] += step[q]
            state.unserved[s] -= newly
            state.observed[s] += 1
            word &= word - ONE
    cluster(state, i, d, scratch)
    refresh_in_turn(state)
    keep_departures(state, d)


@entry
def recommend(state: LocalState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    scratch = pull_scratch(state, contexts.shape[0], contexts.shape[1])
    score(state, user, contexts, scratch)
    return pick(scratch.scores, state.whole[TIES], state.generator)


@entry
def update(state: LocalState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    learn_round(state, user, x, reward, learn_scratch(state, x.size))
    return True


@borrowing
def play_rounds(
    state: LocalState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    pull: PullScratch,
    lesson: LearnScratch,
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        score(state, users[t], contexts[t], pull)
        arm = pick(pull.scores, state.whole[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], lesson)


@entry
def play(state: LocalState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    pull = pull_scratch(state, contexts.shape[1], contexts.shape[2])
    play_rounds(state, users, contexts, rewards, chosen, pull, learn_scratch(state, contexts.shape[2]))


@entry
def renew_widths(state: LocalState, start: int, stop: int, dim: int) -> None:
    """Work out the widths of the users from start to stop − 1 anew, and those of the seeds among them."""
    room = np.empty((dim + 3, dim))
    for i in range(start, stop):
        state.width[i] = user_width(state, i, dim, room)
        if state.seed_of[i] >= 0:
            state.seed_points[dim, state.seed_of[i]] = state.width[i]


@entry
def join(state: LocalState, old: int, new: int, dim: int) -> None:
    """Let the users from old to new − 1 in: into every active set. Their rows must be blank, and there."""
    whole = state.whole
    whole[N_USERS] = new
    rests_on_n = whole[RADIUS] == THEORY or whole[RADIUS] == ELLIPSOID
    renew_widths(state, 0 if rests_on_n else old, new, dim)
    for i in range(old, new):
        state.joined[i] = whole[T]
        for w in range(state.active.size):
            word = state.active[w]
            state.sets_of[i, w] = word
            while word != 0:
                s = (w << 6) + trailing_zeros(word)
                word &= word - ONE
                flip(state.members, s, i)
                state.sizes[s] += 1
                state.unserved[s] += 1
                state.departure[s] += 1.0001 / state.sizes[s]
                state.hashes[s] ^= state.words[i]
                state.witness[s] = -1  # a radius may shrink when n grows, so no witness is known to hold
                for q in range(state.sums.shape[1]):
                    state.sums[s, q] += state.estimates[i, q]
    find_distinct(state, learn_scratch(state, dim).table)
    if old < state.many[0]:
        renew_departures(state, dim)  # they are not kept below that


@entry
def settle(state: LocalState, dim: int) -> None:
    """Work out from estimates, counts and members what else is known of the sets: all of it was set from outside."""
    sets_of, members, words = state.sets_of, state.members, state.words
    state.sizes[:] = 0
    state.unserved[:] = 0
    state.observed[:] = 0
    state.hashes[:] = np.uint64(0)
    for w in range(members.shape[1]):  # 64 users at a time, so that their rows stay at hand
        for s in range(members.shape[0]):
            word = members[s, w]
            while word != 0:
                j = (w << 6) + trailing_zeros(word)
                word &= word - ONE
                flip(sets_of, j, s)
                state.sizes[s] += 1
                state.unserved[s] += state.served[j] == 0
                state.observed[s] += state.served[j]
                state.hashes[s] ^= words[j]
    renew_widths(state, 0, state.whole[N_USERS], dim)
    find_distinct(state, learn_scratch(state, dim).table)
    renew_departures(state, dim)
