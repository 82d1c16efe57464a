"""Sphinx extension that generates the reference documentation of locb from its code.

A page requests generated text with a marker: a comment on its own line, such as ``<!-- generate: cli -->``. The
extension replaces the marker when Sphinx reads the page. Each generated entry is an object of Sphinx's standard domain:
it has an anchor and an entry in the inventory file ``objects.inv``. Pages link to the entry with one of the roles
``{option}``, ``{route}``, ``{schema}``, ``{config}``, ``{metric}``, ``{problem}`` and ``{parameter}``.
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
    """Replace each marker ``<!-- generate: NAME -->`` of a page with the text of the generator NAME.

    This function handles Sphinx's event ``source-read``. ``source`` contains the text of the page as its only element
    and is changed in place.

    Raises
    ------
    ValueError
        If no generator has this name.
    """

    def generated(match: re.Match[str]) -> str:
        try:
            return GENERATORS[match[1]]()
        except KeyError:
            names = ", ".join(GENERATORS)
            raise ValueError(f"page {docname}: unknown generator {match[1]!r}; use one of {names}") from None

    source[0] = MARKER.sub(generated, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx: the object types, and the replacement of markers."""
    for name in OBJECT_TYPES:
        app.add_object_type(name, name, indextemplate=f"pair: %s; {name}")
    app.connect("source-read", replace_markers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
