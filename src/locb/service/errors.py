"""Problem responses to failed requests (RFC 9457): types, titles, messages and retry delays."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from http import HTTPStatus

from msgspec import UNSET
from msgspec.structs import replace

from locb.recommender.interfaces import REQUEST_ID
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
    "headers-too-large": "Headers too large",
    "unsupported-media-type": "Unsupported media type",
    "too-many-requests": "Too many requests",
    "unavailable": "Store unavailable",
    "stopping": "Service stopping",
    "timeout": "Request timeout",
    "internal": "Internal error",
}
PROBLEM_URN = "urn:locb:problem:"

# Seconds after which a client can retry, by cause.
RETRY_BUSY = 1
RETRY_STORE = 2
RETRY_EXPORT = 10
RETRY_STOPPING = 5
_SEE_LOG = "see the messages on standard error of the service"
_log = logging.getLogger("locb.service")


class ProblemError(Exception):
    """Failure of a request, which the client receives as a problem response (RFC 9457).

    Parameters
    ----------
    status : int
        HTTP status.
    kind : str
        Problem type, a key of ``TITLES``.
    detail : str
        What was wrong, the offending value, and what is allowed or what to do. Starts in lower case; no final period.
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

    def for_request(self) -> Problem:
        """Return the problem with the id of the current request. Several requests can have the same problem."""
        return replace(self.problem, request_id=REQUEST_ID.get() or UNSET)

    def headers(self) -> dict[str, str]:
        """Return the additional headers of the response: ``Retry-After``, ``WWW-Authenticate`` or ``Connection``."""
        headers = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status == 408:  # the rest of the body can still arrive and must not be parsed as the next request
            headers["connection"] = "close"
        return headers


def invalid(detail: str, *fields: str) -> ProblemError:
    """Return the problem of a well-formed request with an invalid value (422)."""
    return ProblemError(422, "invalid", detail, fields=list(fields) or None)


def bad_request(detail: str, *fields: str) -> ProblemError:
    """Return the problem of a request that cannot be read (400)."""
    return ProblemError(400, "bad-request", detail, fields=list(fields) or None)


def unauthorized() -> ProblemError:
    """Return the problem of a request whose token is missing or unknown (401)."""
    detail = "the token is missing or unknown; send a valid token in the header 'Authorization: Bearer TOKEN'"
    return ProblemError(401, "unauthorized", detail)


def forbidden(detail: str) -> ProblemError:
    """Return the problem of a request whose token, Host header or Origin header does not allow it (403)."""
    return ProblemError(403, "forbidden", detail)


def not_found(detail: str) -> ProblemError:
    """Return the problem of a path that no route or page file has (404)."""
    return ProblemError(404, "not-found", detail)


def unknown_decision(decision_id: str) -> ProblemError:
    """Return the problem of a reward or an activation for a decision that does not exist (404)."""
    cause = (
        f"unknown decision {decision_id!r}: no decision has this id, its user was erased, or its request is not stored"
    )
    source = "the decision_id of a response of /v1/recommend, or the eventId of a response of Personalizer's rank"
    detail = f"{cause}; use {source}"
    return ProblemError(404, "unknown-decision", detail)


def unknown_user(user: str) -> ProblemError:
    """Return the problem of a request about a user who does not exist (404)."""
    cause = "no recommendation was requested for this user, or the user was erased"
    detail = f"unknown user {user!r}: {cause}; check the id, which is case-sensitive"
    return ProblemError(404, "unknown-user", detail)


def unknown_cluster(seed: str) -> ProblemError:
    """Return the problem of a request about a cluster that does not exist (404)."""
    detail = f"no cluster is named after user {seed!r}; GET /v1/clusters lists the names of all clusters"
    return ProblemError(404, "unknown-cluster", detail)


def method_not_allowed(method: str, methods: Iterable[str]) -> ProblemError:
    """Return the problem of a request whose HTTP method the route does not support (405)."""
    detail = f"the path does not support the method {method}; use {' or '.join(methods)}"
    return ProblemError(405, "method-not-allowed", detail)


def read_timeout(seconds: float) -> ProblemError:
    """Return the problem of a request that did not arrive within ``seconds`` (408)."""
    detail = f"the whole request did not arrive within {seconds:g} seconds; send it again"
    return ProblemError(408, "timeout", detail)


def decision_conflict(decision_id: str) -> ProblemError:
    """Return the problem of a decision id that is used for two different requests (409)."""
    detail = f"decision {decision_id!r} already exists for a different request; use another decision_id"
    return ProblemError(409, "conflict", detail)


def reward_conflict(decision_id: str, reward: float) -> ProblemError:
    """Return the problem of a reward for a decision that already has a different reward (409)."""
    detail = f"decision {decision_id!r} already has reward {reward:g}, which cannot be changed"
    return ProblemError(409, "conflict", detail)


def payload_dropped(decision_id: str) -> ProblemError:
    """Return the problem of a repeated request whose response is no longer stored (409)."""
    cause = (
        f"decision {decision_id!r} exists, but its response was dropped, because the decision is older than --retain, "
        "or is not stored, because the decision was imported (--start-from)"
    )
    return ProblemError(409, "conflict", f"{cause}; use another decision_id for a new decision")


def user_of_saved_policy(user: str) -> ProblemError:
    """Return the problem of the erasure of a user whom the saved policy of ``--start-from`` contains (409)."""
    cause = f"user {user!r} cannot be erased: the service started from a saved policy that contains the user"
    advice = "train a policy without the user, and start a new store from it"
    return ProblemError(409, "conflict", f"{cause}, and whose observations are not in the log; {advice}")


