"""Generators of the reference of configuration keys, metrics and problem types of the service."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from unittest.mock import MagicMock

from locb.service import errors
from locb.service.api.metrics import Metrics
from locb.service.config import ServiceConfig, describe_key
from locb_docs import cli
from locb_docs.markdown import entry

# Cause of each problem type, and what the caller can do. A problem type is the kind of an HTTP error response.
CAUSES = {
    "bad-request": "The request is not valid HTTP, JSON or UTF-8, or does not have exactly one header `Host`. NaN and "
    "Infinity are not valid JSON.",
    "unauthorized": "The request has no token, or the token is not in the token file. Send a valid token.",
    "forbidden": "The token does not have the required scope. In a service without tokens: the header `Host` names "
    "another machine, or the request comes from a web page of another origin, including other ports of this machine.",
    "not-found": "No route has this path.",
    "unknown-decision": "No decision has this id, its user was erased, or its request is not stored.",
    "unknown-user": "No user has this id, or the user was erased.",
    "unknown-cluster": "No cluster has this user as its seed or, if the policy has no seed users, as its first member.",
    "method-not-allowed": "The route does not support the HTTP method. The header `Allow` lists the supported methods.",
    "timeout": "The request did not arrive completely within {option}`locb serve --read-timeout`.",
    "conflict": "A request with different content has used the decision id, or the decision already has a different "
    "reward, or the event of the decision is deferred and not activated, or the user to erase is a user of the saved "
    "policy from which the service started.",
    "too-large": "The body of the request is larger than {option}`locb serve --max-body`.",
    "headers-too-large": "The request line and the headers are larger than {option}`locb serve --max-header-bytes`.",
    "unsupported-media-type": "The content type of the body is missing, or is not `application/json` and does not end "
    "in `+json`.",
    "invalid": "The request can be parsed, but a value is not allowed. `fields` lists the fields with such values.",
    "too-many-requests": "There are too many requests in progress, requests that wait for the disk, exports or "
    "connections, or the client has sent too many unknown tokens. The header `Retry-After` has the "
    "number of seconds to wait before a retry.",
    "unavailable": "The service cannot write to or read from its database. `detail` has the reason. Retry with the "
    "same decision id.",
    "stopping": "The service is stopping. Retry with the same decision id after it has started again.",
    "internal": "An error in the service or in a custom policy. The messages that the service prints have the details.",
}
# Configuration keys whose command-line option has another name.
OPTIONS = {"parameters": "parameter", "start_options": "start_option"}


def configuration_keys() -> list[str]:
    """Return the names of all keys of the configuration of a service."""
    return [field.name for field in dataclasses.fields(ServiceConfig)]


def metrics() -> dict[str, tuple[str, str]]:
    """Return the type and the help text of each Prometheus metric, by the name that ``/metrics`` shows."""
    exposed: dict[str, list[str]] = {}
    for line in Metrics(MagicMock(), MagicMock())._registry.collect():
        name = f"{line.name}_total" if line.type == "counter" else line.name
        exposed[name] = [line.type, line.documentation]
    return {name: (kind, text) for name, (kind, text) in exposed.items()}


def problem_types() -> list[str]:
    """Return the names of all problem types: the part of the URN after ``urn:locb:problem:``."""
    return list(errors.TITLES)


def render_configuration() -> str:
    """Return the configuration reference in Markdown: description, type, default and option of each key."""
    (serve,) = (command for name, command in cli.commands() if name == "locb serve")
    from_option = {parameter.name: parameter for parameter in cli.options(serve)}
    entries = []
    for field in dataclasses.fields(ServiceConfig):
        option = from_option.get(OPTIONS.get(field.name, field.name))
        text = describe_key(field.name).description
        kind = str(field.type).replace("|", "or")
        facts = [f"Type: `{kind}`.", f"Default: {_default(field)}."]
        if option is not None:
            facts.append(f"Option: {{option}}`locb serve {option.opts[0]}`.")
        entries.append(entry("config", field.name, f"{text}\n\n{' '.join(facts)}"))
    return "\n".join(entries)


def render_metrics() -> str:
    """Return the reference of Prometheus metrics in Markdown: description and type of each metric."""
    return "\n".join(
        entry("metric", name, f"{text.rstrip('.')}. Type: {kind}.") for name, (kind, text) in metrics().items()
    )


def render_problems() -> str:
    """Return the reference of problem types in Markdown: title, HTTP statuses and cause of each type."""
    statuses = _problem_statuses()
    return "\n".join(
        entry("problem", name, f"**{title}** ({', '.join(statuses[name])}). {CAUSES[name]}")
        for name, title in errors.TITLES.items()
    )


def _problem_statuses() -> dict[str, list[str]]:
    """Return the HTTP statuses of each problem type, from all calls of ``ProblemError`` in the source files."""
    found: dict[str, set[str]] = {}
    for path in Path(errors.__file__).parent.rglob("*.py"):
        for status, name in re.findall(r'ProblemError\(\s*(\d+),\s*"([\w-]+)"', path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(status)
    return {name: sorted(values) for name, values in found.items()}


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "none, the key is required"
