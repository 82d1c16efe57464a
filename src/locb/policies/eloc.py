"""ELOC: evidence-weighted local clustering."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import Cluster, Membership, SimilarUser
from locb.kernels.common.linear_algebra import diagonal, packed_identity, unpack_symmetric
from locb.kernels.eloc import loop as kernel
from locb.kernels.eloc.state import (
    BETA,
    BONUS_ROUNDS,
    GAMMA,
    MIXTURE,
    N_SERVED_USERS,
    NOISE,
    REFRESH_COUNTER,
    RETENTION,
    TIES,
    T,
)
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import Estimate, EvidenceSource, ScoringRow
from locb.policies.base.inspectable import nearest_first
from locb.policies.base.user_batch import GroupSummary, OverlappingGroups, UserBatch, summarize_open_groups
from locb.policies.base.validation import TIE_RULES, check_float, check_int, number_type, one_of
from locb.policies.state.eloc_state import USER_ROWS, grow, initial_state
from locb.policies.state.seeds import choose_seeds

NO_NUMBERS, NO_GROUPS = np.empty((0, 0)), np.empty((0, 0), bool)  # for what is not asked of the kernel
LEAST_WEIGHT = 1e-9  # a source of less is not told of


class ELOC(CompiledPolicy):
    """Weigh, for each user, how well each seed's neighbourhood explains the user's rewards; serve from the mixture.

    The model and what it costs are told in docs/eloc.md. Rewards should be of about the size of 1.

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    gamma : float
        Users of one neighbourhood are about this near to each other.
    n_seeds : int
        How many neighbourhoods to grow, around users drawn by ``seed``. 30, or every user if there are fewer, if not
        given.
    seeds : list of int
        The seed users themselves, instead of a number of them.
    beta : float
        Weight of the bonus for what is uncertain.
    memory : float
        Over so many rounds of its own what a user did fades, for tastes that change; never, if not given.
    ties : "first" or "random"
        Which of the arms within 1e-9 of the highest score to take.
    dtype : "float64" or "float32"
        Of what is kept for every user; "float32" takes half of the memory, and rewards may be at most 1e30 in size.
    seed : int
        For the seeds and random ties.

    Examples
    --------
    >>> policy = ELOC(n_users=4, dim=2, seeds=[0, 2])
    >>> policy.update(1, [1.0, 0.0], 1.0)
    >>> policy.recommend(3, [[0.0, 1.0], [1.0, 0.0]])
    1
    >>> [cluster.seed for cluster in policy.clusters_of(3)]  # None: the group of those who are like everyone
    [0, 2, None]
    """

    user_batch_size: ClassVar[int] = 64

    _kernel: ClassVar[Any] = kernel
    _rows: ClassVar[str] = "sums"
    _user_rows: ClassVar[tuple[str, ...]] = USER_ROWS
    _not_saved: ClassVar[tuple[str, ...]] = ("contributors", "n_users")
    _settings: ClassVar[dict[str, slice]] = {
        "int_params": slice(TIES, None),
        "float_params": slice(None),
    }

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        gamma: float = 0.2,
        n_seeds: int | None = None,
        seeds: Iterable[int] | None = None,
        beta: float = 0.8,
        memory: float | None = None,
        ties: str = "first",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        dtype = number_type(dtype)
        gamma = check_float("gamma", gamma, 0.0, open_ends=True)
        beta = check_float("beta", beta, 0.0)
        if memory is not None:
            memory = check_float("memory", memory, 1.0, open_ends=True)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = check_int("seed", seed, 0)
        rng = np.random.default_rng(seed)
        chosen = choose_seeds(self._n_users, n_seeds, seeds, rng)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "gamma": gamma,
            "seeds": chosen.tolist(),
            "beta": beta,
            "memory": memory,
            "ties": ties,
            "dtype": dtype,
            "seed": seed,
        }
        float_params = np.zeros(3)
        float_params[GAMMA], float_params[BETA], float_params[RETENTION] = (
            gamma,
            beta,
            1.0 if memory is None else 1.0 - 1.0 / memory,
        )
        self._state = initial_state(self._n_users, self._dim, dtype, chosen, float_params, tie_rule, new_generator(rng))

    @property
    def rounds_played(self) -> int:
        """t: how many rewards were learned."""
        return int(self._state.int_params[T])

    @property
    def noise(self) -> float:
        """The standard deviation of rewards around their means, as learned."""
        return float(np.sqrt(self._state.learned_scalars[NOISE]))

    @property
    def gate(self) -> dict[str, float]:
        """How much weight "everyone is alike", "everyone is one of the population" and the mixture have now."""
        gate = self._state.learned_scalars[: MIXTURE + 1]
        weights = np.exp(gate - gate.max())
        everyone, population, mixture = (weights / weights.sum()).tolist()
        return {"everyone": everyone, "population": population, "mixture": mixture}

    @property
    def theta(self) -> Floats:
        """The mean of what is believed about each user, which serves the user: (n, d). Worked out when asked."""
        return np.ascontiguousarray(self._beliefs(np.arange(self._n_users))[:, : self._dim])

    def _radii_of(self, users: Ints) -> Floats:
        """How far from ``theta`` these users are expected to be, the root of the mean square."""
        return self._spread(self._beliefs(users))

    def clusters(self) -> list[Cluster]:
        """One group a seed, in the order of the seeds; then those who are like everyone, with None for a seed.

        A group holds the users whom its neighbourhood explains at worst 20 times less well than the best explanation,
        so groups overlap, and a user of whom little is known is in many. The last group is left out if it is empty.
        """
        inside = self._inside(np.arange(self._n_users))
        members = [np.flatnonzero(row) for row in inside]
        found = [Cluster(int(seed), users) for seed, users in zip(self._state.seeds, members[:-1], strict=True)]
        return [*found, Cluster(None, members[-1])] if members[-1].size else found

    def memberships(self, user: int) -> Sequence[Membership]:
        """The groups of ``clusters`` that hold this user, without their sizes, which would take a look at all users."""
        inside = self._inside(np.array([self.check_user(user)]))[:, 0]
        return [
            Membership(seed, None)
            for seed, held in zip([*self._state.seeds.tolist(), None], inside, strict=True)
            if held
        ]

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Users who share a seed's group with this one, or all who are like everyone, nearest belief first."""
        user = self.check_user(user)
        limit = check_int("limit", limit, 0)
        inside = self._inside(np.arange(self._n_users))
        together: NDArray[np.bool_] = np.any(inside[inside[:, user]], axis=0)
        together[user] = False
        others = np.flatnonzero(together)
        rows = self._beliefs(np.append(others, user))
        distance = np.linalg.norm(rows[:-1, : self._dim] - rows[-1, : self._dim], axis=1)
        radii = self._spread(rows)
        nearest = nearest_first(distance, limit)
        return [SimilarUser(int(others[j]), float(distance[j]), float(radii[j])) for j in nearest]

    def certifier(
        self, cluster: Any, *, sigma: float | None = None, delta: float | None = None
    ) -> Callable[[bool], float]:
        """What gives the certificate of a group; refused with ``memory``, since tastes then move."""
        if self._parameters["memory"] is not None:
            raise ValueError(
                f"a certificate is for tastes that stand still, not for memory={self._parameters['memory']}"
            )
        return super().certifier(cluster, sigma=sigma, delta=delta)

    def estimate(self, user: int) -> Estimate:
        """What is believed of this user: the mean, how far off it is expected to be, and the user's own rounds.

        The deviation of its entries is that of the belief, √V̄_jj.
        """
        user = self.check_user(user)
        row = self._beliefs(np.array([user]))
        deviation = np.sqrt(diagonal(row[0, self._dim :]))
        return Estimate(row[0, : self._dim], float(self._spread(row)[0]), int(self.served[user]), deviation)

    def group_summary(self) -> GroupSummary:
        """The groups around seeds, and that of those who are like everyone; they are never complete."""
        return summarize_open_groups(np.arange(len(self._state.seeds) + 1), np.append(self._state.seeds, -1))

    def user_batch(self, users: Ints) -> UserBatch:
        """What is believed of these users and which groups hold them, copied."""
        rows = np.empty((len(users), self._state.sums.shape[1]))
        inside = np.empty((len(users), len(self._state.seeds) + 1), bool)
        kernel.compute_posteriors(self._state, users, self._dim, rows, NO_NUMBERS, inside)
        return UserBatch(np.ascontiguousarray(rows[:, : self._dim]), self.served[users], OverlappingGroups.of(inside))

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in: about each the policy believes what it believes of anybody."""
        count = check_int("count", count, 0)
        new = self._n_users + count
        if new > len(self._state.served):
            self._state = grow(self._state, max(new, 2 * len(self._state.served)))
        self._state.n_users[0] = new
        self._n_users = self._parameters["n_users"] = new

    def _beliefs(self, users: Ints) -> Floats:
        """Rows (θ̄, V̄): (u, d + p)."""
        rows = np.empty((len(users), self._state.sums.shape[1]))
        kernel.compute_posteriors(self._state, users, self._dim, rows, NO_NUMBERS, NO_GROUPS)
        return rows

    def _inside(self, users: Ints) -> NDArray[np.bool_]:
        """Which neighbourhoods, and at last everyone, explain these users nearly as well as the best: (K + 1, u)."""
        inside = np.empty((len(users), len(self._state.seeds) + 1), bool)
        kernel.compute_posteriors(self._state, users, self._dim, NO_NUMBERS, NO_NUMBERS, inside)
        return inside.T

    def _scoring_row(self, user: int) -> ScoringRow:
        state, n_seeds = self._state, len(self._state.seeds)
        row, weights = np.empty((1, state.sums.shape[1])), np.empty((1, n_seeds + 2))
        kernel.compute_posteriors(state, np.array([user]), self._dim, row, weights, NO_GROUPS)
        fading = math.sqrt(BONUS_ROUNDS / (BONUS_ROUNDS + int(state.served[user])))
        *near, everyone, population = weights[0].tolist()
        lent = zip(state.seeds.tolist(), near, *state.contributors.T.tolist(), strict=True)
        sources = [EvidenceSource("neighbourhood", s, q, users, m) for s, q, users, m in lent if q >= LEAST_WEIGHT]
        for kind, q in (("everyone", everyone), ("population", population)):
            if q >= LEAST_WEIGHT:
                sources.append(EvidenceSource(kind, None, q, self._n_users, int(state.int_params[T])))
        sources.sort(key=attrgetter("weight"), reverse=True)
        return ScoringRow(row, 0, self._parameters["beta"] * fading, 1.0, tuple(sources))

    def _spread(self, rows: Floats) -> Floats:
        """The root of the trace of each V̄."""
        spread: Floats = np.sqrt(rows[:, self._dim :] @ packed_identity(self._dim))
        return spread

    def _own_estimates(self, users: Ints) -> Floats:
        d = self._dim
        sums = self._state.sums[users].astype(np.float64)
        inverse = np.linalg.inv(np.eye(d) + unpack_symmetric(sums[:, d:], d))
        theta = np.einsum("uab,ub->ua", inverse, sums[:, :d])
        rows, columns = np.triu_indices(d)
        return np.concatenate([theta, inverse[:, rows, columns]], axis=1)

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Make good that ``context``, learned with the reward ``learned``, turns out to have earned ``reward``.

        The user's sums, and those of its neighbourhoods and of everyone, become what they would be with the right
        reward; centres follow as they are solved for in turn. Gate, noise, shares and population stay as they were, and
        move on with later rounds. Refused with ``memory``, since nobody knows how far the observation has faded.
        """
        if self._parameters["memory"] is not None:
            raise ValueError(
                f"with memory={self._parameters['memory']} what was learned has faded since: not corrected"
            )
        super().correct(user, context, learned, reward)

    def _move_sums(self, user: int, change: Floats) -> None:
        state, d = self._state, self._dim
        before = state.sums[user, :d].astype(np.float64)
        state.sums[user, :d] += change
        step = state.sums[user, :d] - before
        state.pooled_sums[-1, :d] += step
        for name, weight in zip(state.user_neighbourhoods[user].tolist(), state.weights[user].tolist(), strict=True):
            s = name % len(state.seeds)
            if name >= 0 and state.neighbourhood_ids[s] == name:
                state.pooled_sums[s, :d] += weight * step

    def _rebuild_derived(self) -> None:
        self._state.n_users[0] = self._n_users
        slots, lent = self._state.user_neighbourhoods, self._state.contributors
        held = (slots >= 0) & (self._state.neighbourhood_ids[slots % len(lent)] == slots)
        users, _ = np.nonzero(held)
        lent[:] = 0
        np.add.at(lent, slots[held] % len(lent), np.stack([np.ones_like(users), self._state.served[users]], axis=1))

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        n_seeds = len(self._state.seeds)
        return {
            "user_neighbourhoods": (-1, 2**31),
            "neighbourhood_ids": (0, 2**31),
            "seed_of": (-1, n_seeds),
            "seeds": (0, self._n_users),
        }

    def _consistency(self, state: Any) -> dict[str, bool]:
        int_params = state.int_params
        return super()._consistency(state) | {
            "weights": bool(((state.weights >= 0.0) & (state.weights <= 1.0)).all())
            and not state.weights[state.user_neighbourhoods < 0].any(),
            "neighbourhood_ids": bool(
                (state.neighbourhood_ids % len(state.seeds) == np.arange(len(state.seeds))).all()
            ),
            "user_neighbourhoods": bool(
                (
                    state.user_neighbourhoods <= state.neighbourhood_ids[state.user_neighbourhoods % len(state.seeds)]
                ).all()
            ),
            "seeds": len(np.unique(state.seeds)) == len(state.seeds),
            "seed_of": int((state.seed_of >= 0).sum()) == len(state.seeds)
            and bool((state.seed_of[state.seeds] == np.arange(len(state.seeds))).all()),
            "prior_weights": bool((state.prior_weights > 0.0).all()),
            "learned_scalars": bool(state.learned_scalars[NOISE] > 0.0),
            "width_levels": bool((np.abs(state.width_levels) < 2_000).all()),  # e^±446: a width that is still a number
            "int_params": bool(0 <= int_params[REFRESH_COUNTER] <= int_params[T])
            and int((state.served > 0).sum()) == int(int_params[N_SERVED_USERS]),
        }
