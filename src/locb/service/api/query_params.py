"""What stands after the question mark of an address: read, or a problem that names it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from locb.service.errors import invalid

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
LATEST = 1e12  # seconds since 1970: farther than anybody needs


def whole(name: str, value: str, most: int) -> int:
    """A whole number from 0 to ``most``."""
    if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) <= most):
        raise invalid(f"{name} must be a whole number from 0 to {most}, not {value[:20]!r}", name)
    return int(value)


def one_of(name: str, value: str, choices: Sequence[str]) -> str:
    """One of some words."""
    if value not in choices:
        raise invalid(f"{name} must be one of {', '.join(choices)}, not {value[:20]!r}", name)
    return value


def moment(name: str, value: str) -> float:
    """Seconds since 1970."""
    if len(value) > 40 or not _NUMBER.fullmatch(value) or not 0.0 <= float(value) <= LATEST:
        raise invalid(f"{name} must be seconds since 1970, not {value[:20]!r}", name)
    return float(value)
