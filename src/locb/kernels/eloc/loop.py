"""ELOC's rounds: recommend, update and play, and the updates of the gate, the noise and the prior weights.

Terms and symbols are defined in ``locb.kernels.eloc.state`` and ``locb.kernels``.
"""

import math

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.cholesky import solve
from locb.kernels.eloc.neighbourhoods import reseed, update_centres, update_sums
from locb.kernels.eloc.population import recompute_covariance, update_centre_terms, update_covariance, update_population
from locb.kernels.eloc.posterior import component_weight, compute_posterior
from locb.kernels.eloc.state import (
    BETA,
    BONUS_ROUNDS,
    CENTRE,
    GATE_MEMORY_ROUNDS,
    LOG_DET,
    MEMBERSHIP_EVIDENCE_GAP,
    MIN_NOISE,
    MIN_PRIOR_WEIGHT,
    N_SERVED_USERS,
    NOISE,
    NOISE_PRIOR_ROUNDS,
    POPULATION_INTERVAL,
    POPULATION_ROUNDS,
    POSTERIOR,
    PRECISION,
    PRIOR_USERS,
    RETENTION,
    TIES,
    ELOCScratch,
    ELOCState,
    T,
    allocate_scratch,
    refresh_in_turn,
)


@inline
def score(state: ELOCState, i: int, contexts: Floats, scratch: ELOCScratch) -> None:
    """Write the score of every arm to ``scratch.scores``: θ̄ᵀx + β √(m_0 / (m_0 + m)) √(xᵀV̄x)."""
    decay = math.sqrt(BONUS_ROUNDS / (BONUS_ROUNDS + state.served[i]))
    expand_contexts(contexts, scratch.arms)
    score_arms(
        scratch.arms, scratch.rows, POSTERIOR, contexts.shape[1], state.float_params[BETA] * decay, 1.0, scratch.scores
    )


@inline
def update_gate(learned_scalars: Floats, n_served_users: int, x: Floats, reward: float, means: Floats) -> None:
    """Decrease the log weight of each of the gate's three predictors by its squared error / 2σ²; past errors decay."""
    retention = 1.0 - 1.0 / (GATE_MEMORY_ROUNDS * n_served_users)
    first = means.shape[0] - 3  # the last three rows are everyone, the population and the mixture
    for c in range(3):
        error = reward
        for a in range(x.size):
            error -= x[a] * means[first + c, a]
        learned_scalars[c] = retention * learned_scalars[c] - error * error / (2.0 * learned_scalars[NOISE])


@inline
def update_noise(learned_scalars: Floats, t: int, x: Floats, reward: float, rows: Floats) -> None:
    """Move σ² towards the squared error of the prediction, without the part that the posterior variance explains."""
    d = x.size
    error = reward
    variance = 0.0
    q = d
    for a in range(d):
        error -= x[a] * rows[POSTERIOR, a]
        variance += rows[POSTERIOR, q] * x[a] * x[a]
        q += 1
        for b in range(a + 1, d):
            variance += 2.0 * rows[POSTERIOR, q] * x[a] * x[b]
            q += 1
    noise = learned_scalars[NOISE]
    target = error * error / (1.0 + max(variance, 0.0) / noise)
    learned_scalars[NOISE] = max(noise + 2.0 / (t + NOISE_PRIOR_ROUNDS) * (target - noise), MIN_NOISE)


@inline
def update_prior_weights(prior_weights: Floats, responsibilities: Floats, n_served_users: int) -> None:
    """Move the prior weights π of the components towards their responsibilities for the user of this round."""
    n_seeds = prior_weights.size - 2
    step = 1.0 / (n_served_users + PRIOR_USERS)
    total = 0.0
    for s in range(prior_weights.size):
        floor = MIN_PRIOR_WEIGHT if s >= n_seeds else MIN_PRIOR_WEIGHT / n_seeds
        prior_weights[s] = max(prior_weights[s] + step * (responsibilities[s] - prior_weights[s]), floor)
        total += prior_weights[s]
    for s in range(prior_weights.size):
        prior_weights[s] /= total


