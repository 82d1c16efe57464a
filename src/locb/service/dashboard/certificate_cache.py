"""Cache of certificates for the table of clusters.

A certificate is an upper bound on the distance between the preferences of any two members of a cluster.
``Service.certify`` computes it, which takes long for large clusters. Each request for the table therefore computes only
a few certificates; all other certificates come from this cache.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import NamedTuple

from locb.service.core.service import Service
from locb.service.dashboard.state_view import StateView

MAX_CERTIFIED = 5_000  # members; larger clusters have no certificate in the table
MAX_PAIRED = 300  # members; the certificate of a larger cluster is not computed over all pairs of members
MISSING_SECONDS = 0.5  # time per request to compute missing certificates
OUTDATED_SECONDS = 0.02  # time per request to refresh outdated certificates
MAX_AGE = 30.0  # seconds after which a certificate is outdated
MAX_ENTRIES = 2_000  # cached certificates


class Certificate(NamedTuple):
    """Certificate of a cluster, and how and when it was computed."""

    bound: float | None  # None if the policy has no certificate for the cluster
    exact: bool  # whether the bound was computed over all pairs of members
    time: float  # monotonic clock, in seconds


UNKNOWN = Certificate(None, False, 0.0)


class CertificateCache:
    """Cached certificates, by the index of the user after whom the cluster is named."""

    def __init__(self) -> None:
        self._entries: dict[int, Certificate] = {}
        self._lock = asyncio.Lock()

    def clear(self) -> None:
        """Remove all entries. Required after a user was erased, because certificates may depend on that user."""
        self._entries.clear()

    async def get(self, service: Service, state: StateView, clusters: Iterable[int]) -> list[Certificate]:
        """Return the certificate of each cluster; ``clusters`` are positions in ``state.cluster_ids``.

        The result is ``UNKNOWN`` for a cluster that is too large, or whose certificate was not computed yet.
        """
        clusters, sizes, keys = list(clusters), state.sizes, state.representatives.tolist()
        small = [cluster for cluster in clusters if sizes[cluster] <= MAX_CERTIFIED]
        async with self._lock:
            start = time.monotonic()
            for cluster in sorted(small, key=lambda cluster: self._entries.get(keys[cluster], UNKNOWN).time):
                entry = self._entries.get(keys[cluster])
                elapsed, budget = time.monotonic() - start, MISSING_SECONDS if entry is None else OUTDATED_SECONDS
                if elapsed > budget or (entry is not None and time.monotonic() - entry.time < MAX_AGE):
                    break
                await self._refresh(service, state, cluster, keys[cluster])
            while len(self._entries) > MAX_ENTRIES:
                self._entries.pop(next(iter(self._entries)))
        certified = set(small)
        return [self._entries.get(keys[cluster], UNKNOWN) if cluster in certified else UNKNOWN for cluster in clusters]

    async def _refresh(self, service: Service, state: StateView, cluster: int, key: int) -> None:
        members = await asyncio.to_thread(state.members, cluster)
        bound, exact = await service.certify(members, len(members) <= MAX_PAIRED)
        self._entries.pop(key, None)
        self._entries[key] = Certificate(bound, exact, time.monotonic())
