"""Parsing of recommend requests of the service: the parsing of ``locb.recommender.requests``, with HTTP problems."""

from __future__ import annotations

import logging
from functools import partial

import msgspec

from locb.common.feature_hashing import EqualVectors
from locb.policies.base.policy import finish
from locb.recommender import requests
from locb.recommender.requests import ParsedRequest
from locb.service.errors import invalid
from locb.service.schemas import RecommendRequest

# Limits of the search for arms with equal vectors, so that it takes at most about 0.2 ms per request: arms in total,
# new arms per request, and named features per arm.
CHECKED_ARMS, CHECKED_PER_REQUEST, CHECKED_NAMES = 10_000, 10, 50
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


class CollisionCheck:
    """Warning in the log, once, if two arms have different named features but equal vectors.

    Only the features with which an arm is checked first are compared, so that requests for known arms take about 1 µs
    longer.
    """

    def __init__(self) -> None:
        self._found: EqualVectors | None = EqualVectors()  # None when the search has ended

    def check(self, parsed: ParsedRequest) -> None:
        """Compare the new arms of a request with all arms before."""
        found = self._found
        if found is None or not 0 < parsed.max_arm_names <= CHECKED_NAMES:
            return
        arms, known = parsed.request.arms, found.arms
        new = [row for row, position in enumerate(parsed.eligible) if arms[position].id not in known]
        for row in new[:CHECKED_PER_REQUEST]:
            position = parsed.eligible[row]
            arm, named = arms[position], parsed.named_features
            features = arm.features if named is None else named[position]
            if not isinstance(features, dict):
                continue
            vector = parsed.contexts[row].tolist()
            first = found.add(arm.id, features, vector)
            if first is not None:
                _log.warning(
                    "arms %r and %r have different features, but the same vector after hashing into %d numbers "
                    "(--dim): the policy cannot distinguish them. Other arms may be equal, too; "
                    "this message is written once",
                    first,
                    arm.id,
                    len(vector),
                )
                self._found = None
                return
        if len(known) >= CHECKED_ARMS:
            self._found = None
