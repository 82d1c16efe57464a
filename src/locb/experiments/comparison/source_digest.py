"""Digest of the source code of a custom class or function, so that finished runs are repeated after a change."""

from __future__ import annotations

import hashlib
import inspect
import types
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle


def source_digest(value: Any) -> str | None:
    """Return a digest of a class, a function or a ``functools.partial``; None for a class of the package ``locb``.

    The digest covers the file of a class or function, or its code if there is no file, and the values that a function
    or a ``partial`` contains.
    """
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, type) and module.startswith("locb."):
        return None
    return hashlib.sha256(_describe(value).encode()).hexdigest()[:16]


def _describe(value: Any) -> str:
    if isinstance(value, partial):
        arguments = [_describe_value(item) for item in (*value.args, *sorted(value.keywords.items()))]
        return f"partial {_describe(value.func)} {arguments}"
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        contained = [_describe_value(item) for item in (value.__defaults__, value.__kwdefaults__, *cells)]
        return f"{value.__qualname__} {_describe_source(value)} {contained}"
    if isinstance(value, type):
        return f"{value.__qualname__} {_describe_source(value)}"
    return _describe_value(value)


def _describe_source(value: Any) -> str:
    """Return the text of the file of a class or function; without a file, its source text or its code."""
    try:
        file = inspect.getsourcefile(value)
        if file is not None and Path(file).is_file():
            return Path(file).read_text(encoding="utf-8")
        return inspect.getsource(value)
    except (OSError, TypeError):
        functions = [value] if isinstance(value, types.FunctionType) else vars(value).values()
        codes = [item.__code__ for item in functions if isinstance(item, types.FunctionType)]
        return "".join(f"{code.co_name} {code.co_code.hex()} {code.co_consts} {code.co_names}" for code in codes)


def _describe_value(value: Any) -> str:
    if isinstance(value, types.FunctionType | type | partial):
        return _describe(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(_describe_value(item) for item in value)}]"
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
