"""LOCB: local clustering in contextual bandits (Ban, He, 2021)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Floats, Ints, Words
from locb.clusters import Cluster
from locb.confidence import ELLIPSOID, RADII, THEORY, scale
from locb.kernels import locb as kernel
from locb.kernels.bits import pack, unpack, words_for
from locb.kernels.locb_state import (
    ACTIVE,
    AS_PUBLISHED,
    BY_CERTIFICATE,
    BY_RADIUS,
    MANY_USERS,
    MEAN,
    N_USERS,
    POOLED,
    RADIUS,
    UNREFRESHED,
    LocalState,
    T,
)
from locb.policies.base import CompiledPolicy, new_generator
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.rows import blank_estimates

STOPS = {"radius": BY_RADIUS, "certificate": BY_CERTIFICATE, "published": AS_PUBLISHED}
BONUSES = {"mean": MEAN, "pooled": POOLED}
SAVED_WHOLE = ("sums", "returned", "whole", "real", "generator")
USER_ROWS = ("estimates", "log_det", "width", "served", "joined", "words", "sets_of", "seed_of")  # one row a user


class LOCB(CompiledPolicy):
    """Around each of some seed users, keep the set of users who may be like the seed; let every set help its members.

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    gamma : float
        Users of one cluster are to be nearer to each other than this.
    n_seeds : int
        How many sets to grow, around users drawn by ``seed``. 30, or every user if there are fewer, if not given.
    seeds : list of int
        The seed users themselves, instead of a number of them.
    alpha : float
        Weight of the bonus for what is uncertain.
    tau : float
        A set is returned when all its radii are below gamma · tau / 8. 8 is practical; 1 with ``ellipsoid`` is proven.
    delta : float
        Probability that a statement which is meant to hold fails.
    sigma : float
        Scale of the noise: ½ is right for rewards in [0, 1].
    radius : "regret", "clustering", "theory" or "ellipsoid"
        How the radius of an estimate is computed; see docs/algorithm.md.
    min_eigenvalue : float
        Smallest eigenvalue of E[x xᵀ], which the ``theory`` radius needs.
    stop : "radius", "certificate" or "published"
        When a set is returned: small radii, or (with ``ellipsoid``) a certificate below gamma. "published" is "radius"
        without the last test of all members, as the paper prints it: for experiments, since its proof has a gap there.
    bonus : "mean" or "pooled"
        Mean of the members' bonuses, as in the paper, or the root of their mean square, whose cost is free of n.
    ties : "first" or "random"
        Which of the arms within 1e-9 of the highest score to take.
    dtype : "float64" or "float32"
        Of what is kept for every user; "float32" takes half of the memory, and rewards may be at most 1e30 in size.
    seed : int
        For the seeds and random ties.

    Examples
    --------
    >>> policy = LOCB(n_users=4, dim=2, seeds=[0, 2])
    >>> policy.update(1, [1.0, 0.0], 1.0)
    >>> [cluster.seed for cluster in policy.clusters_of(1)]
    [0, 2]
    """

    _kernel: ClassVar[Any] = kernel
    _settings: ClassVar[dict[str, slice]] = {"whole": slice(RADIUS, None), "real": slice(None)}

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        gamma: float = 0.2,
        n_seeds: int | None = None,
        seeds: Iterable[int] | None = None,
        alpha: float = 1.0,
        tau: float = 8.0,
        delta: float = 0.1,
        sigma: float = 0.5,
        radius: str = "regret",
        min_eigenvalue: float | None = None,
        stop: str = "radius",
        bonus: str = "mean",
        ties: str = "first",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        dtype = number_type(dtype)
        gamma = real_number("gamma", gamma, 0.0, open_ends=True)
        alpha = real_number("alpha", alpha, 0.0)
        tau = real_number("tau", tau, 0.0, open_ends=True)
        delta = real_number("delta", delta, 0.0, 1.0, open_ends=True)
        sigma = real_number("sigma", sigma, 0.0)
        modes = [
            one_of("radius", radius, RADII),
            one_of("stop", stop, STOPS),
            one_of("bonus", bonus, BONUSES),
            one_of("ties", ties, TIE_RULES),
        ]
        if modes[0] == THEORY and min_eigenvalue is None:
            raise ValueError("min_eigenvalue must be given for radius='theory', not None")
        if min_eigenvalue is not None:
            min_eigenvalue = real_number("min_eigenvalue", min_eigenvalue, 0.0, open_ends=True)
        if modes[1] == BY_CERTIFICATE and modes[0] != ELLIPSOID:
            raise ValueError(f"stop='certificate' needs radius='ellipsoid', not radius={radius!r}")
        seed = whole_number("seed", seed, 0)
        rng = np.random.default_rng(seed)
        chosen = _choose_seeds(self._n_users, n_seeds, seeds, rng)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "gamma": gamma,
            "seeds": chosen.tolist(),
            "alpha": alpha,
            "tau": tau,
            "delta": delta,
            "sigma": sigma,
            "radius": radius,
            "min_eigenvalue": min_eigenvalue,
            "stop": stop,
            "bonus": bonus,
            "ties": ties,
            "dtype": dtype,
            "seed": seed,
        }
        real = np.array([gamma, alpha, tau, delta, sigma, min_eigenvalue or 0.0])
        self._state = _blank_state(self._n_users, self._dim, dtype, chosen, real, modes, new_generator(rng))

    @property
    def rounds_played(self) -> int:
        """t: how many rewards were learned."""
        return int(self._state.whole[T])

    @property
    def finished(self) -> bool:
        """Whether all sets are returned: clustering has ended."""
        return bool(self._state.whole[ACTIVE] == 0)

    @property
    def radii(self) -> Floats:
        """B(i, t) of every user: (n,)."""
        whole = self._state.whole
        delta, sigma = self._parameters["delta"], self._parameters["sigma"]
        ball = scale(whole[RADIUS], whole[T], self._n_users, self._dim, sigma, delta)
        widths: Floats = ball * self._state.width[: self._n_users]
        return widths

    def clusters(self) -> list[Cluster]:
        """One set a seed, in the order of the seeds; ``returned_at`` is None while a set is still changing."""
        state = self._state
        inside = unpack(state.members, self._n_users)
        return [
            Cluster(int(seed), np.flatnonzero(inside[s]), int(state.returned[s]) or None)
            for s, seed in enumerate(state.seeds)
        ]

    def group_sizes(self) -> Ints:
        """How many users each set holds, in the order of the seeds."""
        sizes: Ints = self._state.sizes.copy()
        return sizes

    def certificate(self, cluster: Any, *, sigma: float | None = None, delta: float | None = None) -> float:
        """How far apart two users of this group can be, at most; with the policy's own sigma and delta by default."""
        sigma = self._parameters["sigma"] if sigma is None else sigma
        delta = self._parameters["delta"] if delta is None else delta
        return super().certificate(cluster, sigma=sigma, delta=delta)

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in: into every active set, and into returned ones when they prove alike."""
        count = whole_number("count", count, 0)
        old, new = self._n_users, self._n_users + count
        if count == 0:
            return
        state = self._state
        if new > len(state.served):
            self._state = state = _with_room(state, max(new, 2 * len(state.served)))
        kernel.join(state, old, new, self._dim)
        self._n_users = self._parameters["n_users"] = new

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What cannot be worked out from the rest, without the room for users to come."""
        arrays = super()._arrays()
        users, members = slice(self._n_users), (slice(None), slice(words_for(self._n_users)))
        kept = {name: arrays[name][users] for name in ("estimates", "log_det", "served", "joined")}
        return kept | {"members": arrays["members"][members]} | {name: arrays[name] for name in SAVED_WHOLE}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if arrays.keys() != self._arrays().keys():
            raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(self._arrays())}")
        super()._restore(self._state._asdict() | arrays)
        state = self._state
        active = state.returned == 0
        state.sets_of[:] = 0
        state.active[:] = pack(active[None, :])[0]
        state.whole[[N_USERS, ACTIVE]] = self._n_users, active.sum()
        state.seed_points[: self._dim] = state.estimates[state.seeds, : self._dim].T
        state.witness[:] = -1
        kernel.settle(state, self._dim)

    def _consistency(self, state: Any) -> dict[str, bool]:
        played = state.whole[T]
        last = unpack(state.members[:, -1:], 64)[:, (self._n_users - 1) % 64 + 1 :]  # beyond the last user
        seeds = state.seeds.astype(np.uint64)
        own = state.members[np.arange(len(seeds)), seeds >> np.uint64(6)] >> (seeds & np.uint64(63))
        return super()._consistency(state) | {
            "members": not last.any() and bool((own & np.uint64(1)).all()),
            "returned": bool(((state.returned >= 0) & (state.returned <= played)).all()),
            "joined": bool(((state.joined >= 0) & (state.joined <= played)).all()),
            "whole": bool(0 <= state.whole[UNREFRESHED] <= played),
        }


