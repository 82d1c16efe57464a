"""Reference of the parameters of every policy, generated from the registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from locb.policies import REGISTRY
from locb.policies.parameters import describe
from locb_docs.markdown import entry


def classes() -> list[Any]:
    """Return the policy classes of the registry, each once."""
    return list(dict.fromkeys(spec.policy_class for spec in REGISTRY.values()))


def parameters() -> Iterator[tuple[str, str]]:
    """Yield the class name and the name of each parameter of each policy."""
    for policy in classes():
        for parameter in policy.parameters:
            yield policy.__name__, parameter.name


def render() -> str:
    """Return one section per policy, with one entry per parameter."""
    lines = []
    for policy in classes():
        lines += [f"## {policy.__name__}", ""]
        for parameter in policy.parameters:
            default = parameter.default_text
            default = default if default == "required" else f"default `{default}`"
            allowed = f" Allowed: {parameter.range}." if parameter.choices else ""
            body = f"{parameter.type_text}, {default}.\n\n{describe(parameter)}{allowed}".replace("``", "`")
            lines.append(entry("parameter", f"{policy.__name__}.{parameter.name}", body))
    return "\n".join(lines)
