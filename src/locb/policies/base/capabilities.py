"""Optional capabilities of a policy, as protocols that you test with ``isinstance(policy, SupportsCorrection)``.

A policy without a capability does not have the methods of that capability. If a policy has the methods, but cannot
support them with its current parameters, they raise ``UnavailableError``. θ is the parameter vector of a user.
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
    """Return whether a policy class supports a protocol. The result is cached, because ``isinstance`` takes 10 µs."""
    return issubclass(policy_class, protocol)


class UnavailableError(ValueError):
    """Exception of a policy that supports an operation in general, but not with its current parameters."""


@runtime_checkable
class SupportsExplain(Protocol):
    """Capability to explain a choice."""

    def explain(self, user: int, contexts: Any) -> Explanation:
        """Return the recommended arm with the scores of all arms and the sources of the estimates."""

    def explain_batch(self, users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        """Return one explanation per user; ``contexts`` has one array of contexts per user."""


@runtime_checkable
class SupportsCorrection(Protocol):
    """Capability to replace a reward that the policy has learned."""

    def correct(self, user: int, context: Any, learned: float, reward: float) -> None:
        """Replace the reward ``learned`` of an earlier observation of ``context`` by ``reward``."""


@runtime_checkable
class SupportsSnapshot(Protocol):
    """Capability to save a policy to a file that ``locb.load`` reads."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file."""

    def checkpoint(self) -> Checkpoint:
        """Return a copy of the state that another thread can save to a file while the policy keeps learning."""


@runtime_checkable
class SupportsCertificates(Protocol):
    """Capability to bound, with high probability, the distance between the θ of the users of a cluster."""

    def certificate(self, cluster: Any) -> float:
        """Return an upper bound, valid with high probability, on the distance between the θ of any two users."""

    def certifier(self, cluster: Any) -> Callable[[bool], float]:
        """Return a function that computes the certificate from a copy of the state, so that any thread can call it.

        With the argument True, the function returns the exact maximum over all pairs of users. With False, it may
        return a larger bound that takes less time to compute.
        """


@runtime_checkable
class SupportsSimilarUsers(Protocol):
    """Capability to list the users who are similar to a given user."""

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        """Return at most ``limit`` users who share a cluster with ``user``, nearest estimate first."""


@runtime_checkable
class SupportsNewUsers(Protocol):
    """Capability to add users at any time."""

    def add_users(self, count: int) -> None:
        """Add ``count`` users, with the next unused indices. The effect is that of ``count`` calls with one user."""


@runtime_checkable
class SupportsEstimates(Protocol):
    """Capability to estimate the parameter vector of each user."""

    def estimate(self, user: int) -> Estimate:
        """Return the estimate of a user."""


def explainer(policy: Policy) -> Callable[[Sequence[int], Sequence[Any]], list[Explanation]]:
    """Return ``policy.explain_batch``, or a replacement for a policy that cannot explain.

    The explanations of the replacement contain only the recommended arm.
    """
    if isinstance(policy, SupportsExplain):
        return policy.explain_batch

    def recommend_batch(users: Sequence[int], contexts: Sequence[Any]) -> list[Explanation]:
        arms = [policy.recommend(user, offered) for user, offered in zip(users, contexts, strict=True)]
        return [
            Explanation(check_int("the arm from recommend", arm, 0, len(offered) - 1))
            for arm, offered in zip(arms, contexts, strict=True)
        ]

    return recommend_batch
