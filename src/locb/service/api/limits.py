"""Limits of requests: number in progress, content type and size of the body."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Receive

from locb.service import errors
from locb.service.errors import ProblemError


@dataclass(slots=True)
class Limits:
    """Configured limits, and the number of requests in progress.

    Parameters
    ----------
    max_in_flight : int
        Maximum number of requests in progress.
    max_body : int
        Maximum size of a request body in bytes.
    """

    max_in_flight: int
    max_body: int
    in_flight: int = 0

    def too_many_requests(self) -> ProblemError:
        """Return the problem of a request that exceeds ``max_in_flight``."""
        return errors.too_many_in_flight(self.in_flight)


async def read_body(receive: Receive, headers: dict[bytes, bytes], max_body: int) -> bytes:
    """Return the body of a JSON request of at most ``max_body`` bytes.

    Raises
    ------
    ProblemError
        415 for another content type, 413 for a body that is too large, 400 for an incomplete one.
    """
    content_type = headers.get(b"content-type", b"application/json")
    if content_type != b"application/json":
        media_type = content_type.partition(b";")[0].strip().lower()
        if media_type != b"application/json" and not media_type.endswith(b"+json"):
            raise errors.unsupported_media_type(media_type.decode("latin-1"))
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > max_body:
        raise errors.body_too_large(max_body)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body") and len(body) <= max_body:
        message = await receive()
        body += message.get("body", b"")
    if len(body) > max_body:
        raise errors.body_too_large(max_body)
    if message["type"] != "http.request":
        raise errors.bad_request("the body is incomplete: the client closed the connection")
    return body
