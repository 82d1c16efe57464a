"""ELOC: choosing, the lessons of a round one by one, and the loop over rounds."""

import math

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Floats, Ints
from locb.jit import borrowing, entry, part
from locb.kernels.eloc_posterior import believe, solve_centre, width_inside
from locb.kernels.eloc_state import (
    ANSWER,
    BETA,
    BONUS_ROUNDS,
    CENTRE,
    CENTRE_RIDGE,
    EQUATION,
    GAMMA,
    GATE_ROUNDS,
    KEPT,
    LEFT,
    LOG_DET,
    MOVED,
    NOISE,
    NOISE_FLOOR,
    NOISE_LAG,
    OWN,
    POPULATION_EVERY,
    POPULATION_ROUNDS,
    PRECISION,
    RESEED_ROUNDS,
    RIGHT,
    SAME_GROUP,
    SAME_WEIGHT,
    SEEN,
    SHARE_FLOOR,
    SLOTS,
    SPREAD_FLOOR,
    TIES,
    TWINS,
    UNEXPLAINED,
    USER_LAG,
    EvidenceScratch,
    EvidenceState,
    T,
    add_row,
    held,
    refresh_in_turn,
    scratch_for,
    trace,
)
from locb.kernels.linear import (
    add_observation,
    decompose,
    expand,
    pick,
    score_arms,
    solve,
    squared_distance,
    substitute,
    usable,
)


@part
def score(state: EvidenceState, i: int, contexts: Floats, room: EvidenceScratch) -> None:
    """Mean plus bonus of every arm, from what is believed about user i."""
    fading = math.sqrt(BONUS_ROUNDS / (BONUS_ROUNDS + state.served[i]))
    expand(contexts, room.arms)
    score_arms(room.arms, room.rows, ANSWER, contexts.shape[1], state.real[BETA] * fading, 1.0, room.scores)


@part
def move_gate(learned: Floats, seen: int, x: Floats, reward: float, means: Floats) -> None:
    """Each of the three loses by how far its prediction was off; old losses fade."""
    kept = 1.0 - 1.0 / (GATE_ROUNDS * seen)
    first = means.shape[0] - 3  # rows of the means: everyone, the population, the mixture
    for c in range(3):
        error = reward
        for a in range(x.size):
            error -= x[a] * means[first + c, a]
        learned[c] = kept * learned[c] - error * error / (2.0 * learned[NOISE])


@part
def learn_noise(learned: Floats, t: int, x: Floats, reward: float, rows: Floats) -> None:
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
    noise = learned[NOISE]
    told = error * error / (1.0 + max(spread, 0.0) / noise)
    learned[NOISE] = max(noise + 2.0 / (t + NOISE_LAG) * (told - noise), NOISE_FLOOR)


@part
def learn_shares(shares: Floats, odds: Floats, seen: int) -> None:
    """π moves towards the responsibilities of the round."""
    n_seeds = shares.size - 2
    step = 1.0 / (seen + USER_LAG)
    total = 0.0
    for s in range(shares.size):
        floor = SHARE_FLOOR if s >= n_seeds else SHARE_FLOOR / n_seeds
        shares[s] = max(shares[s] + step * (odds[s] - shares[s]), floor)
        total += shares[s]
    for s in range(shares.size):
        shares[s] /= total


@borrowing
def inside_now(rows: Floats, x: Floats, noise: float, square: Floats) -> None:
    """The user's covariance under the population after this round, V: that before it, less what one more arm tells."""
    d = x.size
    for a in range(d):
        rows[LEFT, a] = 0.0
    q = d
    for a in range(d):  # V x, with V of before
        for b in range(a, d):
            inside = rows[OWN, q]
            rows[LEFT, a] += inside * x[b]
            if b > a:
                rows[LEFT, b] += inside * x[a]
            q += 1
    growth = noise
    for a in range(d):
        growth += x[a] * rows[LEFT, a]
    q = d
    for a in range(d):
        factor = rows[LEFT, a] / growth
        for b in range(a, d):
            square[d + a, b] = rows[OWN, q] - factor * rows[LEFT, b]
            square[d + b, a] = square[d + a, b]
            q += 1


