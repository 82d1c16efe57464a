"""ASGI application of the service: built once at startup from the table of routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from locb.service import errors
from locb.service.api.auth import Tokens
from locb.service.api.context import AppContext
from locb.service.api.middleware import (
    Endpoint,
    JsonResponse,
    MethodRouter,
    RequestRouter,
    authorize,
    make_endpoint,
    respond,
    to_problem,
)
from locb.service.api.openapi import describe_api
from locb.service.api.routes import ROUTES
from locb.service.api.token_file import TokenFile
from locb.service.core.service import Service
from locb.service.dashboard.page_files import INDEX, ChartFiles, PageFiles
from locb.service.responses import encode_json, problem_response


def make_app(
    service: Service, tokens: Tokens, token_file: TokenFile | None = None, prepare_charts: bool = False
) -> ASGIApp:
    """Return the ASGI application, which starts the service at its own startup and stops it at its shutdown.

    Parameters
    ----------
    service : Service
        Service that has not been started.
    tokens : Tokens
        Tokens that clients may use, with their scopes.
    token_file : TokenFile or None, default None
        File that updates ``tokens`` when it changes.
    prepare_charts : bool, default False
        Whether to build the chart files of the dashboard at startup. Otherwise the first request for a chart file
        builds them.
    """
    app = AppContext(service, tokens)
    chart_files = ChartFiles(service.config.data_dir)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        await service.start()
        await run_in_threadpool(int)  # makes Starlette import modules, which would delay the first export by 20 ms
        if prepare_charts:
            chart_files.prepare()
        if token_file is not None:
            service.background.start("token-file", token_file.watch)
        try:
            yield
        finally:
            chart_files.stop()
            await service.stop()

    endpoints: dict[str, dict[str, Endpoint]] = {}
    for route in ROUTES:
        endpoints.setdefault(route.path, {})[route.method] = make_endpoint(app, route)
    page = _page_endpoint(app, PageFiles(chart_files))
    endpoints |= {"/": {"GET": page}, "/page/{file}": {"GET": page}}
    description = encode_json(describe_api(ROUTES, service.model.dim, tokens.required))
    endpoints["/openapi.json"] = {"GET": _static_endpoint(description)}
    routers = {path: MethodRouter(methods) for path, methods in endpoints.items()}
    routes = [StarletteRoute(path, router, methods=None) for path, router in routers.items()]
    fixed = {path: router for path, router in routers.items() if "{" not in path}
    return RequestRouter(Router(routes, default=_not_found, lifespan=lifespan, redirect_slashes=False), fixed)


def _page_endpoint(app: AppContext, files: PageFiles) -> Endpoint:
    """Return the endpoint of the page's files, which contain no data and need no token."""

    async def endpoint(request: Request) -> Response:
        headers = request.scope["headers_by_name"]
        name = request.path_params.get("file", INDEX)
        try:
            authorize(app, request.scope, None)
            return files.get(name, headers.get(b"if-none-match", b"").decode("latin-1"))
        except Exception as error:
            return problem_response(to_problem(error, f"GET {request.scope['path']}"))

    return endpoint


def _static_endpoint(body: bytes) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return JsonResponse(body)

    return endpoint


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    problem = errors.not_found(f"no route has the path {scope['path'][:100]!r}; /openapi.json lists all routes")
    await respond(problem_response(problem), scope, receive, send)
