"""Middleware around every route: limits, authorization, request body, problems and metrics in one pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from locb.service import errors
from locb.service.api.auth import authorize
from locb.service.api.context import AppContext
from locb.service.api.limits import read_body
from locb.service.api.request_params import read_params
from locb.service.api.routes import Route
from locb.service.errors import ProblemError
from locb.service.responses import JsonResponse, encode_json
from locb.service.store.database import StoreError

_log = logging.getLogger("locb.service")
Endpoint = Callable[[Request], Awaitable[Response]]


def make_endpoint(app: AppContext, route: Route) -> Endpoint:
    """Return the endpoint of a route: its handler, wrapped in everything that all routes have in common."""
    limits, tokens, metrics = app.limits, app.tokens, app.metrics
    handler, scope, query = route.handler, route.scope, route.query
    decoder: msgspec.json.Decoder[Any] | None = (
        None if route.request_type is None else msgspec.json.Decoder(route.request_type)
    )
    observe_seconds = metrics.request_timer(route.path)
    has_params = "{" in route.path or bool(query)

    async def endpoint(request: Request) -> Response:
        start = time.perf_counter()
        if limits.in_flight >= limits.max_in_flight:
            return fail(limits.too_many_requests())
        limits.in_flight += 1
        try:
            headers = dict(request.scope["headers"])
            authorize(tokens, headers, scope)
            if decoder is None:
                result = await (handler(app, **read_params(request, query)) if has_params else handler(app))
            else:
                body = decode_body(decoder, await read_body(request.receive, headers, limits.max_body))
                result = await (handler(app, body, **read_params(request, query)) if has_params else handler(app, body))
            return result if isinstance(result, Response) else JsonResponse(encode_json(result))
        except Exception as error:
            return fail(_to_problem(error, route))
        finally:
            limits.in_flight -= 1
            observe_seconds(time.perf_counter() - start)

    def fail(problem: ProblemError) -> Response:
        metrics.count_problem(problem.status)
        return route.render_problem(problem)

    return endpoint


def decode_body(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Decode and validate a JSON body.

    Raises
    ------
    ProblemError
        400 if the body is not JSON, 422 if it does not match the schema.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        detail, _, path = str(error).partition(" - at `")
        fields = [path.rstrip("`").removeprefix("$").removeprefix(".")] if path else []
        raise errors.invalid(detail, *fields) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the body is not valid JSON: {error}") from None


def _to_problem(error: Exception, route: Route) -> ProblemError:
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, StoreError | OSError):
        reason = error.strerror if isinstance(error, OSError) else error
        return errors.store_unavailable(reason, reading=True)
    _log.error("%s %s failed", route.method, route.path, exc_info=error)
    return errors.internal()
