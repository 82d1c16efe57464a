"""Optional capabilities of a policy, as protocols: ``isinstance(policy, SupportsCorrection)``.

A policy that lacks a capability does not have its methods. An exception of such a method therefore never means that the
policy lacks the capability. ``UnavailableError`` means that the current parameters exclude it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from locb.common.validation import check_int
from locb.evaluation.clusters import SimilarUser
from locb.policies.base.checkpoints import Checkpoint
from locb.policies.base.explanations import Estimate, Explanation

if TYPE_CHECKING:
    from locb.policies.base.policy import Policy


@lru_cache(maxsize=256)
def class_supports(policy_class: type, protocol: type) -> bool:
    """Return whether a policy class supports a protocol. The result is cached: ``isinstance`` takes about 10 µs."""
    return issubclass(policy_class, protocol)


class UnavailableError(ValueError):
    """Raised by a policy that supports an operation, but not with its current parameters."""


@runtime_checkable
class SupportsExplain(Protocol):
    """A policy that explains its choices."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the recommended arm with the scores of all arms and the evidence behind them."""

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return one explanation per user."""


@runtime_checkable
class SupportsCorrection(Protocol):
    """A policy that can replace a reward it has learned."""

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Replace the reward ``learned`` of an earlier observation of ``context`` by ``reward``."""


@runtime_checkable
class SupportsSnapshot(Protocol):
    """A policy that can be written to a file which ``locb.load`` reads."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file."""

    def checkpoint(self) -> Checkpoint:
        """Return a copy of the state, which another thread can save to a file while the policy keeps learning."""


@runtime_checkable
class SupportsCertificates(Protocol):
    """A policy that bounds the distance between the users of a cluster."""

    def certificate(self, cluster: Any) -> float:
        """Return an upper bound on the distance between any two users of a cluster."""

    def certifier(self, cluster: Any) -> Callable[[bool], float]:
        """Return a function that computes the certificate from copies, in another thread if needed."""


@runtime_checkable
class SupportsSimilarUsers(Protocol):
    """A policy that lists users similar to a user."""

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Return users who share a cluster with this user, nearest first."""


@runtime_checkable
class SupportsNewUsers(Protocol):
    """A policy that accepts new users at any time."""

    def add_users(self, count: int) -> None:
        """Add ``count`` users."""


@runtime_checkable
class SupportsEstimates(Protocol):
    """A policy with an estimate per user."""

    def estimate(self, user: int) -> Estimate:
        """Return the estimate of a user."""


def explainer(policy: Policy) -> Callable[[Sequence[int], Sequence[Any]], list[Explanation]]:
    """Return ``policy.explain_batch``, or a function that only recommends if the policy cannot explain."""
    if isinstance(policy, SupportsExplain):
        return policy.explain_batch

    def recommend_batch(users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        arms = [policy.recommend(user, offered) for user, offered in zip(users, contexts, strict=True)]
        return [
            Explanation(check_int("the arm from recommend", arm, 0, len(offered) - 1))
            for arm, offered in zip(arms, contexts, strict=True)
        ]

    return recommend_batch
