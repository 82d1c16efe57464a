"""Explanations for policies that score all arms of a user with one estimate (θ̂, A⁻¹) (see ``locb.kernels``)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import Membership
from locb.kernels.common import arm_scoring as kernel
from locb.kernels.common import thompson_sampling
from locb.policies.base.compiled import CompiledPolicy
from locb.policies.base.explanations import EvidenceSource, Explanation
from locb.policies.parameters import TIE_RULES


class SafetyScreen(NamedTuple):
    """Own ridge estimates of u users, for ``screen_arm`` of the kernels. Without rows, nothing is screened."""

    own: Floats = np.empty((0, 0))  # (u, d + p) θ̂ and packed A⁻¹
    widths: Floats = np.empty(0)  # (u,) confidence width per √(xᵀA⁻¹x)
    slack: float = (
        kernel.SCREEN_SLACK
    )  # how far below the largest upper bound a chosen arm may be, in units of its confidence width


class ScoringRows(NamedTuple):
    """Estimates that score the arms of u users by θ̂ᵀx + alpha · √(xᵀA⁻¹x · factor), and the evidence behind them."""

    rows: Floats  # (rows, d + p) θ̂ and packed A⁻¹
    indices: Ints  # (u,) index of the estimate of each user in ``rows``
    alphas: Floats  # (u,) weight of the bonus
    factor: float  # factor of the variance xᵀA⁻¹x
    sources: Sequence[tuple[EvidenceSource, ...]]  # of each user
    memberships: Sequence[Sequence[Membership]]  # of each user
    screen: SafetyScreen = SafetyScreen()
    location: float = 0.0  # added to all estimates
    is_sampled: bool = False  # score arms by a draw from N(θ̂, alpha² A⁻¹), without a screen: ``explain_samples``


class ScoringRowPolicy(CompiledPolicy):
    """Base class of compiled policies that score all arms of a user with one estimate. Adds ``explain``."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the arm that ``recommend`` returns, with the scores of all arms and the evidence behind them."""
        return self.explain_batch([user], [contexts])[0]

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return the result of ``explain`` for each of several users, each with its own contexts."""
        choices, ends, arms = self._check_choices(users, contexts)
        if not choices:
            return []
        checked_users = np.array([user for user, _ in choices])
        rows, indices, alphas, factor, sources, memberships, screen, location, is_sampled = self._scoring_rows(
            checked_users
        )
        estimate, bonus, chosen = np.empty(len(arms)), np.empty(len(arms)), np.empty(len(choices), np.int64)
        ties, generator = TIE_RULES[self._parameters["ties"]], self._state.generator
        replaced = np.zeros(len(choices), bool)
        if is_sampled:
            thompson_sampling.explain_samples(
                rows, indices, ends, arms, alphas, ties, generator, estimate, bonus, chosen
            )
        else:
            kernel.explain(
                rows, indices, ends, arms, alphas, factor, ties, generator, *screen, estimate, bonus, chosen, replaced
            )
        estimate += location
        theta, scale = rows[indices, : self._dim].astype(np.float64), self._reward_scale
        intercept = scale.low + scale.unmap_difference(location)
        if not scale.is_identity:
            estimate, bonus, theta = scale.unmap_scores(estimate, bonus, theta)
        explanations = []
        for i, (arm, stop) in enumerate(zip(chosen.tolist(), ends.tolist(), strict=True)):
            user, offered = choices[i]
            self._check_arm(arm, user, offered)
            own = slice(stop - len(offered), stop)
            explanations.append(
                Explanation(
                    arm, estimate[own], bonus[own], theta[i], sources[i], intercept, memberships[i], bool(replaced[i])
                )
            )
        return explanations

    def _safety_screen(self, users: Ints, width: float) -> SafetyScreen:
        """Return the safety screen of a policy that keeps each user's own estimate; ``width`` is 0 without a screen."""
        if width == 0.0:
            return SafetyScreen()
        return SafetyScreen(self._state.estimates[users].astype(np.float64), np.full(len(users), width))

    @abstractmethod
    def _scoring_rows(self, users: Ints) -> ScoringRows:
        """Return the estimates that currently score the arms of these users."""
