"""ELOC's neighbourhoods: the users' weights, the pooled sums, the centres, and seeds that move or become inactive.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import dot
from locb.kernels.common.linear_algebra import count_used, packed_trace, solve, squared_distance
from locb.kernels.eloc.evidence import neighbourhood_in_slot, solve_centre, within_variance
from locb.kernels.eloc.state import (
    EQUAL_WEIGHT_TOLERANCE,
    INITIAL_PRIOR_WEIGHTS,
    LEAST_SQUARES,
    MAX_NEIGHBOURHOODS,
    MERGE_INTERVAL,
    NOISE,
    PRECISION,
    RECENTRE_CHANGE,
    REDUNDANT_DISTANCE,
    RESEED_ROUNDS,
    RETENTION,
    ROUNDS,
    SOLUTION,
    SYSTEM,
    TWIN_DISTANCE,
    TWIN_EVIDENCE_GAP,
    UNEXPLAINED_RESPONSIBILITY,
    USERS,
    ELOCScratch,
    ELOCState,
    T,
)


@inline
def add_scaled_row(rows: Floats, i: int, others: Floats, j: int, factor: float) -> None:
    """Add a multiple of row j of ``others`` to row i of ``rows``."""
    for q in range(rows.shape[1]):
        rows[i, q] += factor * others[j, q]


@inline
def add_observation(sums: Floats, i: int, first: int, x: Floats, reward: float) -> None:
    """Add one observation to the block of row i of ``sums`` that starts at column ``first``."""
    d = x.size
    q = first + d
    for a in range(d):
        sums[i, first + a] += reward * x[a]
        for b in range(a, d):
            sums[i, q] += x[a] * x[b]
            q += 1


@no_alloc
def refresh_sums(state: ELOCState, row: int) -> None:
    """Recompute one row of sums from the users: of a neighbourhood, everyone (row K), or the least squares for μ_0.

    The least squares for μ_0 are row K + 1.
    """
    n_seeds = state.seeds.size
    if row > n_seeds:
        for q in range(state.population.shape[1]):
            state.population[LEAST_SQUARES, q] = 0.0
        for i in range(state.n_users[0]):
            add_scaled_row(state.population, LEAST_SQUARES, state.centre_terms, i, 1.0)
        return
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[row, q] = 0.0
    for i in range(state.n_users[0]):
        if row == n_seeds:
            add_scaled_row(state.pooled_sums, row, state.sums, i, 1.0)
            continue
        for z in range(MAX_NEIGHBOURHOODS):
            if neighbourhood_in_slot(state, i, z) == row:
                add_scaled_row(state.pooled_sums, row, state.sums, i, state.weights[i, z])


@inline
def store_weights(
    user_neighbourhoods: NDArray[np.int32],
    weights: Floats,
    neighbourhood_ids: Ints,
    components: Ints,
    i: int,
    responsibilities: Floats,
    own: int,
) -> None:
    """Store the largest responsibilities for user i as the weights q of i.

    ``own`` is the neighbourhood of which i is the seed user, or −1. In this neighbourhood, i has weight 1. Equal
    weights are ordered by seed, starting at seed i mod K. This order distributes the users over neighbourhoods that are
    still equal.
    """
    n_seeds = responsibilities.size - 2
    for z in range(MAX_NEIGHBOURHOODS):
        user_neighbourhoods[i, z] = -1
        weights[i, z] = 0.0
    first = 0
    if own >= 0:
        user_neighbourhoods[i, 0] = own
        weights[i, 0] = 1.0
        first = 1
    count = components[0] - 2
    c = 1
    while c <= count and components[c] < i % n_seeds:
        c += 1
    for _ in range(count):
        c = c if c <= count else 1
        s = components[c]
        c += 1
        if responsibilities[s] > 0.0 and s != own:
            z = MAX_NEIGHBOURHOODS
            while z > first and (
                user_neighbourhoods[i, z - 1] < 0
                or responsibilities[s]
                > responsibilities[user_neighbourhoods[i, z - 1]] * (1.0 + EQUAL_WEIGHT_TOLERANCE)
            ):
                z -= 1
            for y in range(MAX_NEIGHBOURHOODS - 1, z, -1):
                user_neighbourhoods[i, y] = user_neighbourhoods[i, y - 1]
                weights[i, y] = weights[i, y - 1]
            if z < MAX_NEIGHBOURHOODS:
                user_neighbourhoods[i, z] = s
                weights[i, z] = responsibilities[s]
    for z in range(MAX_NEIGHBOURHOODS):
        if user_neighbourhoods[i, z] >= 0:
            user_neighbourhoods[i, z] = neighbourhood_ids[user_neighbourhoods[i, z]]


@inline
def add_to_pooled_sums(state: ELOCState, i: int, sign: int, rounds: int, d: int) -> None:
    """Add the weighted sums of user i to the pooled sums of its neighbourhoods, or subtract them if ``sign`` is −1.

    ``rounds`` is the number of rounds that the sums of user i contain.
    """
    trace = packed_trace(state.sums, i, d)
    for z in range(MAX_NEIGHBOURHOODS):
        s = neighbourhood_in_slot(state, i, z)
        if s >= 0:
            weight = sign * state.weights[i, z]
            add_scaled_row(state.pooled_sums, s, state.sums, i, weight)
            state.trace_change[s] += weight * trace
            state.contributors[s, USERS] += sign
            state.contributors[s, ROUNDS] += sign * rounds


@inline
def update_sums(state: ELOCState, i: int, x: Floats, reward: float, responsibilities: Floats) -> None:
    """Add one observation to the sums of user i, store the new weights of i, and update the pooled sums.

    The pooled sums always equal Σ q (b, G) of the stored sums and weights: the same values are subtracted that were
    added, even if the sums are float32.
    """
    sums, everyone = state.sums, state.seeds.size
    d = x.size
    add_to_pooled_sums(state, i, -1, state.served[i] - 1, d)  # ``served`` already includes this round
    add_scaled_row(state.pooled_sums, everyone, sums, i, -1.0)
    state.trace_change[everyone] -= packed_trace(sums, i, d)
    store_weights(
        state.user_neighbourhoods,
        state.weights,
        state.neighbourhood_ids,
        state.components,
        i,
        responsibilities,
        state.seed_of[i],
    )
    for c in range(state.memories.shape[0]):
        first = c * state.centres.shape[1]
        for q in range(first, first + state.centres.shape[1]):
            sums[i, q] *= state.memories[c, RETENTION]
        add_observation(sums, i, first, x, reward)
    add_to_pooled_sums(state, i, 1, state.served[i], d)
    add_scaled_row(state.pooled_sums, everyone, sums, i, 1.0)
    state.trace_change[everyone] += packed_trace(sums, i, d)


@inline
def solve_neighbourhood(state: ELOCState, s: int, scratch: ELOCScratch) -> None:
    """Recompute the centre and the variance level of neighbourhood s, or of everyone if s is K."""
    rows, noise = scratch.rows, state.learned_scalars[NOISE]
    state.trace_change[s] = 0.0
    for q in range(rows.shape[1]):
        rows[SYSTEM, q] = state.pooled_sums[s, q] + noise * state.population[PRECISION, q]
    variance = within_variance(state, s, scratch.workspace.shape[0])
    state.variance_levels[s] = solve_centre(state, variance, state.centres, state.centre_posteriors, s, scratch)


@inline
def update_centres(state: ELOCState, scratch: ELOCScratch) -> None:
    """Recompute the centres whose tr A has changed by more than RECENTRE_CHANGE, and one more centre in rotation.

    The rotation is needed because the centres also depend on σ², Σ_0 and μ_0, which change even if tr A does not.
    """
    d = scratch.workspace.shape[0]
    turn = state.int_params[T] % state.variance_levels.size
    for c in range(1, state.components[0]):
        s = state.components[c]
        if s == turn or abs(state.trace_change[s]) > RECENTRE_CHANGE * max(packed_trace(state.pooled_sums, s, d), 0.0):
            solve_neighbourhood(state, s, scratch)


@inline
def list_components(state: ELOCState) -> None:
    """Recompute ``components``: the neighbourhoods of the active seeds, everyone and the population."""
    components, n_seeds = state.components, state.seeds.size
    count = 0
    for s in range(n_seeds + 2):
        if s >= n_seeds or state.seeds[s] >= 0:
            count += 1
            components[count] = s
    components[0] = count
    for c in range(count + 1, components.size):
        components[c] = -1


@inline
def find_free_seed(state: ELOCState, d: int) -> int:
    """Return the first inactive seed, otherwise the redundant seed whose user has the fewest rounds, otherwise −1.

    A seed is redundant if the distance of its centre to that of another seed is below REDUNDANT_DISTANCE standard
    deviations of users around a centre. Of seeds with equally few rounds, the first is returned.
    """
    centres, served, seeds = state.centres, state.served, state.seeds
    for s in range(seeds.size):
        if seeds[s] < 0:
            return s
    used = count_used(state.pooled_sums, seeds.size, d)
    squared_limit = REDUNDANT_DISTANCE * REDUNDANT_DISTANCE * used * within_variance(state, 0, d)
    found = -1
    for s in range(seeds.size):
        if found < 0 or served[seeds[s]] < served[seeds[found]]:
            for r in range(seeds.size):
                if r != s and squared_distance(centres, s, centres, r, d) < squared_limit:
                    found = s
                    break
    return found


@inline
def move_seed(state: ELOCState, s: int, i: int, scratch: ELOCScratch) -> None:
    """Make user i the seed user of neighbourhood s, which restarts with the sums of user i only."""
    add_to_pooled_sums(state, i, -1, state.served[i], scratch.workspace.shape[0])
    state.neighbourhood_ids[s] += state.seeds.size
    for z in range(MAX_NEIGHBOURHOODS):
        state.user_neighbourhoods[i, z] = -1
        state.weights[i, z] = 0.0
    state.user_neighbourhoods[i, 0] = state.neighbourhood_ids[s]
    state.weights[i, 0] = 1.0
    state.contributors[s, USERS], state.contributors[s, ROUNDS] = 1, state.served[i]
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[s, q] = state.sums[i, q]
    if state.seeds[s] >= 0:
        state.seed_of[state.seeds[s]] = -1
    else:
        state.prior_weights[s] = (1.0 - INITIAL_PRIOR_WEIGHTS[0] - INITIAL_PRIOR_WEIGHTS[1]) / state.seeds.size
    state.seeds[s] = i
    state.seed_of[i] = s
    list_components(state)
    solve_neighbourhood(state, s, scratch)


@inline
def find_twin(state: ELOCState, i: int, scratch: ELOCScratch) -> int:
    """Return the first neighbourhood that is a twin of that of seed user i, or −1 if there is none.

    A twin explains user i better than the population does. The difference Δ of the two centres is not larger than their
    covariances C and C' and the variance v of users around a centre explain: Δᵀ(C + C' + v I)⁻¹Δ < TWIN_DISTANCE · u,
    where u is the number of used features.
    """
    rows, posteriors = scratch.rows, state.centre_posteriors
    d = scratch.workspace.shape[0]
    s = state.seed_of[i]
    variance = within_variance(state, s, d)
    limit = TWIN_DISTANCE * count_used(state.pooled_sums, state.seeds.size, d)
    least = scratch.log_evidence[state.seeds.size + 1] + TWIN_EVIDENCE_GAP
    for r in range(state.seeds.size):
        if r == s or scratch.log_evidence[r] <= least:
            continue
        for a in range(d):
            rows[SYSTEM, a] = posteriors[s, a] - posteriors[r, a]
        for q in range(d, rows.shape[1]):
            rows[SYSTEM, q] = posteriors[s, q] + posteriors[r, q]
        q = d
        for a in range(d):
            rows[SYSTEM, q] += variance
            q += d - a
        solve(rows, SYSTEM, rows, SOLUTION, scratch.workspace)
        if dot(rows, SYSTEM, rows, SOLUTION, 0, d) < limit:
            return r
    return -1


@no_alloc
def merge_neighbourhoods(state: ELOCState, s: int, r: int, scratch: ELOCScratch) -> None:
    """Add the weights of all users in neighbourhood s to those in neighbourhood r, and make seed s inactive."""
    ids, weights, contributors = state.user_neighbourhoods, state.weights, state.contributors
    merged, kept = state.neighbourhood_ids[s], state.neighbourhood_ids[r]
    for column in range(2):
        contributors[s, column], contributors[r, column] = 0, 0
    for i in range(state.n_users[0]):
        first, total = -1, 0.0
        for z in range(MAX_NEIGHBOURHOODS):
            if ids[i, z] == merged or ids[i, z] == kept:
                first = z if first < 0 else first
                total += weights[i, z]
                ids[i, z], weights[i, z] = -1, 0.0
        if first >= 0:
            ids[i, first], weights[i, first] = kept, min(total, 1.0)
            contributors[r, USERS] += 1
            contributors[r, ROUNDS] += state.served[i]
    state.seed_of[state.seeds[s]] = -1
    state.seeds[s] = -1
    state.neighbourhood_ids[s] += state.seeds.size
    state.prior_weights[r] += state.prior_weights[s]
    state.prior_weights[s] = 0.0
    scratch.responsibilities[s], scratch.log_evidence[s] = 0.0, -np.inf
    list_components(state)
    for q in range(state.pooled_sums.shape[1]):
        state.pooled_sums[s, q] = 0.0
    refresh_sums(state, r)
    solve_neighbourhood(state, r, scratch)


@inline
def adapt_seeds(state: ELOCState, i: int, scratch: ELOCScratch) -> None:
    """Merge the neighbourhood of seed user i with a twin, or move a seed to user i, whom no neighbourhood explains.

    A merge is considered in every MERGE_INTERVAL-th round of a seed user. A move is considered when the number of
    rounds of another user is a power of 2. Both need at least RESEED_ROUNDS rounds of the user.
    """
    m = state.served[i]
    if m < RESEED_ROUNDS:
        return
    if state.seed_of[i] >= 0:
        r = find_twin(state, i, scratch) if m % MERGE_INTERVAL == 0 else -1
        if r >= 0:
            merge_neighbourhoods(state, state.seed_of[i], r, scratch)
    elif m & (m - 1) == 0:
        if scratch.responsibilities[scratch.responsibilities.size - 1] > UNEXPLAINED_RESPONSIBILITY:
            s = find_free_seed(state, scratch.workspace.shape[0])
            if s >= 0:
                move_seed(state, s, i, scratch)
