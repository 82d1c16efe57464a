"""OpenAPI description of the service, built from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec

from locb.recommender.requests import MAX_FEATURE
from locb.service.api.personalizer.schemas import KEY_HEADER, ErrorResponse
from locb.service.api.routes import Route
from locb.service.responses import problem_response
from locb.service.schemas import Id, Problem

# Problem statuses of all routes; of routes that need a token; that have a body; and that have an id in the path.
ALL_STATUSES, TOKEN_STATUSES, BODY_STATUSES, ID_STATUSES = (
    (400, 429, 431, 503),
    (401, 403),
    (408, 413, 415, 422),
    (422,),
)
# The header with the id of a request, which requests can have and all responses have.
REQUEST_ID_PARAMETER = {
    "name": "X-Request-Id",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "Id of the request: 1 to 128 visible ASCII characters. Any other value is replaced by a new id.",
}
_ID_HEADER = {"required": True, "schema": {"type": "string"}, "description": "Id of the request, as sent or generated."}


def describe_api(routes: Iterable[Route], dim: int, has_tokens: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the API.

    Parameters
    ----------
    routes : iterable of Route
        Routes to describe.
    dim : int
        Number of features per arm.
    has_tokens : bool
        Whether the service requires tokens.
    """
    routes = list(routes)
    used = {kind for route in routes for kind in (route.request_type, route.response_type) if isinstance(kind, type)}
    types = [*sorted(used, key=lambda kind: (kind.__module__, kind.__name__)), Problem, ErrorResponse]
    references, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, references, strict=True))
    feature_array = schemas["Arm"]["properties"]["features"]["anyOf"][0]
    value_range = {"minimum": -MAX_FEATURE, "maximum": MAX_FEATURE}
    feature_array |= {"items": {"type": "number", **value_range}, "minItems": dim, "maxItems": dim}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, has_tokens)
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "locb",
            "version": version("locb"),
            "description": "Recommends items (arms) to users, and learns from the rewards that clients send later.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": {"RequestId": _ID_HEADER},
            "securitySchemes": schemes if has_tokens else {},
        },
    }


def _operation(route: Route, schema_of: dict[type, dict[str, Any]], has_tokens: bool) -> dict[str, Any]:
    path_params = re.findall(r"{(\w+)}", route.path)
    id_schema = msgspec.json.schema(Id)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": id_schema} for name in path_params
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in route.query.items()
    ]
    parameters.append(REQUEST_ID_PARAMETER)
    responses: dict[str, Any] = {
        str(status): _response(route, status, schema_of) for status in (route.status, *route.other_statuses)
    }
    statuses = _problem_statuses(route, has_tokens, bool(path_params))
    if route.render_problem is problem_response:
        content = {"application/problem+json": {"schema": schema_of[Problem]}}
    else:
        content = {"application/json": {"schema": schema_of[ErrorResponse]}}
        statuses.discard(422)
    for status in sorted(statuses):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for response in responses.values():
        response["headers"] = {REQUEST_ID_PARAMETER["name"]: {"$ref": "#/components/headers/RequestId"}}
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
        "security": [{"bearer": []}, {"key": []}] if has_tokens and route.scope else [],
    }
    if route.request_type is not None:
        body = {"application/json": {"schema": schema_of[route.request_type]}}
        operation["requestBody"] = {"required": True, "content": body}
    return operation


def _problem_statuses(route: Route, has_tokens: bool, has_id: bool) -> set[int]:
    statuses = {*ALL_STATUSES, *route.problem_statuses}
    if not route.limited:
        statuses -= {429, 503}
    if not has_tokens:
        statuses.add(403)
    elif route.scope:
        statuses |= {*TOKEN_STATUSES}
    if route.request_type:
        statuses |= {*BODY_STATUSES}
    if has_id:
        statuses |= {*ID_STATUSES}
    return statuses


def _response(route: Route, status: int, schema_of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if isinstance(route.response_type, type):
        response["content"] = {"application/json": {"schema": schema_of[route.response_type]}}
    elif route.response_type is not None:
        response["content"] = {route.response_type.partition(";")[0]: {"schema": {"type": "string"}}}
    return response
