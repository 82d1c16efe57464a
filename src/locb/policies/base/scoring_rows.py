"""Explanations for policies that score all arms of a user with one estimate (θ̂, A⁻¹) (see ``locb.kernels``)."""

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
    """The estimate that scores the arms of a user by θ̂ᵀx + alpha · √(xᵀA⁻¹x · factor), and the evidence behind it."""

    rows: Floats  # (rows, d + p) θ̂ and packed A⁻¹
    row: int  # index of the estimate in ``rows``
    alpha: float  # weight of the bonus
    factor: float  # factor of the variance xᵀA⁻¹x
    sources: tuple[EvidenceSource, ...]


class ScoringRowPolicy(CompiledPolicy):
    """Base class of compiled policies that score all arms of a user with one estimate. Adds ``explain``."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the evidence behind them."""
        user, contexts = self._check_choice(user, contexts)
        rows, row, alpha, factor, sources = self._scoring_row(user)
        estimate, bonus = np.empty(len(contexts)), np.empty(len(contexts))
        ties = TIE_RULES[self._parameters["ties"]]
        arm = kernel.explain(rows, row, contexts, alpha, factor, ties, self._state.generator, estimate, bonus)
        self._check_arm(arm, user, contexts)
        theta = rows[row, : self._dim].astype(np.float64)
        scale = self._reward_scale
        estimate, bonus, theta = scale.unmap_scores(estimate, bonus, theta)
        return Explanation(arm, estimate, bonus, theta, sources, scale.low)

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return the result of ``explain`` for each of several users, each with its own contexts."""
        return [self.explain(user, offered) for user, offered in zip(users, contexts, strict=True)]

    @abstractmethod
    def _scoring_row(self, user: int) -> ScoringRow:
        """Return the estimate that currently scores the arms of a user."""
