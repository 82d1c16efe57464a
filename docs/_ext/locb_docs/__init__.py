"""Sphinx extension that generates the reference of locb from its code.

A page requests generated text with a comment on its own line, ``<!-- generate: cli -->``. The comment is replaced
when Sphinx reads the page. Each generated entry is an object of Sphinx's standard domain: it has an anchor, an entry
in ``objects.inv`` and a role that links to it (``{option}``, ``{route}``, ``{schema}``, ``{config}``, ``{metric}``,
``{problem}`` or ``{parameter}``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx

from locb_docs import cli, http_api, policies, service

GENERATORS: dict[str, Callable[[], str]] = {
    "cli": cli.render,
    "routes": http_api.render_routes,
    "schemas": http_api.render_schemas,
    "configuration": service.render_configuration,
    "metrics": service.render_metrics,
    "problems": service.render_problems,
    "parameters": policies.render,
}
OBJECT_TYPES = ("route", "schema", "config", "metric", "problem", "parameter")
MARKER = re.compile(r"^<!-- generate: ([\w-]+) -->$", re.MULTILINE)


def replace_markers(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace each ``<!-- generate: NAME -->`` of a page with the text of that generator."""

    def generated(match: re.Match[str]) -> str:
        try:
            return GENERATORS[match[1]]()
        except KeyError:
            names = ", ".join(GENERATORS)
            raise ValueError(f"{docname}: unknown generator {match[1]!r}; known generators: {names}") from None

    source[0] = MARKER.sub(generated, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the object types and the replacement of markers."""
    for name in OBJECT_TYPES:
        app.add_object_type(name, name, indextemplate=f"pair: %s; {name}")
    app.connect("source-read", replace_markers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
