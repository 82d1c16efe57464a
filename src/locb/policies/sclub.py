"""SCLUB: online clustering of bandits by sets that split and merge (Li, Chen, Li, Leung, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import Cluster, Membership, group_by_label
from locb.kernels.common.bit_sets import ONE, n_words, pack_bits, unpack_bits
from locb.kernels.sclub import loop as kernel
from locb.kernels.sclub import merging as sclub_merging
from locb.kernels.sclub import splitting as sclub_splitting
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import EvidenceSource, ScoringRow
from locb.policies.base.user_batch import BatchMembership, GroupSummary, Partition, summarize_open_groups
from locb.policies.base.validation import TIE_RULES, check_float, check_int, number_type, one_of
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import grow_rows, initial_estimates, keep_first_rows

NOT_SAVED = ("work_lists", "scan_points", "free_slots")  # room for work, and what follows from the rest
USER_ROWS = tuple(
    n for n in sclub_splitting.SCLUBState._fields if n not in (*NOT_SAVED, "int_params", "float_params", "generator")
)


class SCLUB(CompiledPolicy):
    """All users start in one set; a user who proves different, or is served unlike the others, splits off; sets merge.

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    alpha : float
        Weight of the bonus: score θ̂ᵀx + α √(xᵀ(I + S)⁻¹x), both of the user's set.
    alpha_theta : float
        How many radii apart estimates must be to split.
    alpha_p : float
        The same for how often users are served.
    ties : "first" or "random"
        Which of the arms within 1e-9 of the highest score to take.
    dtype : "float64" or "float32"
        Of what is kept for every user; "float32" takes half of the memory, and rewards may be at most 1e30 in size.
    seed : int
        For random ties.

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
        "int_params": slice(sclub_splitting.TIES, None),
        "float_params": slice(sclub_splitting.MIN_FREQUENCY_GAP),
    }

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        alpha: float = 1.0,
        alpha_theta: float = 1.5,
        alpha_p: float = 1.0,
        ties: str = "first",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        dtype = number_type(dtype)
        alpha = check_float("alpha", alpha, 0.0)
        alpha_theta = check_float("alpha_theta", alpha_theta, 0.0)
        alpha_p = check_float("alpha_p", alpha_p, 0.0)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = check_int("seed", seed, 0)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "alpha": alpha,
            "alpha_theta": alpha_theta,
            "alpha_p": alpha_p,
            "ties": ties,
            "dtype": dtype,
            "seed": seed,
        }
        n = self._n_users
        first = np.zeros(n, np.int64)  # n users in slot 0, none in the others
        first[0] = n
        estimates = initial_estimates(n, self._dim, dtype)
        shared = np.zeros_like(estimates)  # rows of free slots are never read
        shared[0] = estimates[0]
        everyone = np.arange(n)
        state = sclub_splitting.SCLUBState(
            estimates=estimates,
            sums=np.zeros_like(estimates),
            served=np.zeros(n, np.int64),
            checked=np.zeros(n, np.int64),
            slot=np.zeros(n, np.int64),
            links=np.stack([(everyone + 1) % n, (everyone - 1) % n, np.zeros(n)], axis=1).astype(np.int32),
            cluster_estimates=shared,
            cluster_sums=np.zeros(estimates.shape),
            cluster_served=np.zeros(n, np.int64),
            sizes=first,
            unchecked=first.copy(),
            queued=np.zeros(n, np.int64),
            served_range=np.zeros((n, 2), np.int64),
            peak_magnitudes=np.zeros((n, 3)),
            frequency_gap=np.full(n, sclub_splitting.NO_GAP),
            phase_theta=np.zeros((n, self._dim)),
            phase_served=np.zeros(n, np.int64),
            int_params=np.array([0, 0, 0, 1, 0, tie_rule]),
            float_params=np.array([alpha, alpha_theta, alpha_p, sclub_splitting.NO_GAP]),
            generator=new_generator(np.random.default_rng(seed)),
            work_lists=np.zeros((3, 0), np.int64),
            scan_points=np.zeros((0, 0, 64), "float32"),
            free_slots=np.zeros((1, 0), np.uint64),
        )
        self._state = _settled(state)

    def clusters(self) -> list[Cluster]:
        """The sets as they are now."""
        return [Cluster(None, members) for members in group_by_label(self._state.slot[: self._n_users])]

    def memberships(self, user: int) -> Sequence[Membership]:
        """The set of this user, without its members."""
        return [Membership(None, int(self._state.sizes[self._state.slot[self.check_user(user)]]))]

    def group_summary(self) -> GroupSummary:
        """The sets as they are now; they are never complete."""
        return summarize_open_groups(np.flatnonzero(self._state.sizes > 0))

    def _batch_membership(self, users: Ints) -> BatchMembership:
        return Partition(self._state.slot[users])

    def cluster_sizes(self) -> Ints:
        """How many users each set holds, in the order of ``clusters``."""
        sizes: Ints = self._state.sizes[self._state.sizes > 0]
        return sizes

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, each in a set of its own that may merge once it has been served."""
        count = check_int("count", count, 0)
        old, new = self._n_users, self._n_users + count
        if new > len(self._state.served):
            blanks = {"estimates": initial_estimates(1, self._dim), "frequency_gap": sclub_splitting.NO_GAP}
            rows = max(new, 2 * len(self._state.served))
            self._state = _settled(self._state._replace(**grow_rows(self._state, self._user_rows, rows, blanks)))
        state, users = self._state, np.arange(old, new)
        words = np.flatnonzero(state.free_slots[0])[:count]  # enough of them: each has a free slot
        places = np.argwhere(unpack_bits(state.free_slots[0, words, None], 64))[:count]
        slots = 64 * words[places[:, 0]] + places[:, 1]  # the lowest free ones
        np.bitwise_xor.at(state.free_slots[0], slots >> 6, ONE << (slots & 63).astype(np.uint64))
        state.slot[users] = slots
        state.links[users, :2] = users[:, None]
        state.links[slots, sclub_splitting.HEAD] = users
        state.cluster_estimates[slots] = state.estimates[users]
        for name in (
            "cluster_sums",
            "cluster_served",
            "served_range",
            "peak_magnitudes",
            "phase_theta",
            "phase_served",
        ):
            getattr(state, name)[slots] = 0
        state.sizes[slots] = 1
        state.unchecked[slots] = 1
        state.frequency_gap[slots] = sclub_splitting.NO_GAP
        state.int_params[sclub_splitting.N_SLOTS] = max(
            state.int_params[sclub_splitting.N_SLOTS], slots.max(initial=-1) + 1
        )
        self._n_users = self._parameters["n_users"] = new

    def _scoring_row(self, user: int) -> ScoringRow:
        state = self._state
        slot = int(state.slot[user])
        source = EvidenceSource("cluster", None, 1.0, int(state.sizes[slot]), int(state.cluster_served[slot]))
        return ScoringRow(state.cluster_estimates, slot, self._parameters["alpha"], 1.0, (source,))

    def _move_sums(self, user: int, change: Floats) -> None:
        state = self._state
        group = int(state.slot[user])
        for estimates, sums, row in (
            (state.estimates, state.sums, user),
            (state.cluster_estimates, state.cluster_sums, group),
        ):
            shift_estimate(estimates, row, change)
            sums[row, : self._dim] += change
        if state.queued[group] == 0:  # have it looked at: it may have come near to another
            state.queued[group] = 1
            state.work_lists[sclub_splitting.QUEUE, state.int_params[sclub_splitting.N_QUEUED]] = group
            state.int_params[sclub_splitting.N_QUEUED] += 1

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = super()._arrays()
        slots = int(self._state.int_params[sclub_splitting.N_SLOTS])  # those beyond are free
        return arrays | {name: keep_first_rows(arrays[name], slots) for name in ("cluster_estimates", "cluster_sums")}

    def _rebuild_derived(self) -> None:
        self._state = _settled(self._state)

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
        left = np.bincount(state.slot[state.checked == 0], minlength=n)
        right_sizes = np.array_equal(sizes, state.sizes)
        return super()._consistency(state) | {
            "sizes": right_sizes,
            "links": right_sizes and sclub_splitting.has_valid_links(state),
            "unchecked": np.array_equal(left[sizes > 0], state.unchecked[sizes > 0]),
            "int_params": int_params[sclub_splitting.N_SLOTS] == np.flatnonzero(sizes)[-1] + 1
            and 0 <= int_params[sclub_splitting.PHASE] < 62
            and int_params[sclub_splitting.PHASE_END] == 2 ** (int_params[sclub_splitting.PHASE] + 1) - 2
            and int_params[sclub_splitting.T] <= int_params[sclub_splitting.PHASE_END]
            and int_params[sclub_splitting.N_QUEUED] == np.count_nonzero(state.queued),
        }


def _settled(state: sclub_splitting.SCLUBState) -> sclub_splitting.SCLUBState:
    """The same state with what is not saved made from the rest."""
    n, dim = state.phase_theta.shape
    lists = np.zeros((3, n), np.int64)
    waiting = np.flatnonzero(state.queued)
    lists[sclub_splitting.QUEUE, : len(waiting)] = waiting
    points = np.full((n_words(n), dim + 1, sclub_splitting.BLOCK), sclub_splitting.EXCLUDED, "float32")
    full = state._replace(work_lists=lists, scan_points=points, free_slots=pack_bits(state.sizes[np.newaxis] == 0))
    sclub_merging.rebuild_scan_points(full)
    return full
