"""LOCB: local clustering in contextual bandits (Ban, He, 2021)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, ParameterName, check_int
from locb.evaluation.clusters import Cluster, Membership
from locb.kernels.common.bit_sets import n_words, pack_bits, unpack_bits
from locb.kernels.confidence_radii import RADII, radius_scale
from locb.kernels.locb import loop as kernel
from locb.kernels.locb.scoring import explain
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
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.base.policy import finish
from locb.policies.base.user_batch import BatchMembership, GroupSummary, OverlappingGroups
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NSeeds,
    NUsers,
    Parameter,
    RewardRange,
    Safe,
    Seed,
    Seeds,
    Sigma,
    Ties,
    screen_width,
    validate_parameters,
)
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.locb_progress import certificate_progress, share_of_close_members
from locb.policies.state.locb_state import SAVED, USER_ROWS, add_seeds, grow, initial_state
from locb.policies.state.seeds import choose_seeds

STOPS = {"radius": BY_RADIUS, "certificate": BY_CERTIFICATE, "published": AS_PUBLISHED}
BONUSES = {"mean": MEAN, "pooled": POOLED}

Gamma = Annotated[float, Parameter("Intended maximum distance between preferences of two cluster members.", above=0.0)]
LateSeeds = Annotated[
    int, Parameter("Number of users who become seed users when they are added later. Set by a service.", minimum=0)
]
Tau = Annotated[
    float,
    Parameter(
        "A cluster is final when the radii of all its members are below gamma · tau / 8. The default, 8, gives low "
        "regret; the guarantee of Theorem 1 needs tau = 1 and the ellipsoid radius.",
        above=0.0,
    ),
]
Delta = Annotated[
    float, Parameter("Largest probability that a theory or ellipsoid radius is ever too small.", above=0.0, below=1.0)
]
Radius = Annotated[
    str,
    Parameter(
        "Formula of the confidence radius of an estimate. regret: small radii that give low regret, without a "
        "guarantee. clustering: the formula of the accuracy experiments of the paper. theory: Lemma 5.2 of the paper; "
        "needs min_eigenvalue. ellipsoid: valid for any contexts.",
        choices=tuple(RADII),
    ),
]
MinEigenvalue = Annotated[
    float | None,
    Parameter("Smallest eigenvalue of E[x xᵀ] for a random context x; required by the theory radius.", above=0.0),
]
Stop = Annotated[
    str,
    Parameter(
        "Rule that makes a cluster final. radius: the radii of all members are small (see tau); all members are then "
        "tested once more. certificate: the bound on the distance between members is below gamma; needs the ellipsoid "
        "radius. published: like radius, but without the last test, as printed in the paper. The proof of Theorem 1 "
        "does not cover this rule.",
        choices=tuple(STOPS),
    ),
]
Bonus = Annotated[
    str,
    Parameter(
        "Exploration bonus of a cluster. mean: mean of the bonuses of its members, as in the paper. pooled: root mean "
        "square of these bonuses; its computation time does not depend on the number of members.",
        choices=tuple(BONUSES),
    ),
]


class LOCB(CorrectionMixin, CompiledPolicy):
    """LOCB policy: local clustering around seed users. Each arm is scored by the best cluster that contains the user.

    The cluster of a seed user starts with all users. Until the cluster is final, a user is a member while the estimates
    of the user and the seed user differ by at most the sum of their confidence radii. Clusters may overlap.

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

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        gamma: Gamma = 0.2,
        n_seeds: NSeeds = None,
        seeds: Seeds = None,
        late_seeds: LateSeeds = 0,  # noqa: ARG002 - add_users reads it from _parameters
        alpha: Alpha = 1.0,
        tau: Tau = 8.0,
        delta: Delta = 0.1,
        sigma: Sigma = 0.5,
        radius: Radius = "regret",
        min_eigenvalue: MinEigenvalue = None,
        stop: Stop = "radius",
        bonus: Bonus = "mean",
        safe: Safe = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        if radius == "theory" and min_eigenvalue is None:
            raise ParameterError(
                "min_eigenvalue", " must be a number above 0 with ", ParameterName("radius"), "='theory', not None"
            )
        if stop == "certificate" and radius != "ellipsoid":
            raise ParameterError(
                "radius", " must be 'ellipsoid' with ", ParameterName("stop"), f"='certificate', not {radius!r}"
            )
        rng = np.random.default_rng(seed)
        chosen = choose_seeds(n_users, n_seeds, seeds, rng)
        self._parameters |= {"n_seeds": None, "seeds": chosen.tolist()}
        modes = [RADII[radius], STOPS[stop], BONUSES[bonus], TIE_RULES[ties]]
        float_params = np.array([gamma, alpha, tau, delta, sigma, min_eigenvalue or 0.0, screen_width(safe, alpha)])
        self._state = initial_state(n_users, dim, dtype, chosen, float_params, modes, new_generator(rng))
        self._memberships: list[Membership] = []  # cache, one per cluster
        self._memberships_version = b""  # sizes and return rounds of the clusters for which the cache is valid

    @property
    def rounds_played(self) -> int:
        """Number of rewards that the policy has learned."""
        return int(self._state.int_params[T])

    @property
    def finished(self) -> bool:
        """Whether all clusters are final."""
        return bool(self._state.int_params[N_ACTIVE] == 0)

    def _user_radii(self, users: Ints) -> Floats:
        int_params = self._state.int_params
        delta, sigma = self._parameters["delta"], self._parameters["sigma"]
        ball = radius_scale(int_params[RADIUS_KIND], int_params[T], self._n_users, self._dim, sigma, delta)
        widths: Floats = ball * self._state.radius_widths[users]
        return widths

    def clusters(self) -> list[Cluster]:
        """Return one cluster per seed user, in the order of the seed users."""
        state = self._state
        inside = unpack_bits(state.members, self._n_users)
        return [
            Cluster(int(seed), np.flatnonzero(inside[s]), int(state.returned[s]) or None)
            for s, seed in enumerate(state.seeds)
        ]

    def memberships(self, user: int) -> list[Membership]:
        """Return the clusters that contain a user, in the order of the seed users, described without their members."""
        user, state = self._plain_user(user), self._readonly_state
        version = state.sizes.tobytes() + state.returned.tobytes()
        if version != self._memberships_version:
            self._refresh_memberships()
            self._memberships_version = version
        return list(_selector(state.cluster_bits[user].tobytes())(self._memberships))

    def _refresh_memberships(self) -> None:
        state = self._state
        current = [*zip(state.seeds.tolist(), state.sizes.tolist(), state.returned.tolist(), strict=True)]
        for s, (seed, size, returned) in enumerate(current):
            if s == len(self._memberships):
                self._memberships.append(Membership(seed, size, returned or None))
            elif self._memberships[s] != (seed, size, returned or None):
                self._memberships[s] = Membership(seed, size, returned or None)

    def group_summary(self) -> GroupSummary:
        """Return a summary of the clusters, in the order of the seed users.

        Progress is 1 for a final cluster. The reach of a member is its distance from the seed user plus its radius.
        With ``stop="certificate"``, progress is gamma divided by the sum of the two largest reaches, or 0 if a member
        was never served. Else it is the share of members who were served and whose radius is below gamma · tau / 8.
        """
        return finish(self.group_summary_steps())

    def group_summary_steps(self) -> Generator[None, None, GroupSummary]:
        """Compute ``group_summary`` in steps of about one millisecond; the policy may learn between two steps."""
        if self._state.int_params[STOP_RULE] == BY_CERTIFICATE:
            progress = yield from certificate_progress(self, self._parameters["gamma"])
        else:
            limit = self._parameters["gamma"] * self._parameters["tau"] / 8.0
            progress = yield from share_of_close_members(self, limit)
        state, count = self._state, len(progress)
        returned = state.returned[:count] > 0
        progress = np.where(returned, 1.0, progress)
        sums = self._reward_scale.unmap_difference(state.sums[:count, : self._dim].copy())
        return GroupSummary(np.arange(count), state.seeds[:count].copy(), returned, progress, sums)

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return OverlappingGroups(self._state.cluster_bits[users], len(self._state.seeds))

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the sources of the estimates.

        The estimate and the bonus of an arm are those of the cluster that gives the arm its highest score, among the
        clusters that contain the user. If there is none, they are those of the user alone. Of clusters with the same
        members, the first is named. With ``bonus="mean"``, the time is proportional to the number of members.
        """
        return self.explain_batch([user], [contexts])[0]

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return the result of ``explain`` for each of several users, each with its own contexts."""
        choices, ends, rows = self._check_choices(users, contexts)
        if not choices:
            return []
        state = self._readonly_state
        estimate, bonus, theta = np.empty(len(rows)), np.empty(len(rows)), np.empty((len(choices), self._dim))
        chosen, checked = np.empty((len(choices), 3), dtype=np.int64), np.array([user for user, _ in choices])
        explain(state, checked, ends, rows, estimate, bonus, theta, chosen)
        scale, explanations = self._reward_scale, []
        if not scale.is_identity:
            estimate, bonus, theta = scale.unmap_scores(estimate, bonus, theta)
        for i, ((arm, s, replaced), stop) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
            user, offered = choices[i]
            self._check_arm(arm, user, offered)
            source = EvidenceSource("user", None, 1.0, 1, int(state.served[user]))
            if s >= 0:
                size, served = int(state.sizes[s]), int(state.cluster_served[s])
                source = EvidenceSource("cluster", int(state.seeds[s]), 1.0, size, served)
            span = slice(stop - len(offered), stop)
            memberships = self.memberships(user)
            explanations.append(
                Explanation(
                    arm, estimate[span], bonus[span], theta[i], (source,), scale.low, memberships, replaced == 1
                )
            )
        return explanations

    def cluster_sizes(self) -> Ints:
        """Return the number of users per cluster, in the order of the seed users."""
        sizes: Ints = self._state.sizes.copy()
        return sizes

    def add_users(self, count: int) -> None:
        """Add ``count`` users to every cluster that is not final. The first ``late_seeds`` of them become seed users.

        A final cluster accepts an added user when the estimate of the user is close to that of the seed user, and the
        user meets the rule ``stop``.
        """
        count = check_int("count", count, 0)
        old, new = self._n_users, self._n_users + count
        if count == 0:
            return
        if new > len(self._state.served):
            self._state = grow(self._state, new)
        kernel.add_users(self._state, old, new, self._dim)
        self._n_users = self._parameters["n_users"] = new
        new_seeds = min(count, self._parameters["late_seeds"])
        if new_seeds:
            self._state = add_seeds(self._state, np.arange(old, old + new_seeds), new)
            self._parameters["seeds"] = self._state.seeds.tolist()
            self._parameters["late_seeds"] -= new_seeds
            self._rebuild_derived()

    def _shift_sums(self, user: int, change: Floats) -> None:
        state, d = self._state, self._dim
        step = shift_estimate(state.estimates, user, change)
        state.sums[unpack_bits(state.cluster_bits[user, None], len(state.seeds))[0], :d] += step
        seed = int(state.seed_of[user])
        # Blocking members that were found with the old estimate of this user may no longer block.
        state.blocking_member[(state.blocking_member == user).any(axis=1)] = -1
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
        beyond = unpack_bits(state.members[:, -1:], 64)[:, (self._n_users - 1) % 64 + 1 :]  # bits after the last user
        seeds = state.seeds.astype(np.uint64)
        seed_bits = state.members[np.arange(len(seeds)), seeds >> np.uint64(6)] >> (seeds & np.uint64(63))
        return super()._consistency(state) | {
            "members": not beyond.any() and bool((seed_bits & np.uint64(1)).all()),
            "returned": bool(((state.returned >= 0) & (state.returned <= played)).all()),
            "added_at": bool(((state.added_at >= 0) & (state.added_at <= played)).all()),
            "int_params": bool(0 <= state.int_params[REFRESH_COUNTER] <= played),
        }


@lru_cache(maxsize=4096)
def _selector(packed_bits: bytes) -> Callable[[list[Membership]], Iterable[Membership]]:
    """Return a function that selects from a list the memberships whose bits are set in ``packed_bits``."""
    bits = int.from_bytes(packed_bits, "little")
    selected = [s for s in range(bits.bit_length()) if bits >> s & 1]
    if len(selected) > 1:
        return itemgetter(*selected)
    return lambda memberships: [memberships[s] for s in selected]
