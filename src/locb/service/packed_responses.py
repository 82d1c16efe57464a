"""Packed form of responses, in which the event log stores them.

A packed response has a sixth of the bytes of the JSON. It contains only what does not follow from the request: no arms,
no names of features, and no names of users. It refers to the seed of a cluster by user index, so the erasure of a user
removes the name from all responses. ``core.decision_encoding`` converts it to the JSON of the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from locb.common.feature_hashing import feature_row
from locb.service.schemas import (
    RecommendRequest,
)

NameOf = Callable[[int], str | None]  # returns the name of the user at an index; None if there is no such user
# Returns the JSON of a response from the log, from the id, the request and the response of the decision.
Renderer = Callable[[bytes, bytes, bytes, NameOf], bytes]


class PackedSource(msgspec.Struct, array_like=True, gc=False):
    """Variant of ``schemas.EvidenceSource`` with the user index of the seed.

    ``seed`` is None if the source has no seed, or if the index had no user.
    """

    kind: str
    seed: int | None
    weight: float
    users: int | None
    observations: int | None


class PackedExplanation(msgspec.Struct, array_like=True, gc=False):
    """Explanation of a packed response.

    Attributes
    ----------
    contributions : list of float
        Contribution of each feature.
    intercept : float
        As in ``schemas.Explanation``.
    sources : list of PackedSource
        Evidence sources.
    names : list of str or None
        Names of the features; None if they follow from the request.
    screened : bool
        As in ``schemas.Explanation``.
    """

    contributions: list[float]
    intercept: float
    sources: list[PackedSource]
    names: list[str] | None = None
    screened: bool = False  # responses of earlier versions do not have the field


class PackedResponse(msgspec.Struct, array_like=True, gc=False):
    """Response to a recommend request, without what follows from the request.

    Attributes
    ----------
    ranking : list of int
        Positions of the ranked arms in the request, starting with the recommended arm.
    estimates : list of float or None
        Estimate of each ranked arm; None if the policy does not report scores.
    bonuses : list of float
        Exploration bonus of each ranked arm, if there are estimates; else only that of the first arm, if it is known.
    clusters : bytes
        Clusters of the user, as packed by ``pack_cluster``.
    explanation : PackedExplanation or None
        The explanation; None if the policy does not explain its choices.
    """

    ranking: list[int]
    estimates: list[float] | None
    bonuses: list[float]
    clusters: bytes
    explanation: PackedExplanation | None


encode_json = msgspec.json.Encoder().encode
pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(PackedResponse).decode
unpack_request = msgspec.msgpack.Decoder(RecommendRequest).decode


def stored_arm(request: bytes, response: bytes) -> str:
    """Return the id of the arm that a response from the log recommends."""
    return unpack_request(request).arms[unpack(response).ranking[0]].id


def chosen_context(request: bytes, response: bytes, dim: int) -> bytes:
    """Return the features of the recommended arm of a decision in the log, as float64; empty if they were dropped."""
    if not request:
        return b""
    features = unpack_request(request).arms[unpack(response).ranking[0]].features
    vector = features if isinstance(features, list) else feature_row(features, dim)
    return np.array(vector, np.float64).tobytes()


def seeds_of(packed: PackedResponse) -> set[int]:
    """Return the user indices to which a response refers."""
    found = {seed for seed, _, _ in unpack_clusters(packed.clusters)}
    if packed.explanation is not None:
        found.update(source.seed for source in packed.explanation.sources)
    return {seed for seed in found if seed is not None}


def pack_cluster(seed: int | None, size: int | None, returned: bool) -> bytes:
    """Pack a cluster as two numbers: 0 or seed + 1; and the sum of ``returned`` and twice 0 or size + 1."""
    numbers = (0 if seed is None else seed + 1, 2 * (0 if size is None else size + 1) + returned)
    packed = bytearray()
    for number in numbers:
        while number > 127:  # 7 bits per byte, lowest bits first; the last byte has no highest bit
            packed.append(number & 127 | 128)
            number >>= 7
        packed.append(number)
    return bytes(packed)


def unpack_clusters(packed: bytes) -> Iterator[tuple[int | None, int | None, bool]]:
    """Yield the seed, size and ``returned`` of each cluster."""
    numbers = []
    number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number = shift = 0
    for seed, size in zip(numbers[::2], numbers[1::2], strict=True):
        yield (seed - 1 if seed else None), (size // 2 - 1 if size > 1 else None), bool(size % 2)