@borrowing
def inside_anew(
    sums: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats, work: Floats
) -> None:
    """The same where what the user did has faded meanwhile: from the sums."""
    d = work.shape[0]
    for q in range(rows.shape[1]):
        rows[LEFT, q] = sums[i, q] / noise + population[PRECISION, q]
    solve(rows, LEFT, rows, RIGHT, work)
    q = d
    for a in range(d):
        for b in range(a, d):
            square[d + a, b] = rows[RIGHT, q]
            square[d + b, a] = rows[RIGHT, q]
            q += 1


@borrowing
def learn_terms(
    sums: Floats, terms: Floats, i: int, noise: float, population: Floats, rows: Floats, square: Floats
) -> None:
    """Replace what user i adds to the least squares for μ_0: Σ_0⁻¹ − Σ_0⁻¹ V Σ_0⁻¹ and Σ_0⁻¹ V b / σ².

    V is the user's covariance under the population after this round, in the lower half of the square.
    """
    d = square.shape[1]
    q = d
    for a in range(d):
        for b in range(a, d):
            square[a, b] = population[PRECISION, q]
            square[b, a] = population[PRECISION, q]
            q += 1
    size = 0.0
    q = d
    for a in range(d):
        for h in range(d):
            rows[RIGHT, h] = 0.0
        for b in range(d):  # a row of Σ_0⁻¹ V
            for h in range(d):
                rows[RIGHT, h] += square[a, b] * square[d + b, h]
        total = 0.0
        for h in range(d):
            total += rows[RIGHT, h] * sums[i, h]
        rows[LEFT, a] = total / noise
        size += abs(rows[LEFT, a])
        for b in range(a, d):
            total = square[a, b]
            for h in range(d):
                total -= rows[RIGHT, h] * square[h, b]
            rows[LEFT, q] = total
            size += abs(total)
            q += 1
    fits = size < 1e30  # rewards of absurd size: such a user says nothing about μ_0
    for q in range(rows.shape[1]):
        population[EQUATION, q] -= terms[i, q]
        terms[i, q] = rows[LEFT, q] if fits else 0.0
        population[EQUATION, q] += terms[i, q]


@borrowing
def learn_population(population: Floats, seen: int, rows: Floats, work: Floats) -> float:
    """Σ_0 moves towards the spread of the served user around μ_0; then μ_0 by least squares over all users.

    Returns log det Σ_0.
    """
    d = work.shape[0]
    step = 1.0 / (seen + USER_LAG)
    q = d
    for a in range(d):
        apart = rows[OWN, a] - population[CENTRE, a]
        for b in range(a, d):
            told = rows[OWN, q] + apart * (rows[OWN, b] - population[CENTRE, b])
            if a == b:
                told += SPREAD_FLOOR
            population[CENTRE, q] += step * (told - population[CENTRE, q])
            q += 1
    for q in range(rows.shape[1]):
        rows[LEFT, q] = population[EQUATION, q]
    q = d
    for a in range(d):
        rows[LEFT, q] += CENTRE_RIDGE
        q += d - a
    decompose(rows, LEFT, work)
    substitute(rows, LEFT, population, CENTRE, work)
    # Solving Σ_0 z = μ_0 leaves Σ_0⁻¹ μ_0 and Σ_0⁻¹.
    return solve(population, CENTRE, population, PRECISION, work)


@part
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


