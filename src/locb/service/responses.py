"""Problem responses, the security headers that every response has, and responses that end with their client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Receive

from locb.service.errors import ProblemError

SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

T = TypeVar("T")
encode_json = msgspec.json.Encoder().encode


def problem_response(error: ProblemError) -> Response:
    """Return a problem as ``application/problem+json`` (RFC 9457)."""
    headers = SECURITY_HEADERS | error.headers()
    return Response(encode_json(error.for_request()), int(error.status), headers, "application/problem+json")


async def until_disconnect(work: Awaitable[T], receive: Receive) -> T | None:
    """Return the result of ``work``, or cancel it when the client closes the connection, and return None.

    The body of the request must be empty or read.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.create_task(_wait_for_disconnect(receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.wait([working])
    return None


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
