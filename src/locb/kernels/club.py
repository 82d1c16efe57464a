"""CLUB: a graph on the users that only loses edges; users in one connected component share one estimate."""

import math
from typing import NamedTuple

import numpy as np

from locb.arrays import Floats, Ints, Words
from locb.confidence import shrinkage
from locb.jit import borrowing, entry, inlined
from locb.kernels.bits import ONE, flip, trailing_zeros
from locb.kernels.linear import add_observation, expand, learn, pick, score_arms, solve_ridge, squared_distance, usable

T, TIES = 0, 1
ALPHA, ALPHA2 = 0, 1


class GraphState(NamedTuple):
    """What CLUB knows. A component is named after its lowest user."""

    estimates: Floats  # (n, d + p) each user's own θ̂ and A⁻¹
    sums: Floats  # (n, d + p) each user's own b and A − I
    served: Ints  # (n,) m
    width: Floats  # (n,) F(m)
    neighbours: Words  # (n, ⌈n/64⌉) bits: the edges
    component: Ints  # (n,)
    shared: Floats  # (n, d + p) θ̂ and A⁻¹ of the component, in the row of its name
    whole: Ints  # t, ties
    real: Floats  # α, α₂
    generator: Words  # (1,) for random ties


class GraphScratch(NamedTuple):
    """Room for one round."""

    arms: Floats  # (k, d + p)
    scores: Floats  # (k,)
    step: Floats  # (d + p,)
    total: Floats  # (1, d + p)
    room: Floats  # (2d, d)
    queue: Ints  # (n,)
    left: Words  # (⌈n/64⌉,)


@entry
def scratch_for(state: GraphState, n_arms: int, dim: int) -> GraphScratch:
    """Room for rounds of ``n_arms`` arms."""
    columns = state.estimates.shape[1]
    return GraphScratch(
        np.empty((n_arms, columns)),
        np.empty(n_arms),
        np.empty(columns),
        np.empty((1, columns)),
        np.empty((2 * dim, dim)),
        np.empty(state.served.size, np.int64),
        np.empty(state.neighbours.shape[1], np.uint64),
    )


@borrowing
def take_component(state: GraphState, start: int, scratch: GraphScratch) -> int:
    """Walk the component of ``start``, moving its users from scratch.left to scratch.queue; how many there are."""
    neighbours, queue, left = state.neighbours, scratch.queue, scratch.left
    queue[0] = start
    left[start >> 6] ^= ONE << np.uint64(start & 63)
    count = 1
    head = 0
    while head < count:
        u = queue[head]
        head += 1
        for w in range(left.size):
            found = neighbours[u, w] & left[w]
            left[w] ^= found
            while found != 0:
                queue[count] = (w << 6) + trailing_zeros(found)
                count += 1
                found &= found - ONE
    return count


@borrowing
def rename_component(state: GraphState, count: int, scratch: GraphScratch) -> None:
    """Make the first ``count`` users of scratch.queue one component, its estimate solved from their own sums."""
    queue, total, sums = scratch.queue, scratch.total, state.sums
    name = queue[0]
    total[:] = 0.0
    for c in range(count):
        name = min(name, queue[c])
    for c in range(count):
        state.component[queue[c]] = name
        for q in range(total.shape[1]):
            total[0, q] += sums[queue[c], q]
    solve_ridge(total, 0, state.shared, name, scratch.room)


@borrowing
def find_components(state: GraphState, scratch: GraphScratch) -> None:
    """Name and solve every component that still has users in scratch.left."""
    left = scratch.left
    for w in range(left.size):
        while left[w] != 0:
            rename_component(state, take_component(state, (w << 6) + trailing_zeros(left[w]), scratch), scratch)


@borrowing
def split(state: GraphState, i: int, scratch: GraphScratch) -> None:
    """After edges of user i were cut: if its component fell apart, rebuild the pieces."""
    left = scratch.left
    component = state.component
    for w in range(left.size):
        left[w] = np.uint64(0)
    size = 0
    for j in range(component.size):
        if component[j] == component[i]:
            left[j >> 6] |= ONE << np.uint64(j & 63)
            size += 1
    reached = take_component(state, i, scratch)
    if reached < size:
        rename_component(state, reached, scratch)
        find_components(state, scratch)


@inlined
def score(state: GraphState, user: int, contexts: Floats, scratch: GraphScratch) -> None:
    """θ_Vᵀx + α √(xᵀ A_V⁻¹ x · log(t + 1)) of every arm, V the component of the user."""
    log_round = math.log(state.whole[T] + 2.0)  # T rounds are over, so this is round t = T + 1
    row = state.component[user]
    expand(contexts, scratch.arms)
    score_arms(scratch.arms, state.shared, row, contexts.shape[1], state.real[ALPHA], log_round, scratch.scores)


@inlined
def learn_round(state: GraphState, i: int, x: Floats, reward: float, scratch: GraphScratch) -> None:
    """One observation of user i: its own estimate, its component's, then the edges that must go."""
    estimates, widths, neighbours = state.estimates, state.width, state.neighbours
    learn(estimates, i, x, reward, scratch.step)
    add_observation(state.sums, i, x, reward)
    learn(state.shared, state.component[i], x, reward, scratch.step)
    state.whole[T] += 1
    state.served[i] += 1
    widths[i] = shrinkage(state.served[i])
    cut = False
    for w in range(neighbours.shape[1]):
        word = neighbours[i, w]
        while word != 0:
            j = (w << 6) + trailing_zeros(word)
            word &= word - ONE
            reach = state.real[ALPHA2] * (widths[i] + widths[j])
            if squared_distance(estimates, i, estimates, j, x.size) > reach * reach:
                flip(neighbours, i, j)
                flip(neighbours, j, i)
                cut = True
    if cut:
        split(state, i, scratch)


@entry
def rebuild(state: GraphState, dim: int) -> None:
    """Find all components anew, and their estimates from the users' sums."""
    scratch = scratch_for(state, 1, dim)
    scratch.left[:] = np.uint64(0)
    for j in range(state.served.size):
        scratch.left[j >> 6] |= ONE << np.uint64(j & 63)
    find_components(state, scratch)


@entry
def recommend(state: GraphState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    scratch = scratch_for(state, contexts.shape[0], contexts.shape[1])
    score(state, user, contexts, scratch)
    return pick(scratch.scores, state.whole[TIES], state.generator)


@entry
def update(state: GraphState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    learn_round(state, user, x, reward, scratch_for(state, 1, x.size))
    return True


@borrowing
def play_rounds(
    state: GraphState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: GraphScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        score(state, users[t], contexts[t], scratch)
        arm = pick(scratch.scores, state.whole[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry
def play(state: GraphState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, scratch_for(state, contexts.shape[1], contexts.shape[2]))