@part
def learn_sums(state: EvidenceState, i: int, x: Floats, reward: float, odds: Floats) -> None:
    """The observation, the new weights, and the neighbourhoods' sums, which always equal Σ q (b, G) of what is kept.

    What is taken out is what was put in, to the last bit, also where rows are kept in float32.
    """
    pooled, sums, weights, moved = state.pooled, state.sums, state.weights, state.moved
    n_seeds = state.seeds.size
    d = x.size
    size = trace(sums, i, d)
    for z in range(SLOTS):
        s = held(state, i, z)
        if s >= 0:
            add_row(pooled, s, sums, i, -weights[i, z])
            moved[s] -= weights[i, z] * size
    add_row(pooled, n_seeds, sums, i, -1.0)
    moved[n_seeds] -= size
    keep_weights(state.slots, weights, state.names, i, odds, state.seed_of[i])
    for q in range(sums.shape[1]):
        sums[i, q] *= state.real[KEPT]
    add_observation(sums, i, x, reward)
    size = trace(sums, i, d)
    for z in range(SLOTS):
        s = held(state, i, z)
        if s >= 0:
            add_row(pooled, s, sums, i, weights[i, z])
            moved[s] += weights[i, z] * size
    add_row(pooled, n_seeds, sums, i, 1.0)
    moved[n_seeds] += size


@part
def renew_centre(state: EvidenceState, s: int, room: EvidenceScratch) -> None:
    """Solve for one centre."""
    rows, noise = room.rows, state.learned[NOISE]
    state.moved[s] = 0.0
    for q in range(rows.shape[1]):
        rows[LEFT, q] = state.pooled[s, q] + noise * state.population[PRECISION, q]
    inside = width_inside(state, s, room.work.shape[0])
    state.levels[s] = solve_centre(rows, noise, inside, state.centres, s, room.work)


@part
def renew_centres(state: EvidenceState, room: EvidenceScratch) -> None:
    """Solve for the centres whose sums have moved enough, and for one in turn, which σ², Σ_0 and μ_0 moved too."""
    d = room.work.shape[0]
    turn = state.whole[T] % state.levels.size
    for s in range(state.levels.size):
        if s == turn or abs(state.moved[s]) > MOVED * max(trace(state.pooled, s, d), 0.0):
            renew_centre(state, s, room)


@part
def twin(state: EvidenceState, d: int) -> int:
    """Of the seeds whose centre is near another's, the one that was served least, the first of these; −1 for none."""
    centres, served, seeds = state.centres, state.served, state.seeds
    limit = TWINS * state.real[GAMMA]
    found = -1
    for s in range(seeds.size):
        if found < 0 or served[seeds[s]] < served[seeds[found]]:
            for r in range(seeds.size):
                if r != s and squared_distance(centres, s, centres, r, d) < limit * limit:
                    found = s
                    break
    return found


@part
def move_seed(state: EvidenceState, s: int, i: int, room: EvidenceScratch) -> None:
    """Begin the neighbourhood of seed s anew, around user i."""
    pooled, sums, slots, weights, moved = state.pooled, state.sums, state.slots, state.weights, state.moved
    d = room.work.shape[0]
    state.names[s] += state.seeds.size
    size = trace(sums, i, d)
    for z in range(SLOTS):
        r = held(state, i, z)
        if r >= 0:
            add_row(pooled, r, sums, i, -weights[i, z])
            moved[r] -= weights[i, z] * size
        slots[i, z] = -1
        weights[i, z] = 0.0
    slots[i, 0] = state.names[s]
    weights[i, 0] = 1.0
    for q in range(pooled.shape[1]):
        pooled[s, q] = sums[i, q]
    state.seed_of[state.seeds[s]] = -1
    state.seeds[s] = i
    state.seed_of[i] = s
    renew_centre(state, s, room)


@part
def reseed(state: EvidenceState, i: int, room: EvidenceScratch) -> None:
    """Let a seed that another stands in for start anew at a user whom no neighbourhood explains."""
    m = state.served[i]
    if m < RESEED_ROUNDS or m & (m - 1) != 0 or state.seed_of[i] >= 0:
        return
    if room.odds[room.odds.size - 1] > UNEXPLAINED:
        s = twin(state, room.work.shape[0])
        if s >= 0:
            move_seed(state, s, i, room)


