"""The API described for machines, from the table of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec

from locb.service.api.guard import told
from locb.service.api.personalizer.schemas import KEY_HEADER, ErrorResponse
from locb.service.api.routes import Route
from locb.service.request_parsing import LARGEST_FEATURE
from locb.service.schemas import Id, Problem

# What any request may be answered with, and those that have a body.
ALWAYS, WITH_TOKEN, WITH_BODY, WITH_NAME = (400, 429), (401, 403), (408, 413, 415, 422), (422,)


def description(routes: Iterable[Route], dim: int, tokens: bool) -> dict[str, Any]:
    """OpenAPI 3.1 of a service whose arms have ``dim`` features, with or without tokens."""
    routes = list(routes)
    used = {kind for route in routes for kind in (route.takes, route.gives) if isinstance(kind, type)}
    kinds = [*sorted(used, key=lambda kind: (kind.__module__, kind.__name__)), Problem, ErrorResponse]
    schemas_of, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    told_as = dict(zip(kinds, schemas_of, strict=True))
    numbers = schemas["Arm"]["properties"]["features"]["anyOf"][0]
    size = {"minimum": -LARGEST_FEATURE, "maximum": LARGEST_FEATURE}
    numbers |= {"items": {"type": "number", **size}, "minItems": dim, "maxItems": dim}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, told_as, tokens)
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "locb",
            "version": version("locb"),
            "description": "Ask which item to show a user, send the reward later.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": schemes if tokens else {},
        },
    }


def _operation(route: Route, told_as: dict[type, dict[str, Any]], tokens: bool) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", route.path)
    name_schema = msgspec.json.schema(Id)
    parameters = [{"name": name, "in": "path", "required": True, "schema": name_schema} for name in names]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in route.parameters.items()
    ]
    statuses = {*ALWAYS, *route.problems}
    if not tokens:
        statuses.add(403)
    elif route.scope:
        statuses |= {*WITH_TOKEN}
    statuses |= {*WITH_BODY} if route.takes else set()
    statuses |= {*WITH_NAME} if names else set()
    responses: dict[str, Any] = {
        str(status): _response(route, status, told_as) for status in (route.status, *route.also)
    }
    if route.tell is told:
        problem = {"application/problem+json": {"schema": told_as[Problem]}}
    else:
        problem = {"application/json": {"schema": told_as[ErrorResponse]}}
        statuses.discard(422)
    for status in sorted(statuses):
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
        "security": [{"bearer": []}, {"key": []}] if tokens and route.scope else [],
    }
    if route.takes is not None:
        content = {"application/json": {"schema": told_as[route.takes]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _response(route: Route, status: int, told_as: dict[type, dict[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if isinstance(route.gives, type):
        told["content"] = {"application/json": {"schema": told_as[route.gives]}}
    elif route.gives is not None:
        told["content"] = {route.gives.partition(";")[0]: {"schema": {"type": "string"}}}
    return told
