"""LOCB: local clustering in contextual bandits (Ban, He, 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Bools, Floats, Ints
from locb.evaluation.clusters import Cluster, Membership
from locb.evaluation.confidence import ELLIPSOID, RADII, THEORY, radius_scale
from locb.kernels.common.bit_sets import n_words, pack_bits, unpack_bits
from locb.kernels.locb import explanation as locb_explanation
from locb.kernels.locb import loop as kernel
from locb.kernels.locb.state import (
    AS_PUBLISHED,
    BY_CERTIFICATE,
    BY_RADIUS,
    MEAN,
    N_ACTIVE,
    N_USERS,
    POOLED,
    RADIUS_KIND,
    REFRESH_COUNTER,
    STOP_RULE,
    LOCBState,
    T,
)
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.base.user_batch import BatchMembership, GroupSummary, OverlappingGroups
from locb.policies.base.validation import TIE_RULES, check_float, check_int, number_type, one_of
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.locb_state import USER_ROWS, add_seeds, grow, initial_state
from locb.policies.state.seeds import choose_seeds

STOPS = {"radius": BY_RADIUS, "certificate": BY_CERTIFICATE, "published": AS_PUBLISHED}
BONUSES = {"mean": MEAN, "pooled": POOLED}
SAVED = (
    "estimates",
    "log_det",
    "served",
    "added_at",
    "members",
    "sums",
    "returned",
    "int_params",
    "float_params",
    "generator",
)


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
    late_seeds : int
        So many of the users who come later (``add_users``) become seeds too, each with a set that everybody is in.
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
    _user_rows: ClassVar[tuple[str, ...]] = USER_ROWS
    _not_saved: ClassVar[tuple[str, ...]] = tuple(name for name in LOCBState._fields if name not in SAVED)
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(RADIUS_KIND, None), "float_params": slice(None)}

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        gamma: float = 0.2,
        n_seeds: int | None = None,
        seeds: Iterable[int] | None = None,
        late_seeds: int = 0,
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
        gamma = check_float("gamma", gamma, 0.0, open_ends=True)
        alpha = check_float("alpha", alpha, 0.0)
        tau = check_float("tau", tau, 0.0, open_ends=True)
        delta = check_float("delta", delta, 0.0, 1.0, open_ends=True)
        sigma = check_float("sigma", sigma, 0.0)
        modes = [
            one_of("radius", radius, RADII),
            one_of("stop", stop, STOPS),
            one_of("bonus", bonus, BONUSES),
            one_of("ties", ties, TIE_RULES),
        ]
        if modes[0] == THEORY and min_eigenvalue is None:
            raise ValueError("min_eigenvalue must be given for radius='theory', not None")
        if min_eigenvalue is not None:
            min_eigenvalue = check_float("min_eigenvalue", min_eigenvalue, 0.0, open_ends=True)
        if modes[1] == BY_CERTIFICATE and modes[0] != ELLIPSOID:
            raise ValueError(f"stop='certificate' needs radius='ellipsoid', not radius={radius!r}")
        seed = check_int("seed", seed, 0)
        rng = np.random.default_rng(seed)
        chosen = choose_seeds(self._n_users, n_seeds, seeds, rng)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "gamma": gamma,
            "seeds": chosen.tolist(),
            "late_seeds": check_int("late_seeds", late_seeds, 0),
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
        float_params = np.array([gamma, alpha, tau, delta, sigma, min_eigenvalue or 0.0])
        self._state = initial_state(self._n_users, self._dim, dtype, chosen, float_params, modes, new_generator(rng))
        self._told: list[Membership] = []  # all sets, in words
        self._told_at = b""  # how they were then

    @property
    def rounds_played(self) -> int:
        """t: how many rewards were learned."""
        return int(self._state.int_params[T])

    @property
    def finished(self) -> bool:
        """Whether all sets are returned: clustering has ended."""
        return bool(self._state.int_params[N_ACTIVE] == 0)

    def _radii_of(self, users: Ints) -> Floats:
        """B(i, t) of these users."""
        int_params = self._state.int_params
        delta, sigma = self._parameters["delta"], self._parameters["sigma"]
        ball = radius_scale(int_params[RADIUS_KIND], int_params[T], self._n_users, self._dim, sigma, delta)
        widths: Floats = ball * self._state.radius_widths[users]
        return widths

    def clusters(self) -> list[Cluster]:
        """One set a seed, in the order of the seeds; ``returned_at`` is None while a set is still changing."""
        state = self._state
        inside = unpack_bits(state.members, self._n_users)
        return [
            Cluster(int(seed), np.flatnonzero(inside[s]), int(state.returned[s]) or None)
            for s, seed in enumerate(state.seeds)
        ]

    def memberships(self, user: int) -> list[Membership]:
        """The sets that hold this user, in the order of the seeds, without their members.

        As long as a set does not change, it is told by the same object.
        """
        user, state = self.check_user(user), self._state
        now = state.sizes.tobytes() + state.returned.tobytes()
        if now != self._told_at:
            self._tell_sets()
            self._told_at = now
        return list(_picker(state.cluster_bits[user].tobytes())(self._told))

    def _tell_sets(self) -> None:
        """Put into words, anew, the sets that have changed."""
        state = self._state
        now = [*zip(state.seeds.tolist(), state.sizes.tolist(), state.returned.tolist(), strict=True)]
        for s, (seed, size, returned) in enumerate(now):
            if s == len(self._told):
                self._told.append(Membership(seed, size, returned or None))
            elif self._told[s] != (seed, size, returned or None):
                self._told[s] = Membership(seed, size, returned or None)

    def group_summary(self) -> GroupSummary:
        """One set a seed, in the order of the seeds.

        Progress is 1 where the rule for returning a set is met. With ``stop="certificate"`` it is gamma over the sum of
        the two largest reaches, which must be below gamma; else the share of members whose radii are small enough, as
        all must be. A set with a member who was never served cannot be returned.
        """
        state, returned = self._state, self._state.returned > 0
        if state.int_params[STOP_RULE] == BY_CERTIFICATE:
            progress = np.array([self._certified(s) for s in range(len(returned))])
        else:
            limit = self._parameters["gamma"] * self._parameters["tau"] / 8.0
            closed = (self.served > 0) & (self._radii_of(np.arange(self._n_users)) < limit)
            bits = np.zeros(state.members.shape[1], np.uint64)
            bits[: n_words(self._n_users)] = pack_bits(closed[None])[0]
            # One after the other: with thousands of sets a matrix of them all would take memory that is not at hand.
            progress = np.array([np.bitwise_count(row & bits).sum() for row in state.members]) / state.sizes
        progress = np.where(returned, 1.0, progress)
        sums = state.sums[:, : self._dim].copy()
        return GroupSummary(np.arange(len(returned)), state.seeds.copy(), returned, progress, sums)

    def _certified(self, s: int) -> float:
        """How near set s is to its certificate."""
        state, d = self._state, self._dim
        if state.returned[s] or state.unserved[s]:
            return float(state.returned[s] > 0)
        members = np.flatnonzero(unpack_bits(state.members[s, None], self._n_users)[0])
        apart = np.linalg.norm(state.estimates[members, :d] - state.estimates[state.seeds[s], :d], axis=1)
        reach = float(np.sort(apart + self._radii_of(members))[-2:].sum())
        return min(1.0, float(self._parameters["gamma"]) / reach)

    def _companions(self, user: int) -> Bools:
        state = self._state
        own = unpack_bits(state.cluster_bits[user, None], len(state.seeds))[0]
        together: Bools = unpack_bits(np.bitwise_or.reduce(state.members[own], axis=0)[None], self._n_users)[0]
        return together

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return OverlappingGroups(self._state.cluster_bits[users], len(self._state.seeds))

    def explain(self, user: int, contexts: Any) -> Explanation:
        """What ``recommend`` gives, in its place, with what each arm is worth and whose rewards say so.

        Estimate and bonus of an arm are those of the set that gives it the highest score, of all that hold the user.
        Where sets have the same members, the first seed stands for them. With ``bonus="mean"`` all members are visited.
        """
        return self.explain_batch([user], [contexts])[0]

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """``explain`` for several users, each with contexts of its own, in one call of the kernel."""
        asked = [self._check_choice(user, own) for user, own in zip(users, contexts, strict=True)]
        if not asked:
            return []
        state = self._state
        ends = np.cumsum([len(own) for _, own in asked])
        rows = asked[0][1] if len(asked) == 1 else np.concatenate([own for _, own in asked])
        estimate, bonus, theta = np.empty(len(rows)), np.empty(len(rows)), np.empty((len(asked), self._dim))
        chosen = np.empty((len(asked), 2), dtype=np.int64)
        everyone = np.array([user for user, _ in asked])
        locb_explanation.explain(state, everyone, ends, rows, estimate, bonus, theta, chosen)
        told, start = [], 0
        for i, ((arm, s), stop) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
            user, own = asked[i]
            self._check_arm(arm, user, own)
            if s < 0:
                source = EvidenceSource("user", None, 1.0, 1, int(state.served[user]))
            else:
                source = EvidenceSource(
                    "cluster", int(state.seeds[s]), 1.0, int(state.sizes[s]), int(state.cluster_served[s])
                )
            told.append(Explanation(arm, estimate[start:stop], bonus[start:stop], theta[i], (source,)))
            start = stop
        return told

    def cluster_sizes(self) -> Ints:
        """How many users each set holds, in the order of the seeds."""
        sizes: Ints = self._state.sizes.copy()
        return sizes

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in: into every active set, and into returned ones when they prove alike.

        The first of them become seeds, if ``late_seeds`` are still to come.
        """
        count = check_int("count", count, 0)
        old, new = self._n_users, self._n_users + count
        if count == 0:
            return
        if new > len(self._state.served):
            self._state = grow(self._state, max(new, 2 * len(self._state.served)))
        kernel.add_users(self._state, old, new, self._dim)
        self._n_users = self._parameters["n_users"] = new
        become = min(count, self._parameters["late_seeds"])
        if become:
            self._state = add_seeds(self._state, np.arange(old, old + become), new)
            self._parameters["seeds"] = self._state.seeds.tolist()
            self._parameters["late_seeds"] -= become
            self._rebuild_derived()

    def _move_sums(self, user: int, change: Floats) -> None:
        state, d = self._state, self._dim
        step = shift_estimate(state.estimates, user, change)
        state.sums[unpack_bits(state.cluster_bits[user, None], len(state.seeds))[0], :d] += step
        seed = int(state.seed_of[user])
        state.blocking_member[
            (state.blocking_member == user).any(axis=1)
        ] = -1  # what was proven by its distance may hold no more
        if seed >= 0:
            state.seed_points[:d, seed] = state.estimates[user, :d]
            state.blocking_member[seed] = -1

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        return {name: arrays[name] for name in SAVED} | {"members": arrays["members"][:, : n_words(self._n_users)]}

    def _rebuild_derived(self) -> None:
        state = self._state
        active = state.returned == 0
        state.cluster_bits[:] = 0
        state.active[:] = pack_bits(active[None, :])[0]
        state.int_params[[N_USERS, N_ACTIVE]] = self._n_users, active.sum()
        state.seed_points[: self._dim] = state.estimates[state.seeds, : self._dim].T
        state.blocking_member[:] = -1
        kernel.rebuild_derived(state, self._dim)

    def _consistency(self, state: Any) -> dict[str, bool]:
        played = state.int_params[T]
        last = unpack_bits(state.members[:, -1:], 64)[:, (self._n_users - 1) % 64 + 1 :]  # beyond the last user
        seeds = state.seeds.astype(np.uint64)
        own = state.members[np.arange(len(seeds)), seeds >> np.uint64(6)] >> (seeds & np.uint64(63))
        return super()._consistency(state) | {
            "members": not last.any() and bool((own & np.uint64(1)).all()),
            "returned": bool(((state.returned >= 0) & (state.returned <= played)).all()),
            "added_at": bool(((state.added_at >= 0) & (state.added_at <= played)).all()),
            "int_params": bool(0 <= state.int_params[REFRESH_COUNTER] <= played),
        }


@lru_cache(maxsize=4096)
def _picker(words: bytes) -> Callable[[list[Membership]], Iterable[Membership]]:
    """What picks those whose bits are set in these words."""
    bits = int.from_bytes(words, "little")
    inside = [s for s in range(bits.bit_length()) if bits >> s & 1]
    if len(inside) > 1:
        return itemgetter(*inside)
    return lambda told: [told[s] for s in inside]
