"""ELOC's rounds: recommend, update and play, the safety screen, and the updates of the gate and the prior weights.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

import math

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import SCREEN_SLACK, expand_contexts, pick_arm, score_arms, screen_arm
from locb.kernels.common.handles import CHOOSE, LEARN, REUSE
from locb.kernels.eloc.evidence import is_full_round, is_population_round, own_estimate
from locb.kernels.eloc.memory import score_memories, select_memory
from locb.kernels.eloc.neighbourhoods import adapt_seeds, refresh_sums, update_centres, update_sums
from locb.kernels.eloc.population import (
    recompute_covariance,
    update_centre_terms,
    update_covariance,
    update_population,
)
from locb.kernels.eloc.posterior import allocate_scratch as allocate_scratch
from locb.kernels.eloc.posterior import compute_posterior
from locb.kernels.eloc.rewards import (
    is_scale_open,
    residual_spread,
    robust_reward,
    set_location,
    set_scale,
    track_reward,
    update_noise,
)
from locb.kernels.eloc.state import (
    BETA,
    GAP,
    GATE_MEMORY_ROUNDS,
    GATE_MEMORY_SHARE,
    MIN_PRIOR_WEIGHT,
    N_SERVED_USERS,
    NOISE,
    OWN,
    POSTERIOR,
    PRIOR_USERS,
    R_DISTINCT,
    R_LOCATION,
    REFRESH_COUNTER,
    REFRESH_ROUNDS,
    RETENTION,
    ROBUST,
    SCALE_ROUNDS,
    SCREEN,
    SCREEN_OFF,
    TIES,
    ELOCScratch,
    ELOCState,
    T,
)


@inline
def refresh_in_turn(state: ELOCState) -> None:
    """Recompute one row of sums if this is due. In a refresh cycle, each row is due once, evenly spaced."""
    int_params = state.int_params
    n_rows = state.seeds.size + 2
    cycle = max(REFRESH_ROUNDS, 64 * state.n_users[0])
    before = int_params[REFRESH_COUNTER] * n_rows // cycle
    int_params[REFRESH_COUNTER] += 1
    if int_params[REFRESH_COUNTER] * n_rows // cycle > before:
        refresh_sums(state, before)
    if int_params[REFRESH_COUNTER] >= cycle:
        int_params[REFRESH_COUNTER] = 0


@inline
def bonus_weight(state: ELOCState, i: int) -> float:
    """Return the factor of the posterior standard deviation in the bonus of user i: β √log(2 + m)."""
    weight: float = state.float_params[BETA] * math.sqrt(math.log(2.0 + state.served[i]))
    return weight


@inline
def choose(state: ELOCState, i: int, contexts: Floats, scratch: ELOCScratch) -> int:
    """Return the arm with the highest score θ̄ᵀx + β √log(2 + m) √(xᵀV̄x), or its replacement by the safety screen.

    ``compute_posterior`` must have filled the scratch for user i before. The result is −1 if all scores are NaN.
    """
    d = contexts.shape[1]
    arms, scores, ties = scratch.arms, scratch.scores, state.int_params[TIES]
    expand_contexts(contexts, arms)
    score_arms(arms, scratch.rows, POSTERIOR, d, bonus_weight(state, i), 1.0, scores)
    arm = pick_arm(scores, ties, state.generator)
    if arm < 0 or state.int_params[SCREEN] == SCREEN_OFF:
        return arm
    width = own_estimate(state, i, scratch.rows, scratch.workspace)
    return screen_arm(arms, scratch.rows, OWN, d, width, SCREEN_SLACK, arm, ties, state.generator, scores)


@inline
def update_gate(learned_scalars: Floats, t: int, n_served_users: int, x: Floats, reward: float, means: Floats) -> None:
    """Decrease the log weight of each of the gate's three predictors by its squared error / 2σ²; past errors decay."""
    retention = 1.0 - 1.0 / min(GATE_MEMORY_ROUNDS * n_served_users, 2.0 + GATE_MEMORY_SHARE * t)
    first = means.shape[0] - 3  # the last three rows are everyone, the population and the mixture
    for c in range(3):
        error = reward
        for a in range(x.size):
            error -= x[a] * means[first + c, a]
        learned_scalars[c] = retention * learned_scalars[c] - error * error / (2.0 * learned_scalars[NOISE])


