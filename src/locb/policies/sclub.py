"""SCLUB: online clustering of bandits by sets that split and merge (Li, Chen, Li, Leung, 2019)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from locb.arrays import Ints
from locb.clusters import Cluster, groups_by_name
from locb.kernels import sclub as kernel
from locb.kernels import sclub_merging, sclub_sets
from locb.kernels.bits import pack, words_for
from locb.policies.base import CompiledPolicy, new_generator
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.rows import blank_estimates

NOT_SAVED = ("lists", "points", "free")  # room for work, and what follows from the rest


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
    _settings: ClassVar[dict[str, slice]] = {"whole": slice(sclub_sets.TIES, None), "real": slice(sclub_sets.WAKE)}

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
        alpha = real_number("alpha", alpha, 0.0)
        alpha_theta = real_number("alpha_theta", alpha_theta, 0.0)
        alpha_p = real_number("alpha_p", alpha_p, 0.0)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = whole_number("seed", seed, 0)
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
        estimates = blank_estimates(n, self._dim, dtype)
        shared = np.zeros_like(estimates)  # rows of free slots are never read
        shared[0] = estimates[0]
        everyone = np.arange(n)
        state = sclub_sets.SetState(
            estimates=estimates,
            sums=np.zeros_like(estimates),
            served=np.zeros(n, np.int64),
            checked=np.zeros(n, np.int64),
            slot=np.zeros(n, np.int64),
            ring=np.stack([(everyone + 1) % n, (everyone - 1) % n, np.zeros(n)], axis=1).astype(np.int32),
            shared=shared,
            shared_sums=np.zeros(estimates.shape),
            shared_served=np.zeros(n, np.int64),
            sizes=first,
            unchecked=first.copy(),
            moved=np.zeros(n, np.int64),
            span=np.zeros((n, 2), np.int64),
            peaks=np.zeros((n, 3)),
            wake=np.full(n, sclub_sets.NEVER),
            phase_theta=np.zeros((n, self._dim)),
            phase_served=np.zeros(n, np.int64),
            whole=np.array([0, 0, 0, 1, 0, tie_rule]),
            real=np.array([alpha, alpha_theta, alpha_p, sclub_sets.NEVER]),
            generator=new_generator(np.random.default_rng(seed)),
            lists=np.zeros((3, 0), np.int64),
            points=np.zeros((0, 0, 64), "float32"),
            free=np.zeros((1, 0), np.uint64),
        )
        self._state = _with_room(state)

    def clusters(self) -> list[Cluster]:
        """The sets as they are now."""
        return [Cluster(None, members) for members in groups_by_name(self._state.slot)]

    def group_sizes(self) -> Ints:
        """How many users each set holds, in the order of ``clusters``."""
        sizes: Ints = self._state.sizes[self._state.sizes > 0]
        return sizes

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, each in a set of its own that may merge once it has been served."""
        count = whole_number("count", count, 0)
        state, old = self._state, self._n_users
        blank = blank_estimates(count, self._dim, self._parameters["dtype"])
        none = np.zeros(count, np.int64)
        free = np.flatnonzero(np.concatenate([state.sizes, none]) == 0)[:count]  # the lowest free slots
        new = np.arange(old, old + count)
        state = state._replace(
            estimates=np.concatenate([state.estimates, blank]),
            sums=np.concatenate([state.sums, np.zeros_like(blank)]),
            served=np.concatenate([state.served, none]),
            checked=np.concatenate([state.checked, none]),
            slot=np.concatenate([state.slot, free]),
            ring=np.concatenate([state.ring, np.stack([new, new, none], axis=1).astype(np.int32)]),
            shared=np.concatenate([state.shared, blank]),
            shared_sums=np.concatenate([state.shared_sums, np.zeros(blank.shape)]),
            shared_served=np.concatenate([state.shared_served, none]),
            sizes=np.concatenate([state.sizes, none]),
            unchecked=np.concatenate([state.unchecked, none]),
            moved=np.concatenate([state.moved, none]),
            span=np.concatenate([state.span, np.zeros((count, 2), np.int64)]),
            peaks=np.concatenate([state.peaks, np.zeros((count, 3))]),
            wake=np.concatenate([state.wake, np.full(count, sclub_sets.NEVER)]),
            phase_theta=np.concatenate([state.phase_theta, np.zeros((count, self._dim))]),
            phase_served=np.concatenate([state.phase_served, none]),
            whole=state.whole.copy(),
        )
        state.ring[free, sclub_sets.FIRST] = new
        state.shared[free] = blank
        state.shared_sums[free] = 0.0
        state.shared_served[free] = 0
        state.sizes[free] = 1
        state.unchecked[free] = 1
        state.span[free] = 0
        state.peaks[free] = 0.0
        state.wake[free] = sclub_sets.NEVER
        state.phase_theta[free] = 0.0
        state.phase_served[free] = 0
        state.whole[sclub_sets.SLOTS] = np.flatnonzero(state.sizes)[-1] + 1
        self._state = _with_room(state)
        self._n_users = self._parameters["n_users"] = old + count

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: array for name, array in super()._arrays().items() if name not in NOT_SAVED}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if any(name in arrays for name in NOT_SAVED):
            raise ValueError(f"its arrays are {sorted(arrays)}, not {sorted(self._arrays())}")
        super()._restore({**arrays, **{name: getattr(self._state, name) for name in NOT_SAVED}})
        self._state = _with_room(self._state)

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {
            "slot": (0, self._n_users),
            "ring": (0, self._n_users),
            "checked": (0, 2),
            "moved": (0, 2),
        }

    def _consistency(self, state: Any) -> dict[str, bool]:
        n, whole = self._n_users, state.whole
        sizes = np.bincount(state.slot, minlength=n)
        left = np.bincount(state.slot[state.checked == 0], minlength=n)
        right_sizes = np.array_equal(sizes, state.sizes)
        return super()._consistency(state) | {
            "sizes": right_sizes,
            "ring": right_sizes and sclub_sets.is_circular(state),
            "unchecked": np.array_equal(left[sizes > 0], state.unchecked[sizes > 0]),
            "whole": whole[sclub_sets.SLOTS] == np.flatnonzero(sizes)[-1] + 1
            and 0 <= whole[sclub_sets.PHASE] < 62
            and whole[sclub_sets.PHASE_END] == 2 ** (whole[sclub_sets.PHASE] + 1) - 2
            and whole[sclub_sets.T] <= whole[sclub_sets.PHASE_END]
            and whole[sclub_sets.WAITING] == np.count_nonzero(state.moved),
        }


def _with_room(state: sclub_sets.SetState) -> sclub_sets.SetState:
    """The same state with what is not saved made from the rest."""
    n, dim = state.phase_theta.shape
    lists = np.zeros((3, n), np.int64)
    waiting = np.flatnonzero(state.moved)
    lists[sclub_sets.QUEUE, : len(waiting)] = waiting
    points = np.full((words_for(n), dim + 1, sclub_sets.BLOCK), sclub_sets.AWAY, "float32")
    full = state._replace(lists=lists, points=points, free=pack(state.sizes[np.newaxis] == 0))
    sclub_merging.place_points(full)
    return full
