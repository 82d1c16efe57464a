"""Middleware of all routes: routing, request ids, limits, authorization, bodies, responses, problems and metrics."""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from itertools import count
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from locb.recommender.interfaces import REQUEST_ID
from locb.service import errors
from locb.service.api.context import AppContext
from locb.service.api.limits import MIN_NAME_BYTES, Limits
from locb.service.api.request_params import read_params
from locb.service.api.routes import Route
from locb.service.errors import ProblemError
from locb.service.responses import SECURITY_HEADERS, encode_json, problem_response, until_disconnect
from locb.service.store.database import StoreError

REQUEST_ID_HEADER = b"x-request-id"
_log = logging.getLogger("locb.service")
_is_request_id = re.compile(rb"[!-~]{1,128}").fullmatch  # visible ASCII characters
_id_prefix, _id_numbers = secrets.token_hex(10), count(1)  # generated ids differ between processes
_JSON_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
_JSON_HEADERS.append((b"content-type", b"application/json"))
Endpoint = Callable[[Request], Awaitable[Response]]


def make_request_id(headers: dict[bytes, bytes]) -> str:
    """Return the id of a request: the value of its header ``X-Request-Id``, or a new id.

    A new id is generated if the header is missing, or if its value is not 1 to 128 visible ASCII characters.
    """
    given = headers.get(REQUEST_ID_HEADER)
    return given.decode() if given and _is_request_id(given) else f"{_id_prefix}{next(_id_numbers):012x}"


class RequestRouter:
    """Router that gives each request an id, and matches the raw path.

    With the raw path, an id in a path can contain a slash, encoded as ``%2F``.

    Parameters
    ----------
    router : ASGI application
        Router of all paths.
    fixed : mapping of str to ASGI application
        Applications of paths without parameters, which need no search for the route.
    """

    def __init__(self, router: ASGIApp, fixed: Mapping[str, ASGIApp]) -> None:
        self._router = router
        self._fixed = fixed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route an HTTP request, or close a WebSocket connection."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        if scope["type"] == "http":
            scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
            scope["headers_by_name"] = headers = dict(scope["headers"])  # for the endpoints
            request_id = make_request_id(headers)
            REQUEST_ID.set(request_id)
            scope["response_headers"] = ((REQUEST_ID_HEADER, request_id.encode()),)
            if (b"host" not in headers or len(headers) < len(scope["headers"])) and not has_one_host(scope):
                count = count_hosts(scope)
                problem = errors.bad_request(f"an HTTP/1.1 request must have exactly one Host header, not {count}")
                await respond(problem_response(problem), scope, receive, send)
                return
            await self._fixed.get(scope["path"], self._router)(scope, receive, send)
        else:
            await self._router(scope, receive, send)


def count_hosts(scope: Scope) -> int:
    """Return the number of ``Host`` headers of a request."""
    return sum(name == b"host" for name, _ in scope["headers"])


def has_one_host(scope: Scope) -> bool:
    """Return whether a request has one ``Host`` header or, as HTTP/1.0 allows, none."""
    count = count_hosts(scope)
    return count == 1 or bool(count == 0 and scope["http_version"] == "1.0")