@inline
def update_gap(state: ELOCState, i: int, log_evidence: Floats) -> None:
    """Replace the term of user i in the sum of evidence gaps: log evidence of the population minus that of everyone."""
    before = state.evidence_gaps[i]
    state.evidence_gaps[i] = log_evidence[state.seeds.size + 1] - log_evidence[state.seeds.size]
    state.learned_scalars[GAP] += state.evidence_gaps[i] - before


@inline
def update_prior_weights(
    components: Ints, prior_weights: Floats, responsibilities: Floats, n_served_users: int
) -> None:
    """Move the prior weights π of the components towards their responsibilities for the user of this round."""
    n_seeds = prior_weights.size - 2
    step = 1.0 / (n_served_users + PRIOR_USERS)
    total = 0.0
    for c in range(1, components[0] + 1):
        s = components[c]
        floor = MIN_PRIOR_WEIGHT if s >= n_seeds else MIN_PRIOR_WEIGHT / n_seeds
        prior_weights[s] = max(prior_weights[s] + step * (responsibilities[s] - prior_weights[s]), floor)
        total += prior_weights[s]
    for c in range(1, components[0] + 1):
        prior_weights[components[c]] /= total


@no_alloc
def learn_round(state: ELOCState, i: int, x: Floats, reward: float, scratch: ELOCScratch) -> None:
    """Learn one observation of user i. ``compute_posterior`` must have filled the scratch for user i before."""
    int_params, learned_scalars, rows = state.int_params, state.learned_scalars, scratch.rows
    int_params[T] += 1
    if state.served[i] == 0:
        int_params[N_SERVED_USERS] += 1
    state.served[i] += 1
    is_open = is_scale_open(state)
    track_reward(state.reward_stats, int_params[T], reward)
    reward -= state.reward_stats[R_LOCATION]
    predicted = 0.0
    for a in range(x.size):
        predicted += x[a] * rows[POSTERIOR, a]
    spread = residual_spread(learned_scalars[NOISE], x, rows)
    if not is_open:
        if state.float_params[ROBUST] > 0.0:
            reward = robust_reward(state, reward - predicted, spread, reward)
        if state.memories.shape[0] > 1:
            score_memories(state, i, x, reward, spread, scratch)
        update_gate(learned_scalars, int_params[T], int_params[N_SERVED_USERS], x, reward, scratch.means)
        update_gap(state, i, scratch.log_evidence)
        update_prior_weights(
            state.components, state.prior_weights, scratch.responsibilities, int_params[N_SERVED_USERS]
        )
    update_sums(state, i, x, reward, scratch.responsibilities)
    if is_population_round(state.served[i]):
        learn_population(state, i, x, scratch)
    if is_open:
        for a in range(x.size):
            state.context_sum[a] += x[a]
        set_scale(state, scratch)
        if int_params[T] >= SCALE_ROUNDS and state.reward_stats[R_DISTINCT] > 1.0:  # the last round of the estimation
            set_location(state, scratch)
            set_scale(state, scratch)
    else:
        update_noise(state, reward - predicted, spread)
        if state.memories.shape[0] > 1:
            select_memory(state, scratch.rows.shape[1])
    update_centres(state, scratch)
    adapt_seeds(state, i, scratch)
    refresh_in_turn(state)


@inline
def learn_population(state: ELOCState, i: int, x: Floats, scratch: ELOCScratch) -> None:
    """Update the population from user i, whose sums already contain the context x."""
    noise, population, rows = state.learned_scalars[NOISE], state.population, scratch.rows
    if state.memories[0, RETENTION] < 1.0:
        recompute_covariance(state.sums, i, noise, population, rows, scratch.square, scratch.workspace)
    else:
        update_covariance(rows, x, noise, scratch.square)
    update_centre_terms(state.sums, state.centre_terms, i, noise, population, rows, scratch.square)
    update_population(state, rows, scratch.square, scratch.workspace)


@no_alloc
def choose_round(state: ELOCState, scratch: ELOCScratch, i: int, contexts: Floats) -> int:
    """Return the arm to recommend to user i (see ``locb.kernels.common.handles``)."""
    compute_posterior(state, i, is_full_round(state.served[i]), scratch)
    return choose(state, i, contexts, scratch)


@no_alloc
def run_rounds(
    state: ELOCState,
    scratch: ELOCScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    for t in range(users.size):
        if not steps & REUSE:
            compute_posterior(state, users[t], is_full_round(state.served[users[t]]), scratch)
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scratch)
        if steps & LEARN:
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], scratch)