def _choose_seeds(n_users: int, n_seeds: int | None, seeds: Iterable[int] | None, rng: np.random.Generator) -> Ints:
    """The seed users, ascending where they are drawn."""
    if seeds is None:
        count = min(30, n_users) if n_seeds is None else whole_number("n_seeds", n_seeds, 1)
        if count > n_users:
            raise ValueError(f"n_seeds must be at most n_users = {n_users}, not {count}")
        return np.sort(rng.choice(n_users, size=count, replace=False)).astype(np.int64)
    if n_seeds is not None:
        raise ValueError(f"give seeds or n_seeds, not both (n_seeds={n_seeds!r})")
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds must be a list of users, not {seeds!r}")
    chosen = [whole_number("seeds", user, 0, n_users - 1) for user in seeds]
    if not chosen:
        raise ValueError("seeds must hold at least one user, not []")
    repeated = sorted(user for user, times in Counter(chosen).items() if times > 1)
    if repeated:
        raise ValueError(f"seeds must be different users, but {repeated} appear more than once")
    return np.array(chosen, dtype=np.int64)


def _random_words(count: int) -> Words:
    """One well-mixed word a user, always the same: the finaliser of SplitMix64 over 1, 2, …"""
    word = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def _blank_state(
    n: int, dim: int, dtype: str, seeds: Ints, real: Floats, modes: list[int], generator: Words
) -> LocalState:
    """The state before any round: everybody is in every set."""
    n_seeds = len(seeds)
    everyone = pack(np.ones((1, n), bool))
    every_seed = pack(np.ones((1, n_seeds), bool))
    estimates = blank_estimates(n, dim, dtype)
    words = _random_words(n)
    seed_of = np.full(n, -1)
    seed_of[seeds] = np.arange(n_seeds)
    state = LocalState(
        estimates=estimates,
        log_det=np.zeros(n),
        width=np.zeros(n),
        served=np.zeros(n, np.int64),
        joined=np.zeros(n, np.int64),
        words=words,
        sets_of=np.tile(every_seed, (n, 1)),
        seeds=seeds,
        members=np.tile(everyone, (n_seeds, 1)),
        sizes=np.full(n_seeds, n),
        hashes=np.full(n_seeds, np.bitwise_xor.reduce(words)),
        sums=np.tile(n * estimates[0].astype(np.float64), (n_seeds, 1)),  # small, and must not drift
        unserved=np.full(n_seeds, n),
        reference=np.tile(estimates[0].astype(np.float64), (2, 1)),
        departure=np.zeros(n_seeds + 1),
        seed_of=seed_of,
        seed_points=np.zeros((dim + 1, n_seeds)),
        returned=np.zeros(n_seeds, np.int64),
        active=every_seed[0].copy(),
        witness=np.full((n_seeds, 2), -1),
        distinct=np.zeros(words_for(n_seeds), np.uint64),
        many=np.array([MANY_USERS]),
        whole=np.array([0, n, n_seeds, 0, *modes]),
        real=real,
        generator=generator,
    )
    state.distinct[0] = 1
    kernel.renew_widths(state, 0, n, dim)
    return state


def _with_room(state: LocalState, rows: int) -> LocalState:
    """The same state with rows for more users, blank until they come."""
    old = len(state.served)
    dim = state.seed_points.shape[0] - 1
    more = rows - old
    grown = {name: getattr(state, name) for name in USER_ROWS}
    blank: dict[str, NDArray[Any]] = {name: np.zeros((more, *a.shape[1:]), a.dtype) for name, a in grown.items()}
    blank["estimates"] = blank_estimates(more, dim, str(state.estimates.dtype))
    blank["words"] = _random_words(rows)[old:]
    blank["seed_of"] = np.full(more, -1)
    members = np.zeros((len(state.seeds), words_for(rows)), np.uint64)
    members[:, : state.members.shape[1]] = state.members
    rooms = {name: np.concatenate([grown[name], blank[name]]) for name in USER_ROWS}
    return state._replace(members=members, **rooms)
