"""Reference of configuration keys, metrics and problem types of the service."""

from __future__ import annotations

import dataclasses
from unittest.mock import MagicMock

from numpydoc.docscrape import ClassDoc

from locb.service import config, errors
from locb.service.api.metrics import Metrics
from locb_docs import cli
from locb_docs.markdown import entry

CONFIG = getattr(config, "ServiceConfig", None) or config.Options


def configuration_keys() -> list[str]:
    """Return the names of all keys of the service configuration."""
    return [field.name for field in dataclasses.fields(CONFIG)]


def metrics() -> dict[str, tuple[str, str]]:
    """Return the kind and the help text of each metric, by its exposed name."""
    exposed: dict[str, list[str]] = {}
    for line in Metrics(MagicMock(), MagicMock())._registry.collect():
        name = f"{line.name}_total" if line.type == "counter" else line.name
        exposed[name] = [line.type, line.documentation]
    return {name: (kind, text) for name, (kind, text) in exposed.items()}


def problem_types() -> list[str]:
    """Return the names of all problem types, as they follow ``urn:locb:problem:``."""
    return list(errors.TITLES)


def render_configuration() -> str:
    """Return one entry per configuration key: type, default, description and command-line option."""
    doc = ClassDoc(CONFIG)
    described = {item.name: " ".join(item.desc) for item in [*doc["Parameters"], *doc["Attributes"]] if item.desc}
    (serve,) = (command for name, command in cli.commands() if name == "locb serve")
    from_option = {parameter.name: parameter for parameter in cli.options(serve)}
    entries = []
    for field in dataclasses.fields(CONFIG):
        option = from_option.get(field.name)
        text = described.get(field.name) or (option.help if option else "")
        kind = str(field.type).replace("|", "or")
        facts = [f"Type: `{kind}`.", f"Default: {_default(field)}."]
        if option is not None:
            facts.append(f"Option: {{option}}`locb serve {option.opts[0]}`.")
        entries.append(entry("config", field.name, f"{text}\n\n{' '.join(facts)}"))
    return "\n".join(entries)


def render_metrics() -> str:
    """Return one entry per Prometheus metric."""
    return "\n".join(
        entry("metric", name, f"{text.rstrip('.')}. Type: {kind}.") for name, (kind, text) in metrics().items()
    )


def render_problems() -> str:
    """Return one entry per problem type."""
    return "\n".join(entry("problem", name, f"{title}.") for name, title in errors.TITLES.items())


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not dataclasses.MISSING:
        return f"`{field.default_factory()!r}`"
    return "none, the key is required"
