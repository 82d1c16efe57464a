"""Generator of the HTTP reference from the OpenAPI description of the service."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

from locb.service.api.openapi import REQUEST_ID_PARAMETER, describe_api
from locb.service.api.routes import ROUTES
from locb_docs.markdown import entry, table

DIM = 16  # features per arm: any value is valid, because it only appears as the length of a feature array


@cache
def api() -> dict[str, Any]:
    """Return the OpenAPI description of a service that requires access tokens."""
    return describe_api(ROUTES, DIM, True)


def routes() -> list[str]:
    """Return all routes as ``METHOD /path``."""
    return [f"{method.upper()} {path}" for path, methods in api()["paths"].items() for method in methods]


def render_routes() -> str:
    """Return the reference of routes in Markdown: scope, parameters, request body and responses of each route."""
    scopes = {(route.method, route.path): route.scope for route in ROUTES}
    entries = []
    for path, methods in api()["paths"].items():
        for method, operation in methods.items():
            scope = scopes[method.upper(), path]
            summary = operation["summary"]
            facts = [f"- Token scope: `{scope}`" if scope else "- No token required"]
            if "requestBody" in operation:
                facts.append(f"- Request body: {_content(operation['requestBody']['content'])}")
            facts += _responses(operation["responses"])
            parts = [summary if summary.endswith("?") else f"{summary.rstrip('.')}.", "\n".join(facts)]
            parts.append(_parameters(operation["parameters"]))
            entries.append(entry("route", f"{method.upper()} {path}", "\n\n".join(part for part in parts if part)))
    return "\n".join(entries)


def render_schemas() -> str:
    """Return the reference of JSON objects in Markdown: the fields of each object of the API."""
    schemas = sorted(api()["components"]["schemas"].items())
    return "\n".join(entry("schema", name, _schema(schema)) for name, schema in schemas)


def _schema(schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        return f"{schema.get('description', '')}\n\nType: {_type(schema)}."
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", _type(field), "yes" if name in required else "no", field.get("description", ""))
        for name, field in schema["properties"].items()
    ]
    headings = ("Field", "Type", "Required", "Description")
    if not any(row[3] for row in rows):
        rows, headings = [row[:3] for row in rows], headings[:3]  # type: ignore[assignment,misc]
    return f"{schema.get('description', '')}\n\n{table(headings, rows)}"


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = []
    for parameter in parameters:
        if parameter is REQUEST_ID_PARAMETER:  # the page describes this header of all routes once
            continue
        schema = parameter["schema"]
        rows.append((f"`{parameter['name']}`", parameter["in"], _type(schema), schema.get("description", "")))
    return table(("Parameter", "In", "Type", "Description"), rows)


def _responses(responses: dict[str, Any]) -> list[str]:
    """Return list items in Markdown: one per successful response, and one with the statuses of all errors."""
    problems: dict[str, list[str]] = {}
    lines = []
    for status, response in responses.items():
        body = _content(response["content"]) if "content" in response else "no body"
        if int(status) < HTTPStatus.BAD_REQUEST:
            lines.append(f"- Response {status}: {body}")
        else:
            problems.setdefault(body, []).append(status)
    return lines + [f"- Errors {', '.join(statuses)}: {body}" for body, statuses in problems.items()]


def _content(content: dict[str, Any]) -> str:
    return " or ".join(
        f"{_type(value['schema'])}" if "json" in kind else f"`{kind}`" for kind, value in content.items()
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"{{schema}}`{schema['$ref'].rpartition('/')[2]}`"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(choice) for choice in schema[key])
    if "enum" in schema:
        text = " or ".join(f"`{value}`" for value in schema["enum"])
    elif "prefixItems" in schema:
        return f"array of {len(schema['prefixItems'])}: {', '.join(_type(item) for item in schema['prefixItems'])}"
    elif schema.get("type") == "array":
        text = f"array of {_type(schema.get('items', {}))}"
    elif schema.get("type") == "object":
        extra = schema.get("additionalProperties")
        text = f"object of {_type(extra)}" if isinstance(extra, dict) else "object"
    else:
        text = str(schema.get("type", "any value"))
    limits = [
        f"{word} {schema[key]:,}"
        for key, word in (
            ("minimum", "≥"),
            ("maximum", "≤"),
            ("minLength", "length ≥"),
            ("maxLength", "length ≤"),
            ("minItems", "items ≥"),
            ("maxItems", "items ≤"),
        )
        if key in schema
    ]
    if schema.get("default") not in (None, []):
        limits.append(f"default `{schema['default']}`")
    return f"{text} ({', '.join(limits)})" if limits else text