@borrowing
def learn_round(state: EvidenceState, i: int, x: Floats, reward: float, room: EvidenceScratch) -> None:
    """One observation of user i, about whom the scratch holds what was believed before it."""
    whole, learned, population, rows = state.whole, state.learned, state.population, room.rows
    whole[T] += 1
    if state.served[i] == 0:
        whole[SEEN] += 1
    state.served[i] += 1
    move_gate(learned, whole[SEEN], x, reward, room.means)
    learn_sums(state, i, x, reward, room.odds)
    if state.served[i] <= POPULATION_ROUNDS or state.served[i] % POPULATION_EVERY == 0:
        if state.real[KEPT] < 1.0:
            inside_anew(state.sums, i, learned[NOISE], population, rows, room.square, room.work)
        else:
            inside_now(rows, x, learned[NOISE], room.square)
        learn_terms(state.sums, state.terms, i, learned[NOISE], population, rows, room.square)
        learned[LOG_DET] = learn_population(population, whole[SEEN], rows, room.work)
    learn_noise(learned, whole[T], x, reward, rows)
    learn_shares(state.shares, room.odds, whole[SEEN])
    renew_centres(state, room)
    reseed(state, i, room)
    refresh_in_turn(state)


@entry
def recommend(state: EvidenceState, user: int, contexts: Floats) -> int:
    """The arm for one user now; −1 if a context is not usable."""
    if not usable(contexts.ravel()):
        return -1
    room = scratch_for(state, contexts.shape[0], contexts.shape[1])
    believe(state, user, room)
    score(state, user, contexts, room)
    return pick(room.scores, state.whole[TIES], state.generator)


@entry
def update(state: EvidenceState, user: int, x: Floats, reward: float) -> bool:
    """Learn one observation; False, and nothing learned, if the context is not usable."""
    if not usable(x):
        return False
    room = scratch_for(state, 1, x.size)
    believe(state, user, room)
    learn_round(state, user, x, reward, room)
    return True


@borrowing
def play_rounds(
    state: EvidenceState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, room: EvidenceScratch
) -> None:
    """The loop of ``play``."""
    for t in range(users.size):
        believe(state, users[t], room)
        score(state, users[t], contexts[t], room)
        arm = pick(room.scores, state.whole[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], room)


@entry
def play(state: EvidenceState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Recommend and learn, round after round."""
    play_rounds(state, users, contexts, rewards, chosen, scratch_for(state, contexts.shape[1], contexts.shape[2]))


@entry
def renew(state: EvidenceState, dim: int) -> None:
    """Work out Σ_0⁻¹ and all centres from the sums."""
    room = scratch_for(state, 1, dim)
    state.learned[LOG_DET] = solve(state.population, CENTRE, state.population, PRECISION, room.work)
    state.moved[:] = 1.0
    renew_centres(state, room)


@entry
def beliefs(state: EvidenceState, users: Ints, dim: int) -> Floats:
    """Rows (θ̄, V̄) of these users: (u, d + p)."""
    room = scratch_for(state, 1, dim)
    rows = np.empty((users.size, state.sums.shape[1]))
    for u in range(users.size):
        believe(state, users[u], room)
        rows[u] = room.rows[ANSWER]
    return rows


@entry
def groups(state: EvidenceState, n_users: int, dim: int) -> NDArray[np.bool_]:
    """Whom each neighbourhood, and everyone's component, explains nearly as well as the best: (K + 1, n)."""
    room = scratch_for(state, 1, dim)
    n_seeds = state.seeds.size
    inside = np.empty((n_seeds + 1, n_users), np.bool_)
    for i in range(n_users):
        believe(state, i, room)
        best = room.evidence.max()
        for s in range(n_seeds + 1):
            inside[s, i] = room.evidence[s] >= best - SAME_GROUP
        if state.seed_of[i] >= 0:
            inside[state.seed_of[i], i] = True
    return inside
