"""Generator of the reference of the parameters of every policy from the registry of policies."""

from __future__ import annotations

from typing import Any

from locb.policies.parameters import Parameter
from locb.policies.registry import REGISTRY, PolicySpec
from locb_docs.markdown import entry, table


def policy_classes() -> dict[Any, list[PolicySpec]]:
    """Return the classes of the built-in policies, each with its entries in the registry.

    Policies that the examples of the gallery register are left out.
    """
    classes: dict[Any, list[PolicySpec]] = {}
    for spec in REGISTRY.values():
        if spec.policy_class.__module__.startswith("locb."):
            classes.setdefault(spec.policy_class, []).append(spec)
    return classes


def render() -> str:
    """Return the reference of policies in Markdown: one section per policy class, with one entry per parameter."""
    return "\n".join(_section(policy, specs) for policy, specs in policy_classes().items())


def _section(policy: Any, specs: list[PolicySpec]) -> str:
    rows = [
        (
            f"`{spec.name}`",
            spec.label,
            "yes" if spec.has_seeds else "no",
            "yes" if spec.overlapping else "no",
            "yes" if spec.can_be_final else "no",
            ", ".join(f"`{name}={value}`" for name, value in spec.service_defaults.items()),
        )
        for spec in specs
    ]
    headings = ("Name", "Label", "Seed users", "Overlapping groups", "Groups can be final", "Defaults in `locb serve`")
    entries = [entry("parameter", f"{policy.__name__}.{item.name}", _describe(item)) for item in policy.parameters]
    return "\n".join([f"## {policy.__name__}", "", table(headings, rows), *entries])


def _describe(parameter: Parameter) -> str:
    facts = [f"Type: {parameter.type_text}."]
    if parameter.range:
        facts.append(f"Allowed: {parameter.range}.")
    facts.append("Required." if parameter.default_text == "required" else f"Default: `{parameter.default_text}`.")
    return f"{parameter.description.replace('``', '`')}\n\n{' '.join(facts)}"
