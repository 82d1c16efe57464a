"""SCLUB: sets of users that split and merge; users in one set share one estimate."""

from typing import NamedTuple

import numpy as np

from locb.arrays import Floats, Ints, Words
from locb.confidence import shrinkage
from locb.jit import borrowing, entry, inlined
from locb.kernels.linear import add_observation, expand, learn, pick, score_arms, solve_ridge, squared_distance, usable

# Places in the two short arrays of a state.
T, PHASE, PHASE_END, SLOTS, MOST_SERVED, TIES = 0, 1, 2, 3, 4, 5
ALPHA, ALPHA_THETA, ALPHA_P, WAKE = 0, 1, 2, 3


class SetState(NamedTuple):
    """What SCLUB knows. A cluster lives in a slot; slots are reused, the lowest free one first."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    checked: Ints  # (n,) 1 once served in this phase
    slot: Ints  # (n,) the user's cluster
    shared: Floats  # (n, d + p) θ̂ and A⁻¹ of the cluster in each slot
    shared_sums: Floats  # (n, d + p) its b and S
    shared_served: Ints  # (n,) its T
    sizes: Ints  # (n,) its users; 0 for a free slot
    unchecked: Ints  # (n,) its users not yet served in this phase
    moved: Ints  # (n,) 1 if it may have come close to another since the last look
    phase_theta: Floats  # (n, d) its θ̂ when the phase began
    phase_served: Ints  # (n,) its T then
    whole: Ints  # t, phase, last round of the phase, slots in use, most rounds of any user, ties
    real: Floats  # α, α_θ, α_p; the smallest difference of mean rounds that alone keeps two clusters apart
    generator: Words  # (1,) for random ties


class SetScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    room: Floats  # (2d, d)
    queue: Ints  # (n,)


@entry
def scratch_for(state: SetState, n_arms: int, dim: int) -> SetScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return SetScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((2 * dim, dim)),
        np.empty(state.served.size, np.int64),
    )


@borrowing
def begin_phase(state: SetState, room: Floats) -> None:
    """Phase s lasts 2^s rounds: nobody is checked, and every cluster remembers where it stands."""
    whole = state.whole
    whole[PHASE] += 1
    whole[PHASE_END] += 1 << whole[PHASE]
    state.checked[:] = 0
    for c in range(whole[SLOTS]):
        if state.sizes[c] == 0:
            continue
        solve_ridge(state.shared_sums, c, state.shared, c, room)
        state.unchecked[c] = state.sizes[c]
        state.phase_served[c] = state.shared_served[c]
        for q in range(room.shape[1]):
            state.phase_theta[c, q] = state.shared[c, q]


@borrowing
def is_served_unlike(state: SetState, i: int) -> bool:
    """Whether some user of i's cluster is served much more or much less often than i."""
    t = state.whole[T]
    limit = 2.0 * state.real[ALPHA_P] * shrinkage(t)
    if state.whole[MOST_SERVED] / t <= limit:  # then no two users can differ by more
        return False
    for j in range(state.served.size):
        if state.slot[j] == state.slot[i] and abs(state.served[i] / t - state.served[j] / t) > limit:
            return True
    return False


@borrowing
def split_off(state: SetState, i: int, room: Floats) -> None:
    """Give user i a cluster of its own; the rest is added up anew, so that nothing is counted twice."""
    old = state.slot[i]
    new = 0
    while new < state.whole[SLOTS] and state.sizes[new] > 0:
        new += 1
    state.whole[SLOTS] = max(state.whole[SLOTS], new + 1)
    state.slot[i] = new
    state.sizes[new] = 1
    state.sizes[old] -= 1
    state.shared_served[new] = state.served[i]
    state.shared_served[old] -= state.served[i]
    state.unchecked[new] = 1 - state.checked[i]
    state.unchecked[old] -= state.unchecked[new]
    state.phase_served[new] = state.phase_served[old]
    for q in range(room.shape[1]):
        state.phase_theta[new, q] = state.phase_theta[old, q]
    for q in range(state.sums.shape[1]):
        state.shared_sums[new, q] = state.sums[i, q]
        state.shared[new, q] = state.estimates[i, q]
        state.shared_sums[old, q] = 0.0
    for j in range(state.slot.size):
        if state.slot[j] == old:
            for q in range(state.sums.shape[1]):
                state.shared_sums[old, q] += state.sums[j, q]
    solve_ridge(state.shared_sums, old, state.shared, old, room)
    state.moved[new] = 1
    state.moved[old] = 1


