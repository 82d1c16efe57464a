"""The rounds of MixedEffects: recommend, update and play. Symbols: ``locb.kernels.mixed_effects.state``."""

from locb.common.arrays import Floats, Ints
from locb.common.jit import inline, no_alloc
from locb.kernels.common.arm_scoring import expand_contexts, pick_arm, score_arms
from locb.kernels.common.handles import CHOOSE, LEARN
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

__all__ = ["allocate_scratch", "run_rounds"]


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


@no_alloc
def run_rounds(
    state: MixedEffectsState,
    scratch: MixedEffectsScratch,
    steps: int,
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    chosen: Ints,
) -> None:
    """Run T rounds (see ``locb.kernels.common.handles``)."""
    for t in range(users.size):
        if steps & CHOOSE:
            chosen[t] = choose(state, users[t], contexts[t], scratch)
        if steps & LEARN:
            learn_round(state, users[t], contexts[t, chosen[t]], rewards[t, chosen[t]], scratch)