@no_alloc
def learn_round(state: ELOCState, i: int, x: Floats, reward: float, scratch: ELOCScratch) -> None:
    """Learn one observation of user i. ``compute_posterior`` must have filled the scratch for user i before."""
    int_params, learned_scalars = state.int_params, state.learned_scalars
    population, rows = state.population, scratch.rows
    int_params[T] += 1
    if state.served[i] == 0:
        int_params[N_SERVED_USERS] += 1
    state.served[i] += 1
    update_gate(learned_scalars, int_params[N_SERVED_USERS], x, reward, scratch.means)
    update_sums(state, i, x, reward, scratch.responsibilities)
    if state.served[i] <= POPULATION_ROUNDS or state.served[i] % POPULATION_INTERVAL == 0:
        if state.float_params[RETENTION] < 1.0:
            recompute_covariance(
                state.sums, i, learned_scalars[NOISE], population, rows, scratch.square, scratch.workspace
            )
        else:
            update_covariance(rows, x, learned_scalars[NOISE], scratch.square)
        update_centre_terms(state.sums, state.centre_terms, i, learned_scalars[NOISE], population, rows, scratch.square)
        learned_scalars[LOG_DET] = update_population(population, int_params[N_SERVED_USERS], rows, scratch.workspace)
    update_noise(learned_scalars, int_params[T], x, reward, rows)
    update_prior_weights(state.prior_weights, scratch.responsibilities, int_params[N_SERVED_USERS])
    update_centres(state, scratch)
    reseed(state, i, scratch)
    refresh_in_turn(state)


@entry_point
def recommend(state: ELOCState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    scratch = allocate_scratch(state, contexts.shape[0], contexts.shape[1])
    compute_posterior(state, user, scratch)
    score(state, user, contexts, scratch)
    return pick_arm(scratch.scores, state.int_params[TIES], state.generator)


@entry_point
def update(state: ELOCState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    scratch = allocate_scratch(state, 1, x.size)
    compute_posterior(state, user, scratch)
    learn_round(state, user, x, reward, scratch)
    return True


@no_alloc
def play_rounds(
    state: ELOCState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints, scratch: ELOCScratch
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    for t in range(users.size):
        compute_posterior(state, users[t], scratch)
        score(state, users[t], contexts[t], scratch)
        arm = pick_arm(scratch.scores, state.int_params[TIES], state.generator)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry_point
def play(state: ELOCState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    play_rounds(state, users, contexts, rewards, chosen, allocate_scratch(state, contexts.shape[1], contexts.shape[2]))


@entry_point
def rebuild_derived(state: ELOCState, dim: int) -> None:
    """Recompute Σ_0⁻¹ and all centres, after the sums and the population were replaced."""
    scratch = allocate_scratch(state, 1, dim)
    state.learned_scalars[LOG_DET] = solve(state.population, CENTRE, state.population, PRECISION, scratch.workspace)
    state.trace_change[:] = 1.0
    update_centres(state, scratch)


@entry_point
def compute_posteriors(
    state: ELOCState, users: Ints, dim: int, rows: Floats, weights: Floats, is_member: NDArray[np.bool_]
) -> None:
    """Compute the posteriors of u users. Each of the last three arrays is filled only if it has rows.

    ``rows`` (u, d + p) receives the posterior mean θ̄ and covariance V̄. ``weights`` (u, K + 2) receives the weight of
    each component in the posterior. ``is_member`` (u, K + 1) receives whether the evidence of a neighbourhood, or of
    everyone, is at least 1/20 of that of the best component. A seed user is always a member of its neighbourhood.
    """
    scratch = allocate_scratch(state, 1, dim)
    n_seeds = state.seeds.size
    for u in range(users.size):
        compute_posterior(state, users[u], scratch)
        if rows.shape[0] > 0:
            rows[u] = scratch.rows[POSTERIOR]
        if weights.shape[0] > 0:
            for s in range(n_seeds + 2):
                weights[u, s] = component_weight(s, scratch.responsibilities, scratch.gate_weights)
        if is_member.shape[0] > 0:
            best = scratch.log_evidence.max()
            for s in range(n_seeds + 1):
                is_member[u, s] = scratch.log_evidence[s] >= best - MEMBERSHIP_EVIDENCE_GAP
            if state.seed_of[users[u]] >= 0:
                is_member[u, state.seed_of[users[u]]] = True
