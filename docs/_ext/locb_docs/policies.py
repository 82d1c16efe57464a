"""Reference of the parameters of every policy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import locb
from locb_docs.markdown import entry

CLASSES = (locb.LOCB, locb.ELOC, locb.CLUB, locb.SCLUB, locb.LinUCB)


def parameters() -> Iterator[tuple[str, str]]:
    """Yield the class name and the name of each parameter of each policy."""
    for policy in CLASSES:
        for name in inspect.signature(policy).parameters:
            yield policy.__name__, name


def render() -> str:
    """Return one section per policy, with one entry per parameter."""
    from numpydoc.docscrape import ClassDoc

    lines = []
    for policy in CLASSES:
        lines += [f"## {policy.__name__}", ""]
        described = {name.strip(): p for p in ClassDoc(policy)["Parameters"] for name in p.name.split(",")}
        for name, parameter in inspect.signature(policy).parameters.items():
            text = described.get(name)
            default = "required" if parameter.default is parameter.empty else f"default `{parameter.default!r}`"
            body = f"{text.type}, {default}.\n\n{' '.join(text.desc)}" if text else default
            lines.append(entry("parameter", f"{policy.__name__}.{name}", body))
    return "\n".join(lines)
