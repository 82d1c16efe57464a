"""Names of features, collected from recent requests and responses, and from the log that the service started from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import signed_indices
from locb.service.dashboard.cluster_schemas import FeatureWeight
from locb.service.packed_responses import unpack, unpack_request

# Limits of the most recent requests that are read, so that requests with many names take neither much time nor memory.
REQUESTS_READ, BYTES_READ, NAMES_READ = 300, 1 << 22, 100_000
MAX_NAMES = 2_000
MAX_TOP_FEATURES = 3


def _explained_features(response: bytes) -> list[dict[str, float]]:
    """Return the features of which a packed response has the names: those of the recommended arm, or none."""
    explanation = unpack(response).explanation
    return [] if explanation is None or explanation.names is None else [dict.fromkeys(explanation.names, 1.0)]


class FeatureNames:
    """Names of hashed features, each with its index in a feature vector.

    A negative index −j means that the weight of the feature is the negated entry j.

    Parameters
    ----------
    indices : dict of str to int
        Index of each feature, most frequent feature first.
    """

    def __init__(self, indices: dict[str, int]) -> None:
        self._indices = indices
        self._names, self._positions = list(indices), np.array(list(indices.values()), np.int64)

    @classmethod
    def read(cls, requests: Sequence[tuple[bytes, bytes]], dim: int, imported_arms: Sequence[str] = ()) -> FeatureNames:
        """Return the ``MAX_NAMES`` most frequent of the first ``NAMES_READ`` feature names in requests from the log.

        The requests of Azure Personalizer clients are stored without names. Their responses have the names of the
        features of the recommended arm. The names of ``imported_arms``, whose feature ``arm`` is their id, come last.
        """
        counts: Counter[str] = Counter()
        indices: dict[str, int] = {}
        remaining = NAMES_READ
        for request, response in requests if dim > 1 else ():
            named = [arm.features for arm in unpack_request(request).arms if isinstance(arm.features, dict)]
            for features in named or _explained_features(response):
                found = signed_indices(dict(islice(features.items(), remaining)), dim)
                indices |= found
                counts.update(found.keys())
                remaining -= len(features)
                if remaining <= 0:
                    break
            if remaining <= 0:
                break
        for arm in imported_arms if dim > 1 else ():
            found = signed_indices({"arm": arm}, dim)
            indices |= found
            counts.update(dict.fromkeys(found, 0))
        by_frequency = sorted(counts, key=counts.__getitem__, reverse=True)
        return cls({name: indices[name] for name in by_frequency[:MAX_NAMES]})

    def top_names(self, count: int) -> dict[str, int]:
        """Return the ``count`` most frequent names with their indices."""
        return dict(list(self._indices.items())[:count])

    def top_features(self, theta: Floats) -> list[FeatureWeight]:
        """Return up to ``MAX_TOP_FEATURES`` features with the largest positive weights in ``theta``, largest first.

        Features have names, or indices if no names are known.
        """
        weights = np.sign(self._positions) * theta[np.abs(self._positions)] if self._names else theta
        best = np.argsort(-weights, kind="stable")[:MAX_TOP_FEATURES].tolist()
        return [
            FeatureWeight(self._names[index] if self._names else str(index), float(weights[index]))
            for index in best
            if weights[index] > 0.0
        ]
