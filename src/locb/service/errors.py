"""Problems of requests (RFC 9457): an exception with a status, a type, a title and a detail."""

from __future__ import annotations

from http import HTTPStatus

from msgspec import UNSET

from locb.service.schemas import Problem

# Title of each problem type. The type in a response is the key, prefixed with PROBLEM_URN.
TITLES = {
    "bad-request": "Bad request",
    "invalid": "Invalid request",
    "unauthorized": "Unauthorized",
    "forbidden": "Forbidden",
    "not-found": "Not found",
    "unknown-decision": "Unknown decision",
    "unknown-user": "Unknown user",
    "unknown-cluster": "Unknown cluster",
    "method-not-allowed": "Method not allowed",
    "conflict": "Conflict",
    "too-large": "Request too large",
    "unsupported-media-type": "Unsupported media type",
    "too-many-requests": "Too many requests",
    "unavailable": "Store unavailable",
    "stopping": "Service stopping",
    "timeout": "Request timeout",
    "internal": "Internal error",
}
PROBLEM_URN = "urn:locb:problem:"


class ProblemError(Exception):
    """Problem that ends a request.

    Parameters
    ----------
    status : int
        HTTP status.
    kind : str
        Problem type, a key of ``TITLES``.
    detail : str
        What was wrong, with the offending value, and what is allowed or what to do. Lower case, without a period.
    fields : list of str, optional
        Paths of the fields that caused the problem.
    retry_after : int, optional
        Seconds after which the client can retry.
    """

    def __init__(
        self, status: int, kind: str, detail: str, *, fields: list[str] | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = HTTPStatus(status)
        self.retry_after = retry_after
        self.problem = Problem(
            PROBLEM_URN + kind,
            TITLES[kind],
            status,
            detail,
            UNSET if fields is None else fields,
        )


def invalid(detail: str, *fields: str) -> ProblemError:
    """Return the problem of a well-formed request with an invalid value (422)."""
    return ProblemError(422, "invalid", detail, fields=list(fields) or None)
