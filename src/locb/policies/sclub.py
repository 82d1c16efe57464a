"""SCLUB: online clustering of bandits by sets that split and merge (Li, Chen, Li, Leung, 2019)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from locb.clusters import Cluster
from locb.kernels import sclub as kernel
from locb.policies.base import CompiledPolicy, new_generator
from locb.policies.checks import TIE_RULES, number_type, one_of, real_number, whole_number
from locb.policies.linucb import blank_estimates


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
    _settings: ClassVar[dict[str, slice]] = {"whole": slice(kernel.TIES, None), "real": slice(kernel.WAKE)}

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
        self._state = kernel.SetState(
            estimates=blank_estimates(n, self._dim, dtype),
            sums=np.zeros_like(blank_estimates(n, self._dim, dtype)),
            served=np.zeros(n, np.int64),
            checked=np.zeros(n, np.int64),
            slot=np.zeros(n, np.int64),
            shared=blank_estimates(n, self._dim, dtype),
            shared_sums=np.zeros_like(blank_estimates(n, self._dim, dtype)),
            shared_served=np.zeros(n, np.int64),
            sizes=first,
            unchecked=first.copy(),
            moved=np.zeros(n, np.int64),
            phase_theta=np.zeros((n, self._dim)),
            phase_served=np.zeros(n, np.int64),
            whole=np.array([0, 0, 0, 1, 0, tie_rule]),
            real=np.array([alpha, alpha_theta, alpha_p, np.inf]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    def clusters(self) -> list[Cluster]:
        """The sets as they are now."""
        slot = self._state.slot
        return [Cluster(None, np.flatnonzero(slot == c)) for c in np.unique(slot)]

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in, each in a set of its own that may merge once it has been served."""
        count = whole_number("count", count, 0)
        state, old = self._state, self._n_users
        blank = blank_estimates(count, self._dim, self._parameters["dtype"])
        none = np.zeros(count, np.int64)
        free = np.flatnonzero(np.concatenate([state.sizes, none]) == 0)[:count]  # the lowest free slots
        state = state._replace(
            estimates=np.concatenate([state.estimates, blank]),
            sums=np.concatenate([state.sums, np.zeros_like(blank)]),
            served=np.concatenate([state.served, none]),
            checked=np.concatenate([state.checked, none]),
            slot=np.concatenate([state.slot, free]),
            shared=np.concatenate([state.shared, blank]),
            shared_sums=np.concatenate([state.shared_sums, np.zeros_like(blank)]),
            shared_served=np.concatenate([state.shared_served, none]),
            sizes=np.concatenate([state.sizes, none]),
            unchecked=np.concatenate([state.unchecked, none]),
            moved=np.concatenate([state.moved, none]),
            phase_theta=np.concatenate([state.phase_theta, np.zeros((count, self._dim))]),
            phase_served=np.concatenate([state.phase_served, none]),
        )
        state.shared[free] = blank
        state.shared_sums[free] = 0.0
        state.shared_served[free] = 0
        state.sizes[free] = 1
        state.unchecked[free] = 1
        state.phase_theta[free] = 0.0
        state.phase_served[free] = 0
        state.whole[kernel.SLOTS] = np.flatnonzero(state.sizes)[-1] + 1
        self._state = state
        self._n_users = self._parameters["n_users"] = old + count

    def _index_limits(self) -> dict[str, tuple[int, int]]:
        return {"slot": (0, self._n_users)}

    def _consistency(self, state: Any) -> dict[str, bool]:
        sizes = np.bincount(state.slot, minlength=self._n_users)
        return super()._consistency(state) | {
            "sizes": np.array_equal(sizes, state.sizes),
            "whole": state.whole[kernel.SLOTS] == np.flatnonzero(sizes)[-1] + 1
            and 0 <= state.whole[kernel.PHASE] < 62
            and state.whole[kernel.PHASE_END] == 2 ** (state.whole[kernel.PHASE] + 1) - 2
            and state.whole[kernel.T] <= state.whole[kernel.PHASE_END],
        }