def not_activated(decision_id: str) -> ProblemError:
    """Return the problem of a reward for a deferred decision that is not activated (409)."""
    detail = f"decision {decision_id!r} is not activated; activate the event before you send its reward"
    return ProblemError(409, "conflict", detail)


def body_too_large(max_body: int) -> ProblemError:
    """Return the problem of a body of more than ``max_body`` bytes (413)."""
    advice = "send a smaller body, or start the service with a larger --max-body"
    detail = f"the body is larger than the maximum of {max_body} bytes; {advice}"
    return ProblemError(413, "too-large", detail)


def headers_too_large(maximum: int) -> ProblemError:
    """Return the problem of a request line and headers of more than ``maximum`` bytes (431)."""
    advice = "send fewer headers, or start the service with a larger --max-header-bytes"
    detail = f"the request line and the headers are larger than the maximum of {maximum} bytes; {advice}"
    return ProblemError(431, "headers-too-large", detail)


def unsupported_media_type(media_type: str) -> ProblemError:
    """Return the problem of a body whose content type is not JSON (415).

    ``media_type`` is the content type without its parameters; "" if the header is missing.
    """
    allowed = "application/json or a type that ends in +json"
    if media_type:
        detail = f"the content type must be {allowed}, not {media_type!r}"
    else:
        detail = f"the header Content-Type is missing; it must be {allowed}"
    return ProblemError(415, "unsupported-media-type", detail)


def too_many_in_flight(count: int) -> ProblemError:
    """Return the problem of a request above the limit of requests in progress (429)."""
    detail = f"{count} requests are in progress, which is the maximum (--max-in-flight); retry later"
    return ProblemError(429, "too-many-requests", detail, retry_after=RETRY_BUSY)


def too_many_connections(client: str | None, maximum: int) -> ProblemError:
    """Return the problem of an incomplete request whose connection is closed due to too many connections (429).

    ``maximum`` is the limit of the connections of ``client`` or, if this is None, of all connections.
    """
    found = f"there are {maximum} connections" if client is None else f"{client} has {maximum} connections"
    option = "--max-connections" if client is None else "--max-connections-per-client"
    closed = "connections that waited longest for their client were closed; send the request again"
    detail = f"{found}, which is the maximum ({option}): {closed}"
    return ProblemError(429, "too-many-requests", detail, retry_after=RETRY_BUSY)


def too_many_failed_tokens(client: str, seconds: int) -> ProblemError:
    """Return the problem of a request of a client that has sent too many unknown tokens (429)."""
    detail = f"{client} has sent too many unknown tokens; retry after {seconds} seconds, with a valid token"
    return ProblemError(429, "too-many-requests", detail, retry_after=seconds)


def too_many_exports(maximum: int) -> ProblemError:
    """Return the problem of an export above the limit of exports in progress (429)."""
    detail = f"{maximum} exports are in progress, which is the maximum (--max-exports); retry later"
    return ProblemError(429, "too-many-requests", detail, retry_after=RETRY_EXPORT)


def queue_full(waiting: int, count: int, maximum: int) -> ProblemError:
    """Return the problem of ``count`` requests that the queue of the store cannot take (503)."""
    waits = f"decisions and rewards in the queue: {waiting}"
    excess = f"{count} more would exceed the maximum of {maximum} (--max-queue)"
    detail = f"the queue of the store is full: {waits}; {excess}; nothing was queued; retry later"
    return ProblemError(503, "too-many-requests", detail, retry_after=RETRY_BUSY)


def stopping() -> ProblemError:
    """Return the problem of a request that arrives while the service is stopping (503)."""
    detail = "the service is stopping; send the request again after it has restarted"
    return ProblemError(503, "stopping", detail, retry_after=RETRY_STOPPING)


def store_unavailable(reason: object, *, reading: bool = False, unknown: bool = False) -> ProblemError:
    """Return the problem of a store that cannot be written or, if ``reading``, cannot be read (503).

    With ``unknown``, the request may have been stored.
    """
    detail = f"the store cannot be read: {reason}" if reading else f"the store is unavailable: {reason}"
    outcome = "it is unknown whether the request was stored: repeat the request with the same decision_id"
    detail += f"; {outcome if unknown else 'retry later'}"
    return ProblemError(503, "unavailable", detail, retry_after=RETRY_STORE)


def export_failed(reason: object) -> ProblemError:
    """Return the problem of an export whose file cannot be written (503)."""
    detail = f"the export cannot be written to the data folder: {reason}; free disk space, or retry later"
    return ProblemError(503, "unavailable", detail, retry_after=RETRY_STORE)


def first_request_failed(decision_id: str) -> ProblemError:
    """Return the problem of a repeated request whose first request failed (500)."""
    return internal(f"the first request for decision {decision_id!r} failed; {_SEE_LOG}")


def policy_failed(error: Exception, request_id: str | None) -> ProblemError:
    """Log the error of a policy while it is handled, and return the problem of the request (500)."""
    _log.exception("the policy failed to recommend", extra={"request_id": request_id})
    return internal(f"the policy failed to recommend: {type(error).__name__}; {_SEE_LOG}")


def internal(detail: str = f"unexpected error; {_SEE_LOG}") -> ProblemError:
    """Return the problem of an unexpected error (500)."""
    return ProblemError(500, "internal", detail)
