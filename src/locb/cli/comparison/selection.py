"""Selection of policies and of the values of their parameters on the command line."""

from __future__ import annotations

from typing import Any

from locb.cli.common import parameter_pair, split_list


def parse_grid(texts: list[str]) -> dict[str, Any]:
    """Return the grid for texts such as "alpha=0.1,1 gamma=0.2" and "locb.gamma=0.1,0.2". Values are JSON, or text.

    Raises
    ------
    ValueError
        If a text has another form, or if a parameter occurs twice.
    """
    grid: dict[str, Any] = {}
    for text in " ".join(texts).split():
        name, equals, values = text.partition("=")
        policy, _, parameter = name.rpartition(".")
        if not equals or not parameter.isidentifier() or not values.strip(","):
            raise ValueError(f"--grid must be name=value,value,…, such as alpha=0.1,0.3,1, not {text!r}")
        target = grid.setdefault(policy, {}) if policy else grid
        if parameter in target:
            raise ValueError(f"--grid: {name} is given twice; write all its values in one list")
        target[parameter] = [parameter_pair(f"value={value}")[1] for value in split_list("grid", values)]
    return grid


def select_policies(policies: str | None, *, default_all: bool) -> tuple[list[str], dict[str, str]]:
    """Return the names of the selected policies, and the reference file.py:Class of each custom policy, by name.

    Custom policies are registered.
    """
    from locb.experiments.comparison.comparison_plan import DEFAULT_POLICIES
    from locb.experiments.custom_policy import register_custom_policy
    from locb.policies import POLICIES

    if policies is None:
        return list(POLICIES if default_all else DEFAULT_POLICIES), {}
    names: list[str] = []
    custom: dict[str, str] = {}
    for element in split_list("policies", policies):
        if ":" in element:
            name = register_custom_policy(element)
            if name in custom:
                raise ValueError(
                    f"--policies: {custom[name]} and {element} have the same class name; rename one of them"
                )
            custom[name] = element
            names.append(name)
        else:
            names.extend(POLICIES if element == "all" else [element])
    return names, custom
