"""What can be wrong with a request, as RFC 9457 tells it."""

from __future__ import annotations

from http import HTTPStatus

from msgspec import UNSET

from locb.service.schemas import Problem

# The kinds of problems, each with the title that people read; docs/service.md tells more of each.
TITLES = {
    "bad-request": "The request cannot be read",
    "invalid": "The request does not fit",
    "unauthorized": "A token is needed",
    "forbidden": "The token is not for this",
    "not-found": "There is no such thing here",
    "unknown-decision": "There is no such decision",
    "unknown-user": "There is no such user",
    "unknown-cluster": "There is no such cluster",
    "method-not-allowed": "This is not done here",
    "conflict": "It was told otherwise before",
    "too-large": "The request is too large",
    "unsupported-media-type": "The body must be JSON",
    "too-many-requests": "Too many requests at once",
    "unavailable": "The store cannot be written now",
    "stopping": "The service is stopping",
    "timeout": "The request took too long to arrive",
    "internal": "A fault of the service",
}


class ProblemError(Exception):
    """An answer that is not the one hoped for."""

    def __init__(
        self, status: int, kind: str, detail: str, *, fields: list[str] | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = HTTPStatus(status)
        self.retry_after = retry_after
        self.problem = Problem(
            f"urn:locb:problem:{kind}",
            TITLES[kind],
            status,
            detail,
            UNSET if fields is None else fields,
        )


def invalid(detail: str, *fields: str) -> ProblemError:
    """The request can be read, but a value in it does not fit."""
    return ProblemError(422, "invalid", detail, fields=list(fields) or None)
