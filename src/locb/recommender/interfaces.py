"""Interfaces of the engine: what differs between the service and the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from locb.recommender.events import DecisionRow, ObservationRow

if TYPE_CHECKING:
    from locb.evaluation.clusters import Membership
    from locb.policies import Explanation, Policy
    from locb.recommender.requests import ParsedRequest

# Id of the current request of the service, which problems and log lines contain; None outside of requests.
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)


class Problems(Protocol):
    """Functions that return the exceptions of failed requests. The module ``locb.recommender.errors`` has them, too."""

    def invalid(self, detail: str, *fields: str) -> Exception:
        """Return the exception for a request with an invalid value; ``fields`` are the paths of the invalid fields."""

    def unknown_user(self, user: str) -> Exception:
        """Return the exception for a request about a user who does not exist."""

    def unknown_decision(self, decision_id: str) -> Exception:
        """Return the exception for a reward or an activation of a decision that does not exist."""

    def not_activated(self, decision_id: str) -> Exception:
        """Return the exception for a reward of a deferred decision that is not activated."""

    def decision_conflict(self, decision_id: str) -> Exception:
        """Return the exception for a decision id that is used for two different requests."""

    def reward_conflict(self, decision_id: str, reward: float) -> Exception:
        """Return the exception for a reward of a decision that already has a different reward."""

    def payload_dropped(self, decision_id: str) -> Exception:
        """Return the exception for a repeated request whose response is no longer stored."""

    def first_request_failed(self, decision_id: str) -> Exception:
        """Return the exception for a repeated request whose first request failed."""

    def policy_failed(self, error: Exception, request_id: str | None) -> Exception:
        """Return the exception for a request for which the policy raised an error. Called while it is handled."""


class Encoder(Protocol):
    """Converter of decisions to responses."""

    def clear_cache(self) -> None:
        """Discard what depends on the names or the number of users. Called when a user is created or erased."""

    def encode(
        self, decision_id: str, parsed: ParsedRequest, explanation: Explanation, memberships: Sequence[Membership]
    ) -> tuple[Any, bytes]:
        """Return the response to a request, and the packed response to store."""

    def chosen_context(self, decision: DecisionRow) -> bytes:
        """Return the features of the chosen arm of a stored decision, as float64; empty if they were dropped."""


class Learner(Protocol):
    """Function that updates a policy with observations, in the given order, and reports those that it rejects."""

    def __call__(
        self, policy: Policy, observations: Sequence[ObservationRow], request_ids: Mapping[int, str | None], /
    ) -> None:
        """Update the policy. ``request_ids`` has the request that sent each reward, by sequence number."""
