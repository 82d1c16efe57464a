"""The rounds of MixedEffects: recommend, update and play. Symbols: ``locb.kernels.mixed_effects.state``."""

from locb.common.arrays import Floats, Ints
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, is_valid, pick_arm, score_arms
from locb.kernels.common.linear_algebra import add_observation
from locb.kernels.common.thompson_sampling import choose_by_sample
from locb.kernels.mixed_effects.population import fit_population, solve_posterior
from locb.kernels.mixed_effects.state import (
    ALPHA,
    LAST_FIT,
    N_USERS,
    SAMPLED,
    TIES,
    MixedEffectsScratch,
    MixedEffectsState,
    T,
    allocate_scratch,
)


@inline
def choose(state: MixedEffectsState, user: int, contexts: Floats, scratch: MixedEffectsScratch) -> int:
    """Return the arm with the largest score, or −1 if the scores are NaN.

    The score is θ̄ᵀx + α √(xᵀV x) or, with Thompson sampling, θ̃ᵀx with a draw θ̃ from N(θ̄, α² V).
    """
    alpha, ties, generator = state.float_params[ALPHA], state.int_params[TIES], state.generator
    d = contexts.shape[1]
    solve_posterior(state, user, scratch.posterior, 0, scratch)
    if state.int_params[SAMPLED] != 0:
        return choose_by_sample(
            scratch.posterior, 0, contexts, alpha, ties, generator, scratch.sample, scratch.square, scratch.scores
        )
    expand_contexts(contexts, scratch.arms)
    score_arms(scratch.arms, scratch.posterior, 0, d, alpha, 1.0, scratch.scores)
    return pick_arm(scratch.scores, ties, generator)


@inline
def learn_round(state: MixedEffectsState, user: int, x: Floats, reward: float, scratch: MixedEffectsScratch) -> None:
    """Learn one observation. Fit the population if n rounds or more have passed since the last fit."""
    add_observation(state.sums, user, x, reward)
    state.served[user] += 1
    state.int_params[T] += 1
    if state.int_params[T] - state.int_params[LAST_FIT] >= state.int_params[N_USERS]:
        state.int_params[LAST_FIT] = state.int_params[T]
        fit_population(state, scratch)


@entry_point
def recommend(state: MixedEffectsState, user: int, contexts: Floats) -> int:
    """Return the arm to recommend to a user, or −1 if a context is invalid or the scores are NaN."""
    if not is_valid(contexts.ravel()):
        return -1
    return choose(state, user, contexts, allocate_scratch(state, contexts.shape[0], contexts.shape[1]))


@entry_point
def update(state: MixedEffectsState, user: int, x: Floats, reward: float) -> bool:
    """Learn the reward of context x and return True; if x is invalid (``is_valid``), learn nothing and return False."""
    if not is_valid(x):
        return False
    learn_round(state, user, x, reward, allocate_scratch(state, 1, x.size))
    return True


@no_alloc
def play_rounds(
    state: MixedEffectsState,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
    scratch: MixedEffectsScratch,
) -> None:
    """Run the rounds of ``play`` without allocating memory."""
    for t in range(users.size):
        arm = choose(state, users[t], contexts[t], scratch)
        chosen[t] = arm
        learn_round(state, users[t], contexts[t, arm], rewards[t, arm], scratch)


@entry_point
def play(state: MixedEffectsState, users: Ints, contexts: Floats, rewards: Floats, chosen: Ints) -> None:
    """Choose an arm and learn its reward in each of T rounds; write the chosen arms to ``chosen`` (T,)."""
    play_rounds(state, users, contexts, rewards, chosen, allocate_scratch(state, contexts.shape[1], contexts.shape[2]))
