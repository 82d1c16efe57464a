"""Clusters: the table of the dashboard, the list of all clusters, and one cluster with its members."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.policies.base.user_batch import membership_probabilities
from locb.recommender.user_index import UserIndex
from locb.service import errors
from locb.service.core.service import Service
from locb.service.dashboard.certificate_cache import Certificate, CertificateCache
from locb.service.dashboard.cluster_schemas import (
    ClusterDetail,
    ClusterOverlap,
    ClusterRow,
    ClusterTable,
    ListedCluster,
)
from locb.service.dashboard.feature_names import FeatureNames
from locb.service.dashboard.state_view import StateView, summarize_groups, user_slices
from locb.service.responses import encode_json

SORTS = ("size", "reward", "progress", "sure", "seed")
MAX_OVERLAP = 12  # clusters of a page whose overlap is computed
MAX_DISTANCE = 2.0  # between two preference vectors of norm at most 1
MAX_PAIRED = 2_000  # members; the certificate of a larger cluster is not computed over all pairs of members
ENCODED_AT_ONCE = 1_000  # clusters; encoding takes less than 1 ms


class TableQuery(NamedTuple):
    """Order, page and search text of the table."""

    sort: str  # one of ``SORTS``
    limit: int  # maximum number of rows
    offset: int  # number of rows before the page
    search: str  # part of the name of a cluster, not case-sensitive; empty: all clusters


async def cluster_table(
    service: Service, state: StateView, names: FeatureNames, certificates: CertificateCache, query: TableQuery
) -> ClusterTable:
    """Return a page of the table of clusters."""
    selection = await asyncio.to_thread(_select, state, service.engine.users, query)
    page = selection.clusters[query.offset : query.offset + query.limit]
    shares = await asyncio.to_thread(_overlap_shares, state, page[:MAX_OVERLAP])
    certified = await certificates.get(service, state, page.tolist())
    rows = await asyncio.to_thread(_table_rows, state, selection.names, names, page.tolist(), certified)
    overlap = ClusterOverlap([row.seed for row in rows[:MAX_OVERLAP]], shares.round(4).tolist())
    low, high = service.model.parameters.get("reward_range") or (0.0, 1.0)
    counts = len(selection.clusters), selection.returned, selection.forming
    return ClusterTable(*counts, MAX_DISTANCE * (high - low), rows, overlap)


def _table_rows(
    state: StateView,
    cluster_names: list[str | None],
    names: FeatureNames,
    page: list[int],
    certificates: list[Certificate],
) -> list[ClusterRow]:
    """Return the rows of a page. Runs in a thread, because the top features are selected from up to 2,000 names."""
    rows = []
    for k, certificate in zip(page, certificates, strict=True):
        progress, (rewards, total) = float(state.progress[k]), state.reward_totals[k].tolist()
        rows.append(
            ClusterRow(
                cluster_names[k],
                int(state.sizes[k]),
                bool(state.returned[k]),
                None if np.isnan(progress) else progress,
                certificate.bound,
                certificate.exact,
                _sure_share(state, k),
                _original_name(state, cluster_names, k),
                int(rewards),
                total / rewards if rewards else None,
                names.top_features(state.mean_theta[k]),
            )
        )
    return rows


def _sure_share(state: StateView, k: int) -> float | None:
    if state.sure_members is None or state.representatives[k] < 0:
        return None
    return int(state.sure_members[k]) / int(state.sizes[k])


def _original_name(state: StateView, cluster_names: list[str | None], k: int) -> str | None:
    """Return the name of the cluster of which cluster k is a duplicate; None if there is none."""
    original = int(state.same_as[k])
    return None if original == k else cluster_names[original]


def _representative_names(indices: list[int], users: UserIndex) -> list[str | None]:
    return [None if index < 0 else users.name_of(index) for index in indices]


class _Selection(NamedTuple):
    """Result of a search in the table of clusters."""

    clusters: Ints  # positions in the state of the clusters that match, in order
    names: list[str | None]  # of all clusters
    returned: int  # number of final clusters, without duplicates
    forming: int  # number of clusters that can still change, without duplicates


def _select(state: StateView, users: UserIndex, query: TableQuery) -> _Selection:
    """Search and sort the clusters.

    The function runs in a thread, because it takes long for thousands of clusters. It only reads its arguments.
    """
    indices = state.representatives.tolist()
    names = _representative_names(indices, users)
    # A cluster whose representative was erased in the meantime is omitted.
    existing = [k for k, (index, name) in enumerate(zip(indices, names, strict=True)) if index < 0 or name is not None]
    distinct = [k for k in existing if state.same_as[k] == k]
    returned = int(state.returned[distinct].sum())
    text = query.search.casefold()
    found = [k for k in existing if text in (names[k] or "").casefold()] if text else existing
    return _Selection(_sort(state, found, names, query.sort), names, returned, len(distinct) - returned)


def _sort(state: StateView, clusters: list[int], names: list[str | None], sort: str) -> Ints:
    """Return the clusters in the order of the table.

    Names are in ascending order, and clusters without a name come last. All other keys are in descending order, and
    among clusters with equal keys, larger clusters come first. Missing values come last.
    """
    if sort == "seed":
        return np.array(sorted(clusters, key=lambda k: (names[k] is None, names[k])), np.int64)
    found = np.array(clusters, np.int64)
    sizes = state.sizes[found]
    key: Floats | Ints = sizes
    if sort == "progress":
        key = np.nan_to_num(state.progress[found], nan=-1.0)
    elif sort == "sure" and state.sure_members is not None:
        key = state.sure_members[found] / sizes
    elif sort == "reward":
        count, total = state.reward_totals[found].T
        key = np.divide(total, count, np.full(len(found), -np.inf), where=count > 0)
    order: Ints = found[np.lexsort((-sizes, -key))]
    return order


def _overlap_shares(state: StateView, clusters: Ints) -> Floats:
    """Return |i ∩ j| / |i| for each pair of clusters i (rows) and j (columns)."""
    common = np.zeros((len(clusters), len(clusters)))
    for _, inside in state.memberships.blocks(state.cluster_ids[clusters]):
        dense = inside.astype(np.float64)
        common += dense.T @ dense
    shares: Floats = common / np.maximum(common.diagonal()[:, None], 1.0)
    return shares


# All clusters, and one cluster


def encode_cluster_list(state: StateView, users: UserIndex) -> bytes:
    """Return a ``ClusterList`` as JSON. Runs in a thread.

    The clusters are encoded in parts, because the event loop cannot run while a thread encodes a part.
    """
    parts = []
    indices, sizes, returned = state.representatives.tolist(), state.sizes.tolist(), state.returned.tolist()
    names = _representative_names(indices, users)
    for start in range(0, len(sizes), ENCODED_AT_ONCE):
        clusters = []
        for k in range(start, min(start + ENCODED_AT_ONCE, len(sizes))):
            if indices[k] >= 0 and names[k] is None:
                continue  # the representative was erased in the meantime
            same_as = _original_name(state, names, k)
            clusters.append(ListedCluster(names[k], sizes[k], returned[k], _sure_share(state, k), same_as))
        if clusters:
            parts.append(encode_json(clusters)[1:-1])
    return b'{"clusters":[' + b",".join(parts) + b"]}"


async def cluster_detail(service: Service, state: StateView, seed: str) -> ClusterDetail:
    """Return the cluster that is named after a user, with its members and its certificate.

    Raises
    ------
    ProblemError
        404, if the user is unknown or no cluster is named after the user.
    """
    index = service.require_index(seed)
    found = np.flatnonzero(state.representatives == index)
    if not len(found):
        raise errors.unknown_cluster(seed)
    cluster = int(found[0])
    returned = bool(state.returned[cluster])
    rounds = {membership.seed: membership.returned_at for membership in service.policy.memberships(index)}
    returned_at = rounds.get(index, rounds.get(None)) if returned else None
    indices = await asyncio.to_thread(state.members, cluster)
    bound, exact = await service.certify(indices, len(indices) <= MAX_PAIRED)
    probabilities = await _member_probabilities(service, indices, int(state.cluster_ids[cluster]))
    members, probabilities = await asyncio.to_thread(_name_members, service.engine.users, indices, probabilities)
    return ClusterDetail(seed, len(members), returned, returned_at, members, probabilities, bound, exact)


async def _member_probabilities(service: Service, indices: Ints, cluster_id: int) -> list[float] | None:
    """Return the probability that each user belongs to a cluster; None if the policy has no probabilities."""
    summary = await summarize_groups(service)
    if summary.same_as is None:
        return None
    found: list[float] = []
    column = int(np.flatnonzero(summary.names == cluster_id)[0])
    async for _, batch in user_slices(service, indices):
        probabilities = membership_probabilities(summary, batch)
        found += [] if probabilities is None else probabilities[:, column].tolist()
    return found


def _name_members(
    users: UserIndex, indices: Ints, probabilities: list[float] | None
) -> tuple[list[str], list[float] | None]:
    """Return the names of users, and their probabilities, without users who were erased in the meantime."""
    names = [*map(users.name_of, indices.tolist())]
    if probabilities is not None:
        probabilities = [value for value, name in zip(probabilities, names, strict=True) if name is not None]
    return [name for name in names if name is not None], probabilities
