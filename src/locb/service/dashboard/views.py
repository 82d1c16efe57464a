"""All views of the dashboard, encoded as JSON."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version

import numpy as np

from locb.service.core.service import Service
from locb.service.dashboard.cache import (
    FEATURE_NAMES_TTL,
    HISTORY_TTL,
    STATE_TTL,
    STATUS_TTL,
    STORE_SIZE_TTL,
    TTL_PER_SECOND,
    ViewCache,
)
from locb.service.dashboard.certificate_cache import CertificateCache
from locb.service.dashboard.cluster_table import (
    TableQuery,
    cluster_detail,
    cluster_table,
    encode_cluster_list,
)
from locb.service.dashboard.feature_names import BYTES_READ, REQUESTS_READ, FeatureNames
from locb.service.dashboard.history import Baseline, history
from locb.service.dashboard.map import MapProjector, to_response
from locb.service.dashboard.state_view import StateView, capture, summarize_groups
from locb.service.dashboard.status import status, store_size
from locb.service.responses import encode_json
from locb.service.store.database import StoreError
from locb.service.store.schema import START_SETTING

STATE_TIMEOUT = 0.3  # seconds that the status waits for a captured state


class Views:
    """Views of a service, encoded as JSON. All views except ``cluster_list`` and ``cluster_detail`` are cached.

    Cache keys contain the number of erased users, so that no result from before an erasure is returned after it.

    Parameters
    ----------
    service : Service
        The service.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._projector = MapProjector()
        self._certificates = CertificateCache()
        self._certificates_version = 0
        self._version = version("locb")
        self._status = ViewCache(self._compute_status, STATUS_TTL)
        self._history = ViewCache(self._compute_history, HISTORY_TTL)
        self._map = ViewCache(self._compute_map, STATE_TTL, TTL_PER_SECOND)
        self._clusters = ViewCache(self._compute_clusters, STATE_TTL, TTL_PER_SECOND)
        self._state = ViewCache(self._capture_state, STATE_TTL, TTL_PER_SECOND)
        self._feature_names = ViewCache(self._read_feature_names, FEATURE_NAMES_TTL, TTL_PER_SECOND)
        self._capturing = asyncio.Lock()
        # Last result of ``_current_state``: version of the data, monotonic time of the capture, and state.
        self._captured: tuple[tuple[int, int, int], float, StateView] | None = None
        self._store_size = ViewCache(self._measure_store, STORE_SIZE_TTL)

    @property
    def _data_version(self) -> int:
        return self._service.erasure_count

    async def status(self) -> bytes:
        """Return the current state of the service."""
        return await self._status.get(self._data_version)

    async def history(self, span: str, baseline: Baseline | None) -> bytes:
        """Return decisions and rewards over time."""
        return await self._history.get((self._data_version, span, baseline), span, baseline)

    async def map(self, projection: str | None) -> bytes:
        """Return a two-dimensional projection of the users' estimates."""
        state = await self._state.get(self._data_version)
        return await self._map.get((self._data_version, projection), state, projection)

    async def clusters(self, query: TableQuery) -> bytes:
        """Return a page of the table of clusters."""
        state, names = await self._state.get(self._data_version), await self.feature_names()
        return await self._clusters.get((self._data_version, query), state, names, query)

    async def cluster_list(self) -> bytes:
        """Return all clusters, without their members."""
        state = await self._current_state()
        return await asyncio.to_thread(encode_cluster_list, state, self._service.engine.users)

    async def cluster_detail(self, seed: str) -> bytes:
        """Return the cluster that is named after a user, with its members and its certificate."""
        self._service.require_index(seed)
        detail = await cluster_detail(self._service, await self._current_state(), seed)
        return await asyncio.to_thread(encode_json, detail)

    async def feature_names(self) -> FeatureNames:
        """Return the feature names in recent requests."""
        return await self._feature_names.get(self._data_version)

    # Computation

    async def _compute_status(self) -> bytes:
        state = await self._state.get_within(self._data_version, STATE_TIMEOUT)
        size = await self._store_size.get(self._data_version)
        if state is None:
            summary = await summarize_groups(self._service)
            same_as, returned = summary.same_as, summary.returned
        else:
            same_as, returned = state.same_as, state.returned
        if same_as is not None:  # duplicates count as one cluster
            returned = returned[same_as == np.arange(len(same_as))]
        return encode_json(status(self._service, state, returned, size, self._version))

    async def _compute_history(self, span: str, baseline: Baseline | None) -> bytes:
        return encode_json(await history(self._service, span, baseline))

    async def _compute_map(self, state: StateView, projection: str | None) -> bytes:
        projected = await self._projector.project(state, projection, self._data_version)
        response = await asyncio.to_thread(to_response, projected, state, self._service.engine.users)
        return encode_json(response)

    async def _compute_clusters(self, state: StateView, names: FeatureNames, query: TableQuery) -> bytes:
        if self._certificates_version != self._data_version:
            self._certificates.clear()
            self._certificates_version = self._data_version
        return encode_json(await cluster_table(self._service, state, names, self._certificates, query))

    async def _current_state(self) -> StateView:
        """Return a state that was captured after this call, or an earlier one if nothing has changed since then.

        Requests that wait at the same time share one state.
        """
        requested = time.monotonic()
        async with self._capturing:
            service = self._service
            version = self._data_version, service.engine.seq, len(service.engine.users)
            if self._captured is None or (self._captured[0] != version and self._captured[1] < requested):
                self._captured = version, time.monotonic(), await capture(service)
            return self._captured[2]

    async def _capture_state(self) -> StateView:
        return await capture(self._service)

    async def _read_feature_names(self) -> FeatureNames:
        log = self._service.log
        try:
            requests = await asyncio.to_thread(log.recent_requests, REQUESTS_READ, BYTES_READ)
            started = (await asyncio.to_thread(log.settings)).get(START_SETTING) or {}
        except StoreError:
            return FeatureNames({})  # features have no names until the store is available again
        imported_arms = started.get("arms", ())
        return await asyncio.to_thread(FeatureNames.read, requests, self._service.model.dim, imported_arms)

    async def _measure_store(self) -> int | None:
        return await asyncio.to_thread(store_size, self._service)
