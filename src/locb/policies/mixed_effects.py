"""MixedEffects: each user is a draw from a normal population, whose mean and covariance are learned from all users."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.kernels.common.linear_algebra import diagonal, unpack_symmetric
from locb.kernels.mixed_effects import loop as kernel
from locb.kernels.mixed_effects.population import compute_posteriors, rebuild_natural
from locb.kernels.mixed_effects.state import LAST_FIT, MOMENTS, N_USERS, NATURAL, TIES, MixedEffectsState, T
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource, by_weight
from locb.policies.parameters import (
    TIE_RULES,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Seed,
    Ties,
    validate_parameters,
)
from locb.policies.state.user_rows import grow_rows, grown_capacity, initial_estimates, own_estimates

Alpha = Annotated[
    float,
    Parameter(
        'Weight of the exploration bonus, in posterior standard deviations. With explore="thompson", factor of the '
        "standard deviation of the draws.",
        minimum=0.0,
    ),
]
Noise = Annotated[float, Parameter("Standard deviation of the noise that the posteriors assume.", above=0.0)]
Explore = Annotated[
    str,
    Parameter(
        "How to explore. ucb: upper confidence bounds. thompson: random draws from the posterior of the user. A "
        "service does not accept thompson, because it cannot replay random choices.",
        choices=("ucb", "thompson"),
    ),
]


class MixedEffects(CorrectionMixin, ScoringRowPolicy):
    """Policy with a population prior: the vector θ_u of each user is a draw from N(μ₀, Σ₀), which is learned.

    The posterior of a user is N(θ̄, V), computed from the rewards of the user, the population and the noise ``sigma``.
    The score of an arm with context x is θ̄ᵀx + α √(xᵀV x), with α = ``alpha``. With ``explore="thompson"``, the score
    is θ̃ᵀx, where θ̃ is a draw from N(θ̄, α² V). After every n rounds (n: number of users), μ₀ and Σ₀ are fitted to the
    posteriors of all users with rounds. The model is that of IntelligentPooling (Tomkins, Liao, Klasnja and Murphy,
    2021), without effects of time.

    Examples
    --------
    >>> policy = MixedEffects(n_users=2, dim=2)
    >>> for _ in range(9):
    ...     policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(1, [[0.0, 1.0], [1.0, 0.0]])  # the population prefers the first feature
    1
    """

    _kernel: ClassVar[Any] = kernel
    _row_array: ClassVar[str] = "sums"
    _user_rows: ClassVar[tuple[str, ...]] = ("sums", "served")
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        sigma: Noise = 0.5,
        explore: Explore = "ucb",
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        population = np.concatenate([initial_estimates(1, dim), initial_estimates(1, dim)])
        self._state = MixedEffectsState(
            sums=np.zeros((n_users, population.shape[1]), dtype),
            population=population,
            served=np.zeros(n_users, np.int64),
            int_params=np.array([0, 0, n_users, TIE_RULES[ties], int(explore == "thompson")]),
            float_params=np.array([alpha, sigma]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    @property
    def has_random_choices(self) -> bool:
        """Whether ``recommend`` draws random numbers: with random ties, or by Thompson sampling."""
        return super().has_random_choices or self._parameters["explore"] == "thompson"

    @property
    def population_mean(self) -> Floats:
        """Estimated mean μ₀ of the vectors θ of all users, (d,)."""
        return self._reward_scale.unmap_difference(self._state.population[MOMENTS, : self._dim].copy())

    @property
    def population_covariance(self) -> Floats:
        """Estimated covariance Σ₀ of the vectors θ of all users, (d, d)."""
        unmap = self._reward_scale.unmap_difference
        return unmap(unmap(unpack_symmetric(self._state.population[MOMENTS, self._dim :], self._dim)))

    @property
    def _theta(self) -> Floats:
        return self._theta_of(np.arange(self._n_users))

    def _theta_of(self, users: Ints) -> Floats:
        return np.ascontiguousarray(self._posteriors(users)[:, : self._dim])

    def _deviation(self, user: int) -> Floats:
        """Return the posterior standard deviation of each entry."""
        return np.sqrt(diagonal(self._posteriors(np.array([user]))[0, self._dim :]))

    def _user_radii(self, users: Ints) -> Floats:
        """Return the expected error (root mean square) of the posterior mean of each of these users."""
        radii: Floats = np.sqrt(diagonal(self._posteriors(users)[:, self._dim :]).sum(axis=1))
        return radii

    def _posteriors(self, users: Ints) -> Floats:
        """Return the posterior mean θ̄ and the packed posterior covariance V of u users: (u, d + p)."""
        rows = np.empty((len(users), self._state.sums.shape[1]))
        compute_posteriors(self._state, users, rows, self._dim)
        return rows

    def _own_estimates(self, users: Ints) -> Callable[[], Floats]:
        return partial(own_estimates, self._state.sums[users].astype(np.float64), self._dim)

    def add_users(self, count: int) -> None:
        """Add ``count`` users, whose posterior is the population."""
        new = self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            self._state = state._replace(**grow_rows(state, self._user_rows, grown_capacity(len(state.served), new)))
        self._n_users = self._parameters["n_users"] = self._state.int_params[N_USERS] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state, rows = self._state, self._posteriors(users)
        precision = unpack_symmetric(state.population[NATURAL, self._dim :], self._dim)
        covariance = unpack_symmetric(rows[:, self._dim :], self._dim)
        shares = np.clip(np.einsum("uab,ab->u", covariance, precision) / self._dim, 0.0, 1.0)
        everyone = self._n_users, int(state.int_params[T])
        sources = [
            by_weight(
                EvidenceSource("population", None, share, *everyone),
                EvidenceSource("user", None, 1.0 - share, 1, served),
            )
            for share, served in zip(shares.tolist(), state.served[users].tolist(), strict=True)
        ]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [self.memberships(user) for user in users.tolist()]
        is_sampled = self._parameters["explore"] == "thompson"
        indices = np.arange(len(users))
        return ScoringRows(rows, indices, alphas, 1.0, sources, memberships, is_sampled=is_sampled)

    def _shift_sums(self, user: int, change: Floats) -> None:
        self._state.sums[user, : self._dim] += change

    def _rebuild_derived(self) -> None:
        self._state.int_params[N_USERS] = self._n_users
        rebuild_natural(self._state, self._dim)

    def _consistency(self, state: Any) -> dict[str, bool]:
        checks = super()._consistency(state)
        if not all(checks.values()):
            return checks
        spectrum = np.linalg.eigvalsh(unpack_symmetric(state.population[MOMENTS, self._dim :], self._dim))
        return checks | {
            "population": spectrum[0] > 0.0,
            "int_params": 0 <= state.int_params[LAST_FIT] <= state.int_params[T],
        }
