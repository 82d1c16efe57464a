"""ELOC: evidence-weighted local clustering (docs/explanation/eloc.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_int
from locb.evaluation.clusters import Cluster, Membership
from locb.kernels.common.arm_scoring import SCREEN_SLACK
from locb.kernels.common.linear_algebra import diagonal, packed_identity
from locb.kernels.eloc import loop as kernel
from locb.kernels.eloc.posterior import compute_posteriors
from locb.kernels.eloc.state import (
    EVERYONE,
    GAP,
    MAX_GAP,
    MIXTURE,
    NOISE,
    R_CLIPPED,
    R_LOCATION,
    TIES,
    T,
)
from locb.policies.base.capabilities import UnavailableError
from locb.policies.base.compiled import SafetyScreen, ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import Estimate, EvidenceSource
from locb.policies.base.user_batch import GroupSummary, OverlappingGroups, UserBatch, summarize_open_groups
from locb.policies.parameters import (
    TIE_RULES,
    Dim,
    Dtype,
    NSeeds,
    NUsers,
    RewardRange,
    Seed,
    Seeds,
    Sigma,
    Ties,
    validate_parameters,
)
from locb.policies.state.eloc_memory import (
    check_certificates_available,
    check_corrections_available,
    has_same_memories,
    initial_memories,
    memory_in_use,
    upgrade_arrays,
)
from locb.policies.state.eloc_parameters import SCREENS, Beta, Delta, Memory, NormBound, Robust, Screen
from locb.policies.state.eloc_state import (
    USER_ROWS,
    consistency,
    find_duplicates,
    grow,
    index_limits,
    initial_state,
    pack_float_params,
    rebuild_derived,
    shift_sums,
)
from locb.policies.state.seeds import choose_seeds
from locb.policies.state.user_rows import own_estimates

# Empty arrays, in place of results that ``compute_posteriors`` need not compute.
NO_NUMBERS, NO_GROUPS, NO_WIDTHS = np.empty((0, 0)), np.empty((0, 0), bool), np.empty(0)
FURTHER_SOURCES = [("everyone", None), ("population", None), ("other", None)]
MIN_SHARE = 0.05  # neighbourhoods with less weight are one source of the kind "other" in explanations
ROUNDING = 1e-9  # smaller weights are omitted in explanations


class ELOC(CorrectionMixin, ScoringRowPolicy):
    """ELOC policy: evidence-weighted local clustering. Scores use a mixture of the neighbourhoods of all seed users.

    The weight of a neighbourhood depends on how well it explains the rewards of the user. The mixture has two further
    components: "everyone" (all users are alike) and "population" (all users may differ). The scale of rewards is
    learned from the first rounds. The model is described in docs/explanation/eloc.md.

    Examples
    --------
    >>> policy = ELOC(n_users=4, dim=2, seeds=[0, 2])
    >>> policy.update(1, [1.0, 0.0], 1.0)
    >>> policy.recommend(3, [[0.0, 1.0], [1.0, 0.0]])
    1
    >>> [cluster.seed for cluster in policy.clusters_of(3)]  # None: the cluster of users who are like everyone
    [0, 2, None]
    """

    user_batch_size: ClassVar[int] = 64

    _kernel: ClassVar[Any] = kernel
    _row_array: ClassVar[str] = "centre_terms"
    _user_rows: ClassVar[tuple[str, ...]] = USER_ROWS
    _not_saved: ClassVar[tuple[str, ...]] = ("contributors", "components", "n_users")
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        n_seeds: NSeeds = None,
        seeds: Seeds = None,
        beta: Beta = 1.0,
        memory: Memory = None,
        robust: Robust = True,
        screen: Screen = "noise",
        sigma: Sigma = 0.5,
        norm_bound: NormBound = 1.0,
        delta: Delta = 0.1,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        if screen == "theory" and (robust or memory is not None):
            name, need, found = ("memory", "None", memory) if memory is not None else ("robust", "False", robust)
            raise ParameterError(name, f" must be {need} with screen='theory' (for its guarantee), not {found}")
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range, learns_scale=screen != "theory")
        rng = np.random.default_rng(seed)
        chosen = choose_seeds(n_users, n_seeds, seeds, rng)
        self._parameters |= {"n_seeds": None, "seeds": chosen.tolist()}
        float_params = pack_float_params(beta, sigma, norm_bound, delta, robust)
        settings, memories = np.array([0, 0, 0, TIE_RULES[ties], SCREENS[screen]]), initial_memories(memory)
        self._state = initial_state(n_users, dim, dtype, chosen, memories, float_params, settings, new_generator(rng))

    @property
    def rounds_played(self) -> int:
        """Number of rewards that the policy has learned."""
        return int(self._state.int_params[T])

    @property
    def noise(self) -> float:
        """Estimated standard deviation of rewards around their means."""
        return self._reward_scale.unmap_difference(float(np.sqrt(self._state.learned_scalars[NOISE])))

    @property
    def memory_in_use(self) -> float | None:
        """Memory in rounds per user, None without forgetting. With ``memory="auto"``, it changes while learning."""
        return memory_in_use(self._state)

    @property
    def gate(self) -> dict[str, float]:
        """Mixing weights of the three predictors of the model: "everyone", "population" and "mixture"."""
        gate = self._state.learned_scalars[: MIXTURE + 1].copy()
        gate[EVERYONE] -= max(0.0, self._state.learned_scalars[GAP] - MAX_GAP)
        weights = np.exp(gate - gate.max())
        return dict(zip(("everyone", "population", "mixture"), (weights / weights.sum()).tolist(), strict=True))

    @property
    def theta(self) -> Floats:
        """Posterior mean of each user's parameter vector, (n, d). Computed on each access."""
        theta = np.ascontiguousarray(self._posteriors(np.arange(self._n_users))[:, : self._dim])
        return self._reward_scale.unmap_difference(theta)

    def _user_radii(self, users: Ints) -> Floats:
        """Return the expected error (root mean square) of the posterior mean of each of these users."""
        return self._spread(self._posteriors(users))

    def clusters(self) -> list[Cluster]:
        """Return one cluster per seed user, in the order of the seed users, and a last cluster without a seed user.

        A seed user whose neighbourhood was merged into another has no cluster. A cluster contains its seed user, and
        each user for whom its neighbourhood has at least 1/20 of the evidence of the best component of the mixture.
        Evidence is the likelihood of the rewards of the user. Clusters overlap, and a user with few rounds is in many
        clusters. The last cluster contains the users for whom the component "everyone" meets this condition. It is
        omitted if it is empty.
        """
        members = [np.flatnonzero(row) for row in self._explained_by(np.arange(self._n_users))]
        found = zip(self._all_memberships(), members, strict=True)
        return [Cluster(membership.seed, users) for membership, users in found if users.size]

    def memberships(self, user: int) -> Sequence[Membership]:
        """Return the clusters that contain a user. Sizes are None: computing them would need all users."""
        inside = self._explained_by(np.array([self.check_user(user)]))[:, 0]
        return list(compress(self._all_memberships(), inside.tolist()))

    def _all_memberships(self) -> list[Membership]:
        """Return one ``Membership`` per seed (−1 if inactive), in the order of the seeds, and one for "everyone"."""
        return [Membership(seed, None) for seed in [*self._readonly_state.seeds.tolist(), None]]

    def certified_estimates(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[], tuple[Floats, Floats]]:
        """Return a function that computes own estimates and radii, as in the base class.

        Raises ``UnavailableError`` if ``memory`` is set, because preferences may then change, or if the effect of
        outliers was limited, because the learned rewards then differ from the observed rewards.
        """
        if self._state.reward_stats[R_CLIPPED] > 0.0:
            raise UnavailableError(
                "certificates are only available for unchanged rewards, but the effect of outliers was limited: create "
                "the policy with robust=False"
            )
        check_certificates_available(self._parameters["memory"])
        return super().certified_estimates(cluster, sigma=sigma, delta=delta)

    def estimate(self, user: int) -> Estimate:
        """Return the posterior mean of a user, the expected error of this mean as ``radius``, and the user's rounds.

        The deviation of entry j is √V̄_jj, where V̄ is the posterior covariance.
        """
        row = self._posteriors(np.array([self.check_user(user)]))
        deviation, unmap = np.sqrt(diagonal(row[0, self._dim :])), self._reward_scale.unmap_difference
        radius = unmap(float(self._spread(row)[0]))
        return Estimate(unmap(row[0, : self._dim]), radius, int(self.served[user]), unmap(deviation))

    def group_summary(self) -> GroupSummary:
        """Return a summary of the clusters; an inactive seed has an empty cluster without a seed user."""
        summary = summarize_open_groups(np.arange(len(self._state.seeds) + 1), np.append(self._state.seeds, -1))
        return summary._replace(same_as=find_duplicates(self._state, self._dim))

    def user_batch(self, users: Ints) -> UserBatch:
        """Return copies of the posterior means and memberships of users, and their probabilities of each cluster."""
        rows, n_seeds = np.empty((len(users), self._state.centres.shape[1])), len(self._state.seeds)
        weights, inside = np.empty((len(users), n_seeds + 2)), np.empty((len(users), n_seeds + 1), bool)
        self._compute(users, rows=rows, weights=weights, inside=inside)
        unmap, groups = self._reward_scale.unmap_difference, OverlappingGroups.from_matrix(inside)
        theta = np.ascontiguousarray(rows[:, : self._dim])
        return UserBatch(unmap(theta), unmap(self._spread(rows)), self.served[users], groups, weights[:, :-1])

    def add_users(self, count: int) -> None:
        """Add ``count`` users without rounds. Like all unserved users, they belong to every cluster."""
        count = check_int("count", count, 0)
        new = self._n_users + count
        if new > len(self._state.served):
            self._state = grow(self._state, new)
        self._state.n_users[0] = new
        self._n_users = self._parameters["n_users"] = new

    def _posteriors(self, users: Ints) -> Floats:
        """Return the posterior mean θ̄ and the packed posterior covariance V̄ of u users: (u, d + p)."""
        self._compute(users, rows=(rows := np.empty((len(users), self._state.centres.shape[1]))))
        return rows

    def _compute(
        self,
        users: Ints,
        *,
        rows: Floats = NO_NUMBERS,
        weights: Floats = NO_NUMBERS,
        inside: NDArray[np.bool_] = NO_GROUPS,
        own: Floats = NO_NUMBERS,
        widths: Floats = NO_WIDTHS,
    ) -> None:
        """Fill the arrays that are passed: see ``compute_posteriors``."""
        compute_posteriors(self._readonly_state, users, self._dim, rows, weights, inside, own, widths)

    def _explained_by(self, users: Ints) -> NDArray[np.bool_]:
        """Return which clusters of ``clusters`` contain each of u users: (K + 1, u) for K seed users.

        The last row is "everyone".
        """
        inside = np.empty((len(users), len(self._state.seeds) + 1), bool)
        self._compute(users, inside=inside)
        return inside.T

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state, n_seeds = self._readonly_state, len(self._readonly_state.seeds)
        rows, weights = np.empty((len(users), state.centres.shape[1])), np.empty((len(users), n_seeds + 2))
        inside = np.empty((len(users), n_seeds + 1), bool)
        own, widths = NO_NUMBERS, NO_WIDTHS
        if self._parameters["screen"] != "off":
            own, widths = np.empty_like(rows), np.empty(len(users))
        self._compute(users, rows=rows, weights=weights, inside=inside, own=own, widths=widths)
        alphas = self._parameters["beta"] * np.sqrt(np.log(2.0 + state.served[users]))
        small = np.where(weights[:, :-2] < MIN_SHARE, weights[:, :-2], 0.0)
        weights[:, :-2] -= small
        shares = np.concatenate([weights, small.sum(axis=1, keepdims=True)], axis=1)
        shares[shares <= ROUNDING] = 0.0
        names = [("neighbourhood", seed) for seed in state.seeds.tolist()] + FURTHER_SOURCES
        counts = state.contributors.tolist() + [(self._n_users, int(state.int_params[T]))] * 3
        rows_found, columns = np.nonzero(shares)
        order, sources = np.lexsort((-shares[rows_found, columns], rows_found)), [list[EvidenceSource]() for _ in users]
        for u, c in zip(rows_found[order].tolist(), columns[order].tolist(), strict=True):
            sources[u].append(EvidenceSource._make((*names[c], float(shares[u, c]), *counts[c])))
        clusters = self._all_memberships()
        memberships = [list(compress(clusters, row)) for row in inside.tolist()]
        screen, location = SafetyScreen(own, widths, SCREEN_SLACK), float(state.reward_stats[R_LOCATION])
        indices, evidence = np.arange(len(users)), [*map(tuple, sources)]
        return ScoringRows(rows, indices, alphas, 1.0, evidence, memberships, screen, location)

    def _spread(self, rows: Floats) -> Floats:
        """Return the square root of the trace of V̄ for each row (θ̄, V̄)."""
        return np.asarray(np.sqrt(rows[:, self._dim :] @ packed_identity(self._dim)))

    def _own_estimates(self, users: Ints) -> Callable[[], Floats]:
        return partial(
            own_estimates, self._state.sums[users, : self._state.centres.shape[1]].astype(np.float64), self._dim
        )

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Replace the reward ``learned`` of an earlier observation of ``context`` by ``reward``.

        The full difference of the two rewards is added to the sums b of the user, of its neighbourhoods and of all
        users. The sums become what they would be with the new reward, unless ``robust`` has limited the effect of
        ``learned``. The centres of the neighbourhoods change when they are next recomputed. The gate, the noise, the
        prior weights of the components and the population keep their values and change only in later rounds. Raises
        ``UnavailableError`` if ``memory`` is set, because the current weight of the observation is not known.
        """
        check_corrections_available(self._parameters["memory"])
        super().correct(user, context, learned, reward)

    def _shift_sums(self, user: int, change: Floats) -> None:
        shift_sums(self._state, user, change)

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        super()._restore(upgrade_arrays(arrays, self._readonly_state))

    def _rebuild_derived(self) -> None:
        self._state.n_users[0] = self._n_users
        rebuild_derived(self._state)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return index_limits(len(self._state.seeds), self._n_users)

    def _consistency(self, state: Any) -> dict[str, bool]:
        memories = {"memories": has_same_memories(state, self._readonly_state)}
        return super()._consistency(state) | consistency(state) | memories
