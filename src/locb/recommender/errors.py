"""Exceptions of the library for failed requests. ``locb.service.errors`` has those of the service."""

from __future__ import annotations


class LibraryProblems:
    """Functions that return the exceptions of a recommender, see ``interfaces.Problems``.

    Parameters
    ----------
    max_decisions : int
        Number of recent decisions that the recommender keeps.
    """

    def __init__(self, max_decisions: int) -> None:
        self._max_decisions = max_decisions

    def invalid(self, detail: str, *fields: str) -> ValueError:
        """Return the exception for a request with an invalid value."""
        where = [field for field in fields if "[" in field]
        return ValueError(f"{', '.join(where)}: {detail}" if where else detail)

    def unknown_user(self, user: str) -> ValueError:
        """Return the exception for a request about a user who does not exist."""
        return ValueError(f"unknown user {user!r}: call recommend() for the user first")

    def unknown_decision(self, decision_id: str) -> ValueError:
        """Return the exception for a reward of a decision that does not exist."""
        kept = f"it is older than the last {self._max_decisions:,} decisions (max_decisions)"
        source = "use the decision_id of a result of recommend()"
        return ValueError(f"unknown decision {decision_id!r}: no decision has this id, or {kept}; {source}")

    def not_activated(self, decision_id: str) -> ValueError:
        """Return the exception for a reward of a deferred decision."""
        return ValueError(f"decision {decision_id!r} is not activated")

    def decision_conflict(self, decision_id: str) -> ValueError:
        """Return the exception for a decision id that is used for two different requests."""
        return ValueError(f"decision {decision_id!r} already exists for a different request; use another decision_id")

    def reward_conflict(self, decision_id: str, reward: float) -> ValueError:
        """Return the exception for a reward of a decision that already has a different reward."""
        return ValueError(f"decision {decision_id!r} already has reward {reward:g}, which cannot be changed")

    def payload_dropped(self, decision_id: str) -> ValueError:
        """Return the exception for a repeated request whose response is no longer stored."""
        return ValueError(f"decision {decision_id!r} exists, but its response is not stored; use another decision_id")

    def first_request_failed(self, decision_id: str) -> ValueError:
        """Return the exception for a repeated request whose first request failed."""
        return ValueError(f"the first request for decision {decision_id!r} failed; use another decision_id")

    def policy_failed(self, error: Exception, request_id: str | None) -> Exception:  # noqa: ARG002 - see Problems
        """Return the exception of the policy itself."""
        return error
