"""The routes as an ASGI application."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from locb.service.api.auth import Tokens
from locb.service.api.context import AppContext
from locb.service.api.guard import SAFE_HEADERS, RequestGuard, decode, told
from locb.service.api.openapi import description
from locb.service.api.routes import ROUTES, Route
from locb.service.core.service import Service
from locb.service.dashboard.chart_files import Drawing
from locb.service.dashboard.page_files import Pages
from locb.service.errors import ProblemError, invalid
from locb.service.schemas import MAX_ID_LENGTH
from locb.service.store.database import StoreError

_log = logging.getLogger("locb.service")
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(service: Service, tokens: Tokens, draw_at_once: bool = False) -> ASGIApp:
    """The application; it starts and stops the service with itself.

    What the page draws with is made at once, or when the page is first asked for.
    """
    options = service.options
    app = AppContext(service, RequestGuard(tokens, options.most_in_flight, options.most_body))
    drawing = Drawing(options.data_dir)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await service.start()
        if draw_at_once:
            drawing.prepare()
        try:
            yield
        finally:
            drawing.stop()
            await service.stop()

    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = _endpoint(app, route)
    described = msgspec.json.encode(description(ROUTES, service.model.dim, bool(tokens)))
    by_path["/openapi.json"] = {"GET": _fixed(described)}
    by_path |= {path: {"GET": endpoint} for path, endpoint in Pages(app.guard, drawing).routes().items()}
    routes = [StarletteRoute(path, _by_method(methods), methods=None) for path, methods in by_path.items()]
    return _Encoded(Router(routes, default=_not_found, lifespan=lifespan, redirect_slashes=False))


class _Encoded:
    """Routes by the path as it was sent, so that a name in it may hold a slash, written as %2F."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        await self._app(scope, receive, send)


def _by_method(methods: dict[str, Endpoint]) -> ASGIApp:
    """An endpoint that says which methods a path has."""

    class Endpoints:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            endpoint = methods.get(scope["method"])
            if endpoint is None:
                response = told(ProblemError(405, "method-not-allowed", f"only {' and '.join(methods)} here"))
                response.headers["allow"] = ", ".join(methods)
            else:
                response = await endpoint(Request(scope, receive))
            await response(scope, receive, send)

    return Endpoints()


def _endpoint(app: AppContext, route: Route) -> Endpoint:
    guard, metrics = app.guard, app.metrics
    decoder: msgspec.json.Decoder[Any] | None = None if route.takes is None else msgspec.json.Decoder(route.takes)
    handler, scope, path = route.handler, route.scope, route.path
    took = metrics.clock(path)
    named = "{" in path or bool(route.parameters)

    async def answer(request: Request) -> Response:
        start = time.perf_counter()
        try:
            guard.enter()
        except ProblemError as error:
            metrics.problem(error.status)
            return route.tell(error)
        try:
            headers = dict(request.scope["headers"])
            guard.authorize(headers, scope)
            if decoder is not None:
                body = await guard.body(request, headers)
                result = await handler(app, decode(decoder, body), **(_parameters(request, route) if named else {}))
            else:
                result = await handler(app, **(_parameters(request, route) if named else {}))
            return result if isinstance(result, Response) else app.json(result)
        except ProblemError as error:
            metrics.problem(error.status)
            return route.tell(error)
        except (StoreError, OSError) as error:
            metrics.problem(HTTPStatus.SERVICE_UNAVAILABLE)
            reason = error.strerror if isinstance(error, OSError) else error
            return route.tell(
                ProblemError(503, "unavailable", f"the store cannot be read now: {reason}", retry_after=2)
            )
        except Exception:
            _log.exception("%s %s failed", request.method, path)
            metrics.problem(HTTPStatus.INTERNAL_SERVER_ERROR)
            return route.tell(ProblemError(500, "internal", "the service's log tells more"))
        finally:
            guard.leave()
            took(time.perf_counter() - start)

    return answer


def _parameters(request: Request, route: Route) -> dict[str, str]:
    """The names in the path and in the query."""
    found: dict[str, str] = {}
    for name, value in request.path_params.items():
        try:
            found[name] = unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise ProblemError(400, "bad-request", f"{name} is not UTF-8", fields=[name]) from None
        if len(found[name]) > MAX_ID_LENGTH:
            raise invalid(f"an id has at most {MAX_ID_LENGTH} characters", name)
    found |= {name: value for name, value in request.query_params.items() if name in route.parameters}
    return found


def _fixed(body: bytes) -> Endpoint:
    async def answer(_: Request) -> Response:
        return Response(body, 200, SAFE_HEADERS, "application/json")

    return answer


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    response = told(ProblemError(404, "not-found", "there is nothing at this address; see /openapi.json"))
    await response(scope, receive, send)
