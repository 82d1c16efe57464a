"""Path and query parameters of a request: reading and validation."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from urllib.parse import unquote

from starlette.requests import Request

from locb.recommender.events import MAX_ID_LENGTH
from locb.service.errors import bad_request, invalid

# Maximum values of query parameters. ``routes.py`` has their defaults.
MAX_SIMILAR_USERS, MAX_DECISIONS, MAX_CLUSTER_ROWS = 1_000, 100, 200  # ``limit`` of similar users, decisions, clusters
MAX_OFFSET = 1_000_000
MAX_TIMESTAMP = 1e12  # seconds
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_SHOWN = 20  # characters of an invalid value in a message


def read_params(request: Request, query: Container[str]) -> dict[str, str]:
    """Return the decoded path parameters, and the query parameters whose name is in ``query``.

    Raises
    ------
    ProblemError
        400 if a path parameter is not percent-encoded UTF-8, 422 if it has more than ``MAX_ID_LENGTH`` characters.
    """
    params: dict[str, str] = {}
    for name, value in request.path_params.items():
        try:
            params[name] = unquote(value, errors="strict")
        except UnicodeDecodeError:
            raise bad_request(f"{name} must be percent-encoded UTF-8, not {value[:_SHOWN]!r}", name) from None
        check_length(name, params[name])
    params |= {name: value for name, value in request.query_params.items() if name in query}
    return params


def check_length(name: str, value: str) -> None:
    """Raise a 422 problem if a value has more than ``MAX_ID_LENGTH`` characters."""
    if len(value) > MAX_ID_LENGTH:
        raise invalid(f"{name} must have at most {MAX_ID_LENGTH} characters, not {len(value)}", name)


def parse_integer(name: str, value: str, maximum: int) -> int:
    """Return the value as an integer, or raise a 422 problem if it is not an integer from 0 to ``maximum``."""
    if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) <= maximum):
        raise invalid(f"{name} must be an integer from 0 to {maximum}, not {value[:_SHOWN]!r}", name)
    return int(value)


def parse_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return the value, or raise a 422 problem if it is not one of the choices."""
    if value not in choices:
        raise invalid(f"{name} must be one of {', '.join(choices)}, not {value[:_SHOWN]!r}", name)
    return value


def parse_timestamp(name: str, value: str) -> float:
    """Return the value as a Unix time in seconds.

    Raise a 422 problem if the value is not a number from 0 to ``MAX_TIMESTAMP``.
    """
    if len(value) > 40 or not _NUMBER.fullmatch(value) or not 0.0 <= float(value) <= MAX_TIMESTAMP:
        raise invalid(f"{name} must be a Unix time from 0 to {MAX_TIMESTAMP:g} seconds, not {value[:_SHOWN]!r}", name)
    return float(value)