@borrowing
def merge_if_close(state: SetState, a: int, b: int, room: Floats) -> bool:
    """Merge cluster b into cluster a if both are checked and alike."""
    sizes, shared_served = state.sizes, state.shared_served
    if sizes[a] == 0 or sizes[b] == 0 or state.unchecked[a] > 0 or state.unchecked[b] > 0:
        return False
    t = state.whole[T]
    reach = 0.5 * state.real[ALPHA_THETA] * (shrinkage(shared_served[a]) + shrinkage(shared_served[b]))
    if not squared_distance(state.shared, a, state.shared, b, room.shape[1]) < reach * reach:
        return False
    difference = abs(shared_served[a] / sizes[a] - shared_served[b] / sizes[b])
    if not difference / t < state.real[ALPHA_P] * shrinkage(t):
        state.real[WAKE] = min(state.real[WAKE], difference)
        return False
    for j in range(state.slot.size):
        if state.slot[j] == b:
            state.slot[j] = a
    sizes[a] += sizes[b]
    shared_served[a] += shared_served[b]
    sizes[b] = 0
    for q in range(state.sums.shape[1]):
        state.shared_sums[a, q] += state.shared_sums[b, q]
    solve_ridge(state.shared_sums, a, state.shared, a, room)
    return True


@inlined
def merge(state: SetState, room: Floats, queue: Ints) -> None:
    """Look at the pairs of clusters in the order of their slots and merge those that are alike.

    A pair of which neither has moved gives the answer it gave before, but for one thing: the allowed difference of
    frequencies, times t, grows. WAKE is the smallest difference that stood in the way of a merge; once it is
    allowed, every pair is looked at.
    """
    whole, moved, sizes, unchecked = state.whole, state.moved, state.sizes, state.unchecked
    everyone = state.real[ALPHA_P] * shrinkage(whole[T]) * whole[T] > state.real[WAKE]
    if everyone:
        state.real[WAKE] = np.inf
    count = 0
    for c in range(whole[SLOTS]):
        if everyone and sizes[c] > 0:
            moved[c] = 1
        if moved[c] == 1:
            if sizes[c] > 0 and unchecked[c] == 0:
                queue[count] = c
                count += 1
            else:
                moved[c] = 0  # it is looked at when its last user is checked
    if count == 0:
        return
    for a in range(whole[SLOTS]):
        if sizes[a] == 0 or unchecked[a] > 0:
            continue
        b = a
        place = 0
        merged = moved[a] == 1
        grown = False
        while True:
            if merged:
                b += 1
                if b >= whole[SLOTS]:
                    break
            else:
                while place < count and queue[place] <= a:
                    place += 1
                if place == count:
                    break
                b = queue[place]
                place += 1
            if merge_if_close(state, a, b, room):
                merged = True
                grown = True
        if grown:
            moved[a] = 2  # pairs with the slots below were looked at before it grew: look again next round
    for c in range(whole[SLOTS]):
        moved[c] = 1 if moved[c] == 2 and sizes[c] > 0 else 0
    while whole[SLOTS] > 0 and sizes[whole[SLOTS] - 1] == 0:
        whole[SLOTS] -= 1


@inlined
def score(state: SetState, user: int, contexts: Floats, scratch: SetScratch) -> None:
    """θ̂ᵀx + α √(xᵀ (I + S)⁻¹ x) of every arm, from the cluster of the user."""
    row = state.slot[user]
    expand(contexts, scratch.arms)
    score_arms(scratch.arms, state.shared, row, contexts.shape[1], state.real[ALPHA], 1.0, scratch.scores)


@inlined
def learn_round(state: SetState, i: int, x: Floats, reward: float, scratch: SetScratch) -> None:
    """One observation of user i: its own estimate, its cluster's, then the split and the merges."""
    d = x.size
    whole, real = state.whole, state.real
    if whole[T] == whole[PHASE_END]:
        begin_phase(state, scratch.room)
    row = state.slot[i]
    learn(state.estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    learn(state.shared, row, x, reward, scratch.step)
    add_observation(state.shared_sums, row, x, reward)
    whole[T] += 1
    state.served[i] += 1
    state.shared_served[row] += 1
    whole[MOST_SERVED] = max(whole[MOST_SERVED], state.served[i])
    state.moved[row] = 1
    if state.sizes[row] > 1:
        reach = real[ALPHA_THETA] * (shrinkage(state.served[i]) + shrinkage(state.phase_served[row]))
        far = squared_distance(state.estimates, i, state.phase_theta, row, d) > reach * reach
        if far or is_served_unlike(state, i):
            split_off(state, i, scratch.room)
    if state.checked[i] == 0:
        state.checked[i] = 1
        state.unchecked[state.slot[i]] -= 1
    merge(state, scratch.room, scratch.queue)


@entry
def recommend(state: SetState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    scratch = scratch_for(state, contexts.shape[0], contexts.shape[1])
    score(state, user, contexts, scratch)
    return pick(scratch.scores, state.whole[TIES], state.generator)


@entry
def update(state: SetState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    learn_round(state, user, x, reward, scratch_for(state, 1, x.size))
    return True


@borrowing
def play_rounds(
    state: SetState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: SetScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        score(state, users[t], contexts[t], scratch)
        arm = pick(scratch.scores, state.whole[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry
def play(state: SetState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, scratch_for(state, contexts.shape[1], contexts.shape[2]))
