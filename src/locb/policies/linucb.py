"""LinUCB: everyone learns alone (LinUCB-IND), or all share one estimate (LinUCB-ONE)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.linucb import loop as kernel
from locb.kernels.linucb.state import TIES, LinUCBState, T
from locb.policies.base.compiled import CompiledPolicy, new_generator
from locb.policies.base.explanations import EvidenceSource, ScoringRow
from locb.policies.base.validation import TIE_RULES, check_float, check_int, number_type, one_of
from locb.policies.state.corrections import shift_estimate
from locb.policies.state.user_rows import grow_rows, initial_estimates


class LinUCB(CompiledPolicy):
    """Linear bandit with an upper confidence bound: score θ̂ᵀx + α √(xᵀA⁻¹x).

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    alpha : float
        Weight of the bonus for what is uncertain.
    shared : bool
        One estimate for all users (LinUCB-ONE) instead of one each (LinUCB-IND).
    ties : "first" or "random"
        Which of the arms within 1e-9 of the highest score to take.
    dtype : "float64" or "float32"
        Of what is kept for every user; "float32" takes half of the memory, and rewards may be at most 1e30 in size.
    seed : int
        For random ties.

    Examples
    --------
    >>> policy = LinUCB(n_users=2, dim=2)
    >>> policy.update(0, [1.0, 0.0], 1.0)
    >>> policy.recommend(0, [[0.0, 1.0], [1.0, 0.0]])
    1
    """

    _kernel: ClassVar[Any] = kernel
    _user_rows: ClassVar[tuple[str, ...]] = ("estimates", "served")
    _settings: ClassVar[dict[str, slice]] = {"int_params": slice(TIES, None), "float_params": slice(None)}

    def __init__(
        self,
        *,
        n_users: int,
        dim: int,
        alpha: float = 1.0,
        shared: bool = False,
        ties: str = "first",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        super().__init__(n_users=n_users, dim=dim)
        dtype = number_type(dtype)
        if not isinstance(shared, bool | np.bool_):
            raise ValueError(f"shared must be True or False, not {shared!r}")
        alpha = check_float("alpha", alpha, 0.0)
        tie_rule = one_of("ties", ties, TIE_RULES)
        seed = check_int("seed", seed, 0)
        self._shared = bool(shared)
        self._parameters = {
            "n_users": self._n_users,
            "dim": self._dim,
            "alpha": alpha,
            "shared": self._shared,
            "ties": ties,
            "dtype": dtype,
            "seed": seed,
        }
        self._state = LinUCBState(
            estimates=initial_estimates(1 if shared else self._n_users, self._dim, dtype),
            served=np.zeros(self._n_users, np.int64),
            int_params=np.array([0, tie_rule, int(self._shared)]),
            float_params=np.array([alpha]),
            generator=new_generator(np.random.default_rng(seed)),
        )

    @property
    def theta(self) -> Floats:
        """The users' estimates: (n, d). Read-only."""
        return np.broadcast_to(super().theta, (self._n_users, self._dim)) if self._shared else super().theta

    def _deviation(self, user: int) -> Floats:
        return super()._deviation(0 if self._shared else user)

    def add_users(self, count: int) -> None:
        """Let ``count`` more users in."""
        new = self._n_users + check_int("count", count, 0)
        state = self._state
        if new > len(state.served):
            names = ("served",) if self._shared else self._user_rows
            blanks = {"estimates": initial_estimates(1, self._dim)}
            self._state = state._replace(**grow_rows(state, names, max(new, 2 * len(state.served)), blanks))
        self._n_users = self._parameters["n_users"] = new

    def _scoring_row(self, user: int) -> ScoringRow:
        state = self._state
        if self._shared:
            row, source = 0, EvidenceSource("everyone", None, 1.0, self._n_users, int(state.int_params[T]))
        else:
            row, source = user, EvidenceSource("user", None, 1.0, 1, int(state.served[user]))
        return ScoringRow(state.estimates, row, self._parameters["alpha"], 1.0, (source,))

    def _move_sums(self, user: int, change: Floats) -> None:
        shift_estimate(self._state.estimates, 0 if self._shared else user, change)

    def _own_estimates(self, users: Ints) -> Floats:
        if self._shared:
            raise ValueError("certificate needs an estimate a user, and this LinUCB shares one (shared=True)")
        return super()._own_estimates(users)
