"""SCLUB: online clustering of bandits by splitting and merging clusters (Li, Chen, Li, Leung, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.validation import check_int
from locb.evaluation.clusters import Cluster, Membership, group_by_label
from locb.kernels.sclub import loop as kernel
from locb.kernels.sclub.splitting import has_valid_links
from locb.kernels.sclub.state import (
    MIN_FREQUENCY_GAP,
    N_QUEUED,
    N_SLOTS,
    NO_GAP,
    PHASE,
    PHASE_END,
    SCREEN_WIDTH,
    TIES,
    T,
)
from locb.policies.base.compiled import ScoringRowPolicy, ScoringRows, new_generator
from locb.policies.base.correction import CorrectionMixin
from locb.policies.base.explanations import EvidenceSource
from locb.policies.base.user_batch import BatchMembership, GroupSummary, Partition, summarize_open_groups
from locb.policies.parameters import (
    TIE_RULES,
    Alpha,
    Dim,
    Dtype,
    NUsers,
    Parameter,
    RewardRange,
    Safe,
    Seed,
    Ties,
    screen_width,
    validate_parameters,
)
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.sclub_state import (
    NOT_SAVED,
    USER_ROWS,
    add_singletons,
    enqueue_cluster,
    grow,
    initial_state,
    rebuild_derived,
)
from locb.policies.state.user_rows import keep_first_rows

AlphaTheta = Annotated[
    float,
    Parameter(
        "A user with m rounds is split off from a cluster with M rounds if the distance of their estimates is more "
        "than alpha_theta · (F(m) + F(M)), where F(m) = √((1 + log(1 + m)) / (1 + m)). Two clusters with M and M' "
        "rounds merge only if their distance is less than alpha_theta / 2 · (F(M) + F(M')).",
        minimum=0.0,
    ),
]
AlphaP = Annotated[
    float,
    Parameter(
        "A user is split off from a cluster in round t if its frequency (rounds of the user / t) differs from that of "
        "another user of the cluster by more than 2 · alpha_p · F(t), with F as in alpha_theta. Two clusters merge "
        "only if their mean frequencies differ by less than alpha_p · F(t).",
        minimum=0.0,
    ),
]


class SCLUB(CorrectionMixin, ScoringRowPolicy):
    """SCLUB policy: disjoint clusters that split and merge. All users start in one cluster.

    A user is split off from its cluster in two cases: if its estimate differs too much from that of the cluster, or if
    its number of rounds differs too much from that of another member. Similar clusters are merged. The score of an arm
    with context x is θ̂ᵀx + α √(xᵀ(I + S)⁻¹x), with α = ``alpha``. θ̂ is the ridge estimate of the cluster of the user. S
    is the sum of x xᵀ over the rounds of all users of the cluster.

    Examples
    --------
    >>> policy = SCLUB(n_users=3, dim=2)
    >>> policy.clusters()[0].members.tolist()
    [0, 1, 2]
    """

    _kernel: ClassVar[Any] = kernel
    _not_saved: ClassVar[tuple[str, ...]] = NOT_SAVED
    _user_rows: ClassVar[tuple[str, ...]] = USER_ROWS
    _settings: ClassVar[dict[str, slice]] = {
        "int_params": slice(TIES, None),
        "float_params": slice(MIN_FREQUENCY_GAP),
    }

    @validate_parameters
    def __init__(
        self,
        *,
        n_users: NUsers,
        dim: Dim,
        alpha: Alpha = 1.0,
        alpha_theta: AlphaTheta = 1.5,
        alpha_p: AlphaP = 1.0,
        safe: Safe = False,
        ties: Ties = "first",
        reward_range: RewardRange = None,
        dtype: Dtype = "float64",
        seed: Seed = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim, reward_range=reward_range)
        self._state = initial_state(
            n_users,
            dim,
            dtype,
            np.array([alpha, alpha_theta, alpha_p, screen_width(safe, alpha), NO_GAP]),
            TIE_RULES[ties],
            new_generator(np.random.default_rng(seed)),
        )

    def clusters(self) -> list[Cluster]:
        """Return the current clusters, in the order of their slots (see ``locb.kernels.sclub.state``)."""
        return [Cluster(None, members) for members in group_by_label(self._state.slot[: self._n_users])]

    def memberships(self, user: int) -> Sequence[Membership]:
        """Return a list with the cluster of a user, described without its members."""
        return [Membership(None, int(self._state.sizes[self._state.slot[self.check_user(user)]]))]

    def group_summary(self) -> GroupSummary:
        """Return a summary of the current clusters, in the order of ``clusters``. Clusters are never final."""
        return summarize_open_groups(np.flatnonzero(self._state.sizes > 0))

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return Partition(self._state.slot[users])

    def cluster_sizes(self) -> Ints:
        """Return the number of users per cluster, in the order of ``clusters``."""
        sizes: Ints = self._state.sizes[self._state.sizes > 0]
        return sizes

    def add_users(self, count: int) -> None:
        """Add ``count`` users, each in a new cluster, which may merge with other clusters once the user was served."""
        count = check_int("count", count, 0)
        old, new = self._n_users, self._n_users + count
        if new > len(self._state.served):
            self._state = grow(self._state, new, self._dim)
        add_singletons(self._state, old, new)
        self._n_users = self._parameters["n_users"] = new

    def _scoring_rows(self, users: Ints) -> ScoringRows:
        state = self._state
        slots = state.slot[users].astype(np.int64)
        sizes, served = state.sizes[slots].tolist(), state.cluster_served[slots].tolist()
        sources = [(EvidenceSource("cluster", None, 1.0, *counts),) for counts in zip(sizes, served, strict=True)]
        alphas = np.full(len(users), self._parameters["alpha"])
        memberships = [[Membership(None, size)] for size in sizes]
        screen = self._safety_screen(users, state.float_params[SCREEN_WIDTH])
        return ScoringRows(state.cluster_estimates, slots, alphas, 1.0, sources, memberships, screen)

    def _shift_sums(self, user: int, change: Floats) -> None:
        state = self._state
        slot = int(state.slot[user])
        for estimates, sums, row in (
            (state.estimates, state.sums, user),
            (state.cluster_estimates, state.cluster_sums, slot),
        ):
            shift_estimate(estimates, row, change)
            sums[row, : self._dim] += change
        enqueue_cluster(state, slot)  # its estimate may now be close to that of another cluster

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        slots = int(self._state.int_params[N_SLOTS])  # later slots are free
        return arrays | {name: keep_first_rows(arrays[name], slots) for name in ("cluster_estimates", "cluster_sums")}

    def _rebuild_derived(self) -> None:
        self._state = rebuild_derived(self._state)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {
            "slot": (0, self._n_users),
            "links": (0, self._n_users),
            "checked": (0, 2),
            "queued": (0, 2),
        }

    def _consistency(self, state: Any) -> dict[str, bool]:
        n, int_params = self._n_users, state.int_params
        sizes = np.bincount(state.slot, minlength=n)
        unchecked = np.bincount(state.slot[state.checked == 0], minlength=n)
        has_right_sizes = np.array_equal(sizes, state.sizes)
        return super()._consistency(state) | {
            "sizes": has_right_sizes,
            "links": has_right_sizes and has_valid_links(state),
            "unchecked": np.array_equal(unchecked[sizes > 0], state.unchecked[sizes > 0]),
            "int_params": int_params[N_SLOTS] == np.flatnonzero(sizes)[-1] + 1
            and 0 <= int_params[PHASE] < 62
            and int_params[PHASE_END] == 2 ** (int_params[PHASE] + 1) - 2
            and int_params[T] <= int_params[PHASE_END]
            and int_params[N_QUEUED] == np.count_nonzero(state.queued),
        }
