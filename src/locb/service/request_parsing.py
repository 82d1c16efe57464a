"""Parsing of recommend requests of the service: the parsing of ``locb.recommender.requests``, with HTTP problems."""

from __future__ import annotations

import logging
from functools import partial

import msgspec

from locb.policies.base.policy import finish
from locb.recommender import requests
from locb.recommender.requests import CollisionCheck, ParsedRequest
from locb.service.errors import invalid
from locb.service.schemas import RecommendRequest

_log = logging.getLogger("locb.service")
_unpack = msgspec.msgpack.Decoder(RecommendRequest).decode

parse_steps = partial(requests.parse_steps, pack=msgspec.msgpack.Encoder().encode, invalid=invalid)
"""Parse a request in steps of about a millisecond; a problem (422) names the invalid field."""


def parse_request(request: RecommendRequest, dim: int) -> ParsedRequest:
    """Return a request with its eligible arms converted to vectors of ``dim`` features.

    Raises
    ------
    ProblemError
        422, if the request is invalid, see ``requests.parse_steps``.
    """
    return finish(parse_steps(request, dim))


def parse_stored_request(packed: bytes, dim: int) -> ParsedRequest:
    """Decode and parse a request from the log. The contexts are the same as when the request arrived."""
    return parse_request(_unpack(packed), dim)


def make_collision_check() -> CollisionCheck:
    """Return a check that writes a warning to the log, once, if two arms have equal vectors."""
    return CollisionCheck(_log_collision)


def _log_collision(first: str, second: str, dim: int) -> None:
    _log.warning(
        "arms %r and %r have different features, but the same vector after hashing into %d numbers (--dim): the policy "
        "cannot distinguish them. Other arms may be equal, too; this message is written once",
        first,
        second,
        dim,
    )
