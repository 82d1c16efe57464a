"""What every request passes: how many at once, who is asking, how large, and how problems are told."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from locb.service.api.auth import Tokens, is_loopback
from locb.service.errors import ProblemError

_log = logging.getLogger("locb.service")
_encode = msgspec.json.Encoder().encode

SAFE_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class RequestGuard:
    """Lets requests in.

    Parameters
    ----------
    tokens : Tokens
        None in it: whoever reaches the service may do all. It must then be asked for by a name of this machine, and not
        by a page from elsewhere, so that no page in a browser can ask in another's name.
    most_in_flight : int
        Requests at once.
    most_body : int
        Bytes of a body.
    """

    def __init__(self, tokens: Tokens, most_in_flight: int, most_body: int) -> None:
        self._tokens = tokens
        self._most_in_flight = most_in_flight
        self._most_body = most_body
        self.in_flight = 0

    def enter(self) -> None:
        """Count a request in, or turn it away."""
        if self.in_flight >= self._most_in_flight:
            raise ProblemError(429, "too-many-requests", f"{self.in_flight} requests are under way", retry_after=1)
        self.in_flight += 1

    def leave(self) -> None:
        """Count a request out."""
        self.in_flight -= 1

    def authorize(self, headers: dict[bytes, bytes], scope: str | None) -> None:
        """A problem unless a request with these headers may do what the scope is for."""
        if not self._tokens:
            host = headers.get(b"host", b"localhost").decode("latin-1")
            if not is_loopback(_without_port(host)):
                raise ProblemError(403, "forbidden", f"without tokens only this machine may ask, not {host!r}")
            origin = headers.get(b"origin")
            if origin is not None and not _is_own(origin.decode("latin-1")):
                raise ProblemError(403, "forbidden", "without tokens no page of another machine may ask")
            return
        if scope is None:
            return
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer":
            token = headers.get(b"ocp-apim-subscription-key", b"")
        granted = self._tokens.granted(token.strip())
        if granted is None:
            raise ProblemError(401, "unauthorized", "send a token that the service knows: Authorization: Bearer …")
        if scope not in granted:
            raise ProblemError(403, "forbidden", f"this token is not for {scope!r}")

    async def body(self, request: Request, headers: dict[bytes, bytes]) -> bytes:
        """The body of a request that says it is JSON."""
        kind = headers.get(b"content-type", b"application/json")
        if kind != b"application/json":
            bare = kind.partition(b";")[0].strip().lower()
            if bare != b"application/json" and not bare.endswith(b"+json"):
                told = f"the body must be application/json, not {bare.decode('latin-1')!r}"
                raise ProblemError(415, "unsupported-media-type", told)
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length[:20]) > self._most_body:
            raise self._too_large()
        message = await request.receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body") and len(body) <= self._most_body:
            message = await request.receive()
            body += message.get("body", b"")
        if len(body) > self._most_body:
            raise self._too_large()
        if message["type"] != "http.request":
            raise ProblemError(400, "bad-request", "the body did not arrive")
        return body

    def _too_large(self) -> ProblemError:
        return ProblemError(413, "too-large", f"the body may have at most {self._most_body} bytes")


def _is_own(origin: str) -> bool:
    """Whether the page in a browser that asks was itself served by this machine."""
    return is_loopback(_without_port(origin.partition("://")[2]))


def _without_port(host: str) -> str:
    """The name or address in a Host header."""
    if host.startswith("["):
        return host.partition("]")[0].strip("[]")
    return host.partition(":")[0]


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The message in a body, or a problem that says where it is wrong."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        detail, _, where = str(error).partition(" - at `")
        fields = [where.rstrip("`").removeprefix("$").removeprefix(".")] if where else None
        raise ProblemError(422, "invalid", detail, fields=fields) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ProblemError(400, "bad-request", f"the body is not JSON: {error}") from None


def told(error: ProblemError) -> Response:
    """A problem as a response."""
    headers = SAFE_HEADERS | more_headers(error)
    return Response(_encode(error.problem), int(error.status), headers, "application/problem+json")


def more_headers(error: ProblemError) -> dict[str, str]:
    """What the status of a problem calls for."""
    headers = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if error.status == 408:  # the rest of the body may still come: it is not the next request
        headers["connection"] = "close"
    return headers
