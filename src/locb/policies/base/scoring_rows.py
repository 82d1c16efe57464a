"""Explanations of policies that score all arms of a user with one row (θ̂, A⁻¹)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats
from locb.kernels.common import arm_scoring as kernel
from locb.policies.base.compiled import CompiledPolicy
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.parameters import TIE_RULES


class ScoringRow(NamedTuple):
    """The row that scores the arms of a user: θ̂ᵀx + α √(xᵀA⁻¹x · factor), and the evidence behind it."""

    rows: Floats  # (…, d + p) θ̂ and A⁻¹
    row: int
    alpha: float
    factor: float
    sources: tuple[EvidenceSource, ...]


class ScoringRowPolicy(CompiledPolicy):
    """A compiled policy that scores all arms of a user with one row of estimates, and so can explain its choices."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the evidence behind them."""
        user, contexts = self._check_choice(user, contexts)
        rows, row, alpha, factor, sources = self._scoring_row(user)
        estimate, bonus = np.empty(len(contexts)), np.empty(len(contexts))
        ties = TIE_RULES[self._parameters["ties"]]
        arm = kernel.explain(rows, row, contexts, alpha, factor, ties, self._state.generator, estimate, bonus)
        self._check_arm(arm, user, contexts)
        return Explanation(arm, estimate, bonus, rows[row, : self._dim].astype(np.float64), sources)

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return ``explain`` for several users, each with its own contexts."""
        return [self.explain(user, offered) for user, offered in zip(users, contexts, strict=True)]

    @abstractmethod
    def _scoring_row(self, user: int) -> ScoringRow:
        """Return the row that scores the arms of a user now."""
