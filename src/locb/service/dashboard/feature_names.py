"""Names of features, as recent requests gave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from locb.common.arrays import Floats
from locb.common.feature_hashing import signed_indices
from locb.service.dashboard.schemas import FeatureWeight
from locb.service.schemas import RecommendRequest

REQUESTS = 300  # that are looked at
MOST_NAMES = 2_000
MOST_LIKES = 3

_unpack = msgspec.msgpack.Decoder(RecommendRequest).decode


class Names:
    """Which features there are: names with their places in a vector, negative where their sign is."""

    def __init__(self, places: dict[str, int]) -> None:
        self._places = places

    @classmethod
    def read(cls, requests: Sequence[bytes], dim: int) -> Names:
        """The names in these requests, the most frequent ones if there are very many."""
        seen: Counter[str] = Counter()
        places: dict[str, int] = {}
        for request in requests:
            for arm in _unpack(request).arms:
                if isinstance(arm.features, dict) and dim > 1:
                    found = signed_indices(arm.features, dim)
                    places |= found
                    seen.update(found.keys())
        return cls({name: places[name] for name, _ in seen.most_common(MOST_NAMES)})

    def most(self, count: int) -> dict[str, int]:
        """The most frequent names, each with its place."""
        return dict(list(self._places.items())[:count])

    def likes(self, theta: Floats) -> list[FeatureWeight]:
        """The features with the largest weights in θ, those above 0: by name, or by place where there are no names."""
        weights = theta.tolist()
        if self._places:
            told = {name: weights[place] if place > 0 else -weights[-place] for name, place in self._places.items()}
        else:
            told = {str(place): weight for place, weight in enumerate(weights)}
        best = sorted(told, key=told.__getitem__, reverse=True)[:MOST_LIKES]
        return [FeatureWeight(name, told[name]) for name in best if told[name] > 0.0]
