"""Parsing of recommend requests of the service: the parsing of ``locb.recommender.requests``, with HTTP problems."""

from __future__ import annotations

from functools import partial

import msgspec

from locb.policies.base.policy import finish
from locb.recommender import requests
from locb.recommender.requests import ParsedRequest
from locb.service.errors import invalid
from locb.service.schemas import RecommendRequest

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
