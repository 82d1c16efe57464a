"""Generator of the command-line reference from the Typer application of ``locb``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer.main

from locb.cli import app
from locb_docs.markdown import entry

# Placeholder of the value of an option, by the type of the value.
METAVARS = {int: "INTEGER", float: "FLOAT", Path: "PATH", str: "TEXT"}


def commands() -> Iterator[tuple[str, Any]]:
    """Yield the full name (such as "locb serve") and the Click object of every command and command group."""
    yield from _walk("locb", typer.main.get_command(app))


def options(command: Any) -> Iterator[Any]:
    """Yield the options and arguments of a Click command, without ``--help``."""
    yield from (parameter for parameter in command.params if parameter.name != "help")


def render() -> str:
    """Return the command-line reference in Markdown: one section per command, with one entry per option."""
    return "\n".join(_render_command(name, command) for name, command in commands())


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child_name, child in getattr(command, "commands", {}).items():
        yield from _walk(f"{name} {child_name}", child)


def _render_command(name: str, command: Any) -> str:
    usage = [name, *(_argument(parameter) for parameter in options(command) if _is_argument(parameter))]
    usage.append("COMMAND" if getattr(command, "commands", None) else "[OPTIONS]")
    lines = [f"## {name}", "", inspect.cleandoc(command.help or ""), "", "```text", " ".join(usage), "```", ""]
    lines += [f":::{{program}} {name}", ":::", ""]
    types = get_type_hints(command.callback) if command.callback else {}
    lines += [_render_parameter(parameter, types.get(parameter.name, str)) for parameter in options(command)]
    return "\n".join(lines)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _metavar(parameter: Any, kind: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kinds = [part for part in (get_args(kind) or (kind,)) if part is not type(None)]
    return METAVARS.get(kinds[0], "TEXT")


def _render_parameter(parameter: Any, kind: Any) -> str:
    if _is_argument(parameter):
        signature = parameter.metavar or parameter.name.upper()
    elif parameter.is_flag:
        signature = ", ".join([*parameter.opts, *parameter.secondary_opts])
    else:
        signature = ", ".join(f"{name} {_metavar(parameter, kind)}" for name in parameter.opts)
    facts = []
    if parameter.required:
        facts.append("Required.")
    elif isinstance(parameter.show_default, str):
        facts.append(f"Default: {parameter.show_default}.")
    elif parameter.default not in (None, False, ()) and not callable(parameter.default):
        facts.append(f"Default: `{parameter.default}`.")
    if parameter.envvar:
        facts.append(f"Environment variable: {{envvar}}`{parameter.envvar}`.")
    return entry("option", signature, f"{parameter.help or ''}\n\n{' '.join(facts)}")
