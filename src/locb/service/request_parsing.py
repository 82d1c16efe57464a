"""A request for a recommendation, read: arms as vectors, or a problem that names the culprit."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import feature_row
from locb.service.errors import invalid
from locb.service.schemas import Features, RecommendRequest

LARGEST_FEATURE = 1e6  # what the policies take
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(RecommendRequest).decode


@dataclass(slots=True)
class ParsedRequest:
    """What is asked of the policy: which of these arms for this user?"""

    request: RecommendRequest
    packed: bytes  # the request, as the log keeps it
    contexts: Floats  # (k, d) of the arms that may be recommended
    eligible: list[int]  # which of the request's arms these are


def parse_request(request: RecommendRequest, dim: int) -> ParsedRequest:
    """Turn the arms of a request into contexts.

    Raises
    ------
    ProblemError
        422, if two arms have one id, if none is left, or if features do not fit.
    """
    arms = request.arms
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        twice = next(a for a, name in enumerate(ids) if name in ids[:a])
        raise invalid(f"two arms have the id {ids[twice]!r}", f"arms[{twice}].id")
    eligible = list(range(len(arms)))
    if request.exclude:
        out = set(request.exclude)
        unknown = out.difference(ids)
        if unknown:
            raise invalid(f"exclude names {min(unknown)!r}, which is not among the arms", "exclude")
        eligible = [a for a in eligible if ids[a] not in out]
        if not eligible:
            raise invalid("all arms are excluded", "exclude")
    rows = [arms[a].features for a in eligible]
    for place, features in enumerate(rows):
        if type(features) is not list or len(features) != dim:
            rows[place] = _vector(features, dim, eligible[place])
    contexts: Floats = np.array(rows)
    if not np.abs(contexts).max() <= LARGEST_FEATURE:
        for row, a in enumerate(eligible):
            if not np.abs(contexts[row]).max() <= LARGEST_FEATURE:
                told = f"features must be numbers of at most {LARGEST_FEATURE:g} in size"
                raise invalid(told, f"arms[{a}].features")
    try:
        packed = _pack(request)
    except UnicodeEncodeError:
        check_id(request.user, "user")
        check_id(request.decision_id or "", "decision_id")
        for a, name in enumerate(ids):
            check_id(name, f"arms[{a}].id")
        raise invalid("names and values of features must be text that can be written as UTF-8", "arms") from None
    return ParsedRequest(request, packed, contexts, eligible)


def _vector(features: Features, dim: int, a: int) -> list[float]:
    if isinstance(features, dict):
        try:
            return feature_row(features, dim)
        except ValueError as error:
            raise invalid(str(error), f"arms[{a}].features") from None
    if len(features) != dim:
        raise invalid(f"features must be {dim} numbers, not {len(features)}", f"arms[{a}].features")
    return features


def parse_stored_request(packed: bytes, dim: int) -> ParsedRequest:
    """A question from the log; what was once read is read the same."""
    return parse_request(_unpack(packed), dim)


def check_id(value: str, field: str) -> None:
    """A problem if this cannot be written as UTF-8: half of a surrogate pair cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid("an id must be text that can be written as UTF-8", field) from None
