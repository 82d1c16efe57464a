"""Parsing of recommend requests: conversion of features to vectors, and problems that name the invalid field."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import Values, feature_row
from locb.policies.base.policy import finish
from locb.service.errors import invalid
from locb.service.schemas import Features, RecommendRequest

MAX_FEATURE = 1e6  # largest absolute value that the policies accept
NAMES_PER_STEP = 500  # named features that are converted per step of about 1 ms
BASE_WEIGHT = 30  # weight of a request without its arms
BYTES_PER_WEIGHT = 256  # bytes of a request: storing them takes about as long as ranking one arm
T = TypeVar("T")
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(RecommendRequest).decode


@dataclass(slots=True)
class ParsedRequest:
    """Recommend request with the feature vectors (contexts) of its eligible arms: those that it does not exclude.

    Attributes
    ----------
    request : RecommendRequest
        The request.
    packed : bytes
        The request as MessagePack, for the log.
    contexts : (k, d) floats
        The d features of each of the k eligible arms.
    eligible : list of int
        Position in the request of each eligible arm.
    max_arm_names : int
        Largest number of named features of an eligible arm; 0 if the features of all arms are arrays.
    named_features : list of dict or None, default None
        Features by name of each arm, for the explanation, if the request contains only the hashed features.
    """

    request: RecommendRequest
    packed: bytes
    contexts: Floats
    eligible: list[int]
    max_arm_names: int
    named_features: Sequence[Values] | None = None

    @property
    def weight(self) -> int:
        """Approximate time to decide and to store the decision, in units of the time for one arm, about 1 µs."""
        return BASE_WEIGHT + len(self.eligible) + self.max_arm_names + len(self.packed) // BYTES_PER_WEIGHT


async def parse_in_steps(steps: Generator[None, None, T], lock: asyncio.Lock) -> T:
    """Run the steps of parsing a request, and return the result.

    A small request is parsed at once. The steps of large requests, one request at a time, alternate with the work on
    other requests.

    Parameters
    ----------
    steps : generator
        For example the result of ``parse_steps``.
    lock : asyncio.Lock
        Held while a large request is parsed.
    """
    try:
        next(steps)
        async with lock:
            while True:
                await asyncio.sleep(0)
                next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def parse_request(request: RecommendRequest, dim: int) -> ParsedRequest:
    """Return a request with its eligible arms converted to vectors of ``dim`` features.

    Raises
    ------
    ProblemError
        As ``parse_steps`` does.
    """
    return finish(parse_steps(request, dim))


def parse_steps(
    request: RecommendRequest, dim: int, max_names: float = math.inf
) -> Generator[None, None, ParsedRequest]:
    """Compute ``parse_request`` in steps of about a millisecond. An arm has at most ``max_names`` named features.

    Raises
    ------
    ProblemError
        422, if two arms have the same id, if an unknown arm or all arms are excluded, if features are invalid or too
        many, or if a text is not valid UTF-8.
    """
    arms = request.arms
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        repeated = next(a for a, arm_id in enumerate(ids) if arm_id in ids[:a])
        raise invalid(f"ids of arms must be unique, but two arms have the id {ids[repeated]!r}", f"arms[{repeated}].id")
    eligible = list(range(len(arms)))
    if request.exclude:
        eligible = _eligible_arms(ids, request.exclude)
    rows = [arms[a].features for a in eligible]
    names = max_arm_names = 0
    for position, features in enumerate(rows):
        if type(features) is dict:
            if len(features) > max_names:
                detail = f"an arm must have at most {max_names} named features, not {len(features)}"
                raise invalid(detail, f"arms[{eligible[position]}].features")
            max_arm_names = max(max_arm_names, len(features))
            names += len(features)
            if names > NAMES_PER_STEP:
                yield
                names = len(features)
        if type(features) is not list or len(features) != dim:
            rows[position] = _to_vector(features, dim, eligible[position])
    contexts: Floats = np.array(rows)
    if not np.abs(contexts).max() <= MAX_FEATURE:
        for context, a in zip(contexts, eligible, strict=True):
            largest = float(context[np.abs(context).argmax()])
            if not abs(largest) <= MAX_FEATURE:
                limits = f"from {-MAX_FEATURE:g} to {MAX_FEATURE:g}"
                raise invalid(f"features must be numbers {limits}, not {largest:g}", f"arms[{a}].features")
    try:
        packed = _pack(request)
    except UnicodeEncodeError:
        check_id(request.user, "user")
        check_id(request.decision_id or "", "decision_id")
        for a, arm_id in enumerate(ids):
            check_id(arm_id, f"arms[{a}].id")
        raise invalid("names and values of features must be valid UTF-8 text", "arms") from None
    return ParsedRequest(request, packed, contexts, eligible, max_arm_names)


def parse_stored_request(packed: bytes, dim: int) -> ParsedRequest:
    """Decode and parse a request from the log. The contexts are the same as when the request arrived."""
    return parse_request(_unpack(packed), dim)


def _eligible_arms(ids: list[str], exclude: list[str]) -> list[int]:
    excluded = set(exclude)
    unknown = excluded.difference(ids)
    if unknown:
        raise invalid(f"exclude contains {min(unknown)!r}, which is not the id of an arm of the request", "exclude")
    eligible = [a for a, arm_id in enumerate(ids) if arm_id not in excluded]
    if not eligible:
        raise invalid("exclude must not contain all arms: leave at least one to recommend", "exclude")
    return eligible


def _to_vector(features: Features, dim: int, a: int) -> list[float]:
    if isinstance(features, dict):
        try:
            return feature_row(features, dim)
        except ValueError as error:
            raise invalid(str(error), f"arms[{a}].features") from None
    if len(features) != dim:
        detail = f"features must be {dim} numbers, the dim of the service, not {len(features)}"
        raise invalid(detail, f"arms[{a}].features")
    return features


def check_id(value: str, field: str) -> None:
    """Raise a 422 problem if an id is not valid UTF-8, for example because it contains half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(f"an id must be valid UTF-8 text, not {value!r}", field) from None
