"""ELOC: evidence-weighted local clustering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Floats, Ints, Words
from locb.clusters import Cluster, SimilarUser
from locb.kernels import eloc as kernel
from locb.kernels.eloc_state import (
    BETA,
    FIRST_GATE,
    FIRST_NOISE,
    FIRST_SHARES,
    GAMMA,
    KEPT,
    MIXTURE,
    NOISE,
    SEEN,
    SLOTS,
    TIES,
    UNREFRESHED,
    EvidenceState,
    T,
)
from locb.kernels.linear import packed_identity, packed_size, unpack
from locb.policies.base import CompiledPolicy, new_generator
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.seeds import choose_seeds

USER_ROWS = ("sums", "terms", "slots", "weights", "served", "seed_of")  # one row a user


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

    _kernel: ClassVar[Any] = kernel
    _rows: ClassVar[str] = "sums"
    _settings: ClassVar[dict[str, slice]] = {
        "whole": slice(TIES, None),
        "real": slice(None),
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
        gamma = real_number("gamma", gamma, 0.0, open_ends=True)
        beta = real_number("beta", beta, 0.0)
        if memory is not None:
            memory = real_number("memory", memory, 1.0, open_ends=True)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = whole_number("seed", seed, 0)
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
        real = np.zeros(3)
        real[GAMMA], real[BETA], real[KEPT] = gamma, beta, 1.0 if memory is None else 1.0 - 1.0 / memory
        self._state = _blank_state(self._n_users, self._dim, dtype, chosen, real, tie_rule, new_generator(rng))

    @property
    def rounds_played(self) -> int:
        """t: how many rewards were learned."""
        return int(self._state.whole[T])

    @property
    def noise(self) -> float:
        """The standard deviation of rewards around their means, as learned."""
        return float(np.sqrt(self._state.learned[NOISE]))

    @property
    def gate(self) -> dict[str, float]:
        """How much weight "everyone is alike", "everyone is one of the population" and the mixture have now."""
        gate = self._state.learned[: MIXTURE + 1]
        weights = np.exp(gate - gate.max())
        everyone, population, mixture = (weights / weights.sum()).tolist()
        return {"everyone": everyone, "population": population, "mixture": mixture}

    @property
    def theta(self) -> Floats:
        """The mean of what is believed about each user, which serves the user: (n, d). Worked out when asked."""
        return np.ascontiguousarray(self._beliefs(np.arange(self._n_users))[:, : self._dim])

    @property
    def radii(self) -> Floats:
        """How far from ``theta`` each user is expected to be, the root of the mean square: (n,)."""
        return self._spread(self._beliefs(np.arange(self._n_users)))

    def clusters(self) -> list[Cluster]:
        """One group a seed, in the order of the seeds; then those who are like everyone, with None for a seed.

        A group holds the users whom its neighbourhood explains at worst 20 times less well than the best explanation,
        so groups overlap, and a user of whom little is known is in many. The last group is left out if it is empty.
        """
        inside = kernel.groups(self._state, self._n_users, self._dim)
        members = [np.flatnonzero(row) for row in inside]
        found = [Cluster(int(seed), users) for seed, users in zip(self._state.seeds, members[:-1], strict=True)]
        return [*found, Cluster(None, members[-1])] if members[-1].size else found

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Users who share a seed's group with this one, or all who are like everyone, nearest belief first."""
        user = self.check_user(user)
        limit = whole_number("limit", limit, 0)
        inside = kernel.groups(self._state, self._n_users, self._dim)
        together: NDArray[np.bool_] = np.any(inside[inside[:, user]], axis=0)
        together[user] = False
        others = np.flatnonzero(together)
        rows = self._beliefs(np.append(others, user))
        distance = np.linalg.norm(rows[:-1, : self._dim] - rows[-1, : self._dim], axis=1)
        radii = self._spread(rows)
        nearest = np.argsort(distance, kind="stable")[:limit]
        return [SimilarUser(int(others[j]), float(distance[j]), float(radii[j])) for j in nearest]

    def certificate(self, cluster: Any, *, sigma: float = 0.5, delta: float = 0.1) -> float:
        """How far apart two users of this group can be, at most; refused with ``memory``, since tastes then move."""
        if self._parameters["memory"] is not None:
            raise ValueError(
                f"a certificate is for tastes that stand still, not for memory={self._parameters['memory']}"
            )
        return super().certificate(cluster, sigma=sigma, delta=delta)

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in: about each the policy believes what it believes of anybody."""
        count = whole_number("count", count, 0)
        new = self._n_users + count
        if new > len(self._state.served):
            self._state = _with_room(self._state, max(new, 2 * len(self._state.served)))
        self._n_users = self._parameters["n_users"] = new

    def _beliefs(self, users: Ints) -> Floats:
        """Rows (θ̄, V̄): (u, d + p)."""
        return kernel.beliefs(self._state, users, self._dim)

    def _spread(self, rows: Floats) -> Floats:
        """The root of the trace of each V̄."""
        spread: Floats = np.sqrt(rows[:, self._dim :] @ packed_identity(self._dim))
        return spread

    def _own_estimates(self, users: Ints) -> Floats:
        d = self._dim
        sums = self._state.sums[users].astype(np.float64)
        inverse = np.linalg.inv(np.eye(d) + unpack(sums[:, d:], d))
        theta = np.einsum("uab,ub->ua", inverse, sums[:, :d])
        rows, columns = np.triu_indices(d)
        return np.concatenate([theta, inverse[:, rows, columns]], axis=1)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The state without the room for users to come."""
        arrays = super()._arrays()
        return {name: array[: self._n_users] if name in USER_ROWS else array for name, array in arrays.items()}

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        n_seeds = len(self._state.seeds)
        return {"slots": (-1, 2**31), "names": (0, 2**31), "seed_of": (-1, n_seeds), "seeds": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        whole = state.whole
        return super()._consistency(state) | {
            "weights": bool(((state.weights >= 0.0) & (state.weights <= 1.0)).all())
            and not state.weights[state.slots < 0].any(),
            "names": bool((state.names % len(state.seeds) == np.arange(len(state.seeds))).all()),
            "slots": bool((state.slots <= state.names[state.slots % len(state.seeds)]).all()),
            "seeds": len(np.unique(state.seeds)) == len(state.seeds),
            "seed_of": int((state.seed_of >= 0).sum()) == len(state.seeds)
            and bool((state.seed_of[state.seeds] == np.arange(len(state.seeds))).all()),
            "shares": bool((state.shares > 0.0).all()),
            "learned": bool(state.learned[NOISE] > 0.0),
            "levels": bool((np.abs(state.levels) < 2_000).all()),  # e^±446: a width that is still a number
            "whole": bool(0 <= whole[UNREFRESHED] <= whole[T]) and int((state.served > 0).sum()) == int(whole[SEEN]),
        }


def _blank_state(
    n: int, dim: int, dtype: str, seeds: Ints, real: Floats, tie_rule: int, generator: Words
) -> EvidenceState:
    """The state before any round: every centre is at 0, every user as likely to be in one neighbourhood as another."""
    n_seeds, columns = len(seeds), dim + packed_size(dim)
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    population = np.zeros((3, columns))
    population[0, dim:] = packed_identity(dim) / dim
    state = EvidenceState(
        sums=np.zeros((n, columns), dtype),
        terms=np.zeros((n, columns), dtype),
        slots=np.full((n, SLOTS), -1, np.int32),
        weights=np.zeros((n, SLOTS), dtype),
        served=np.zeros(n, np.int64),
        seed_of=seed_of,
        seeds=seeds,
        names=np.arange(n_seeds),
        pooled=np.zeros((n_seeds + 1, columns)),
        centres=np.zeros((n_seeds + 1, columns)),
        moved=np.zeros(n_seeds + 1),
        levels=np.zeros(n_seeds + 1, np.int64),
        population=population,
        shares=np.concatenate([np.full(n_seeds, (1.0 - sum(FIRST_SHARES)) / n_seeds), FIRST_SHARES]),
        learned=np.array([*FIRST_GATE, FIRST_NOISE, 0.0]),
        whole=np.array([0, 0, 0, tie_rule]),
        real=real,
        generator=generator,
    )
    kernel.renew(state, dim)
    return state


def _with_room(state: EvidenceState, rows: int) -> EvidenceState:
    """The same state with rows for more users, blank until they come."""
    more = rows - len(state.served)
    grown: dict[str, NDArray[Any]] = {}
    for name in USER_ROWS:
        array = getattr(state, name)
        blank = -1 if name in ("slots", "seed_of") else 0
        grown[name] = np.concatenate([array, np.full((more, *array.shape[1:]), blank, array.dtype)])
    return state._replace(**grown)