async def respond(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send a response with the id of its request."""
    response.raw_headers += scope["response_headers"]
    send_whole = scope.get("send_whole")
    if (
        type(response) is not JsonResponse
        or send_whole is None
        or not send_whole(response.status_code, response.raw_headers, response.body)
    ):
        await response(scope, receive, send)


def authorize(app: AppContext, request: Scope, scope: str | None) -> None:
    """Check that a request is allowed.

    If the service has tokens, the request needs a token with this scope, unless the scope is None.

    If the service has no tokens, the header ``Host`` must name localhost or a loopback address, and the header
    ``Origin``, which browsers send, must be the origin of the service itself. Otherwise any web page could use the
    service through the browser of its visitor.

    Raises
    ------
    ProblemError
        The problems of ``Authorizer.check``; 403 if one of the two headers has another value.
    """
    if app.tokens.required:
        app.authorizer.check(request, scope)
        return
    headers = request["headers_by_name"]
    host = headers.get(b"host", b"localhost").decode("latin-1")
    if not is_loopback(_without_port(host)):
        raise errors.forbidden(_not_local("Host", "name localhost or a loopback address", host))
    origin = headers.get(b"origin", b"").decode("latin-1")
    if b"origin" in headers and origin != f"http://{host}":
        raise errors.forbidden(_not_local("Origin", f"be the address of this service, 'http://{host}'", origin))


def _not_local(header: str, allowed: str, value: str) -> str:
    problem = f"the {header} header must {allowed}, not {value!r}"
    return f"this service has no tokens: {problem}; to allow other hosts, start the service with --token-file"


def _without_port(host: str) -> str:
    """Return the host name or address in the value of a Host header, without the port and the brackets of IPv6."""
    if host.startswith("["):
        return host.partition("]")[0].strip("[]")
    return host.partition(":")[0]


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address. Other host names are not resolved."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class MethodRouter:
    """Application of one path, which calls the endpoint of the HTTP method."""

    def __init__(self, endpoints: dict[str, Endpoint]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the endpoint, or respond with 405."""
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            problem = errors.method_not_allowed(scope["method"], self._endpoints)
            response = problem_response(problem)
            response.headers["allow"] = ", ".join(self._endpoints)
        else:
            response = await endpoint(Request(scope, receive))
        await respond(response, scope, receive, send)


def make_endpoint(app: AppContext, route: Route) -> Endpoint:
    """Return the endpoint of a route: its handler, with the limits, authorization, problems and metrics of the app."""
    limits, metrics, limited = app.limits, app.metrics, route.limited
    service = app.service
    handler, scope, query = route.handler, route.scope, route.query
    decoder: msgspec.json.Decoder[Any] | None = (
        None if route.request_type is None else msgspec.json.Decoder(route.request_type)
    )
    observe_seconds = metrics.request_timer(route.path)
    has_params = "{" in route.path or bool(query)

    async def endpoint(request: Request) -> Response:
        start = time.perf_counter()
        working = False
        try:
            headers = request.scope["headers_by_name"]
            authorize(app, request.scope, scope)
            if limited and service.fatal_error is not None:  # the state in memory does not match the log
                raise errors.store_unavailable(service.fatal_error)
            content = b"" if decoder is None else await read_body(request.receive, headers, limits)
            if limited and limits.in_flight >= limits.max_in_flight:
                raise limits.too_many_requests()
            limits.in_flight += 1
            working = True
            if route.ends_with_client:
                result = await until_disconnect(handler(app), request.receive)
            elif decoder is None:
                result = await (handler(app, **read_params(request, query)) if has_params else handler(app))
            else:
                body = decode_body(decoder, content)
                result = await (handler(app, body, **read_params(request, query)) if has_params else handler(app, body))
            return make_response(result, route.status)
        except Exception as error:
            return fail(to_problem(error, f"{route.method} {route.path}"))
        finally:
            limits.in_flight -= working
            observe_seconds(time.perf_counter() - start)

    def fail(problem: ProblemError) -> Response:
        metrics.count_problem(problem.status)
        return route.render_problem(problem)

    return endpoint


class JsonResponse(Response):
    """Response with an encoded JSON body. The constant headers are built only once, for speed."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [*_JSON_HEADERS, (b"content-length", b"%d" % len(body))]


def make_response(result: Any, status: int) -> Response:
    """Convert the result of a handler to a response. ``status`` is the status of a successful response of the route."""
    if isinstance(result, bytes):
        return JsonResponse(result, status)
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=status, headers=SECURITY_HEADERS)
    return JsonResponse(encode_json(result), status)


async def read_body(receive: Receive, headers: dict[bytes, bytes], limits: Limits) -> bytes:
    """Return the body of a JSON request of at most ``limits.max_body`` bytes.

    Raises
    ------
    ProblemError
        415 for a missing or another content type, 413 for a body that is too large, 400 for an incomplete body, 422 for
        a body with too many names.
    """
    max_body = limits.max_body
    content_type = headers.get(b"content-type", b"")
    if content_type != b"application/json":
        media_type = content_type.partition(b";")[0].strip().lower()
        if media_type != b"application/json" and not media_type.endswith(b"+json"):
            raise errors.unsupported_media_type(media_type.decode("latin-1"))
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > max_body:
        raise errors.body_too_large(max_body)
    limits.arriving += 1
    try:
        message = await receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body") and len(body) <= max_body:
            message = await receive()
            body += message.get("body", b"")
    finally:
        limits.arriving -= 1
    if len(body) > max_body:
        raise errors.body_too_large(max_body)
    if message["type"] != "http.request":
        raise errors.bad_request("the body is incomplete, because the client closed the connection; send it again")
    if len(body) > MIN_NAME_BYTES * limits.max_names:  # a smaller body cannot have too many names
        limits.check_names(body)
    return body


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
        if detail.startswith("Object contains unknown field"):
            detail += _list_fields(decoder.type, path)
        fields = [path.rstrip("`").removeprefix("$").removeprefix(".")] if path else []
        raise errors.invalid(detail, *fields) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the body is not valid JSON: {error}") from None


def _list_fields(model: Any, path: str) -> str:
    """Return a clause with the fields of the object that ``path`` names in a body, or "" if it names no object."""
    for name in re.findall(r"\.(\w+)", path):
        model = next((field.type for field in _struct_fields(model) if field.encode_name == name), None)
    names = [field.encode_name for field in _struct_fields(model)]
    return f"; the allowed fields are {', '.join(names)}" if names else ""


def _struct_fields(annotation: Any) -> tuple[FieldInfo, ...]:
    """Return the fields of the first ``Struct`` in a type such as ``Annotated[list[Arm], …]``."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return msgspec.structs.fields(annotation)
    return next((found for part in get_args(annotation) if (found := _struct_fields(part))), ())


def to_problem(error: Exception, request: str) -> ProblemError:
    """Return the problem for an exception of a handler.

    A ``ProblemError`` is returned unchanged. ``StoreError`` and ``OSError`` give a 503 problem. Any other exception
    gives a 500 problem and is logged with ``request``, the method and path of the request.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, StoreError | OSError):
        reason = error.strerror if isinstance(error, OSError) else error
        return errors.store_unavailable(reason, reading=True)
    _log.error("%s failed", request, exc_info=error)
    return errors.internal()
