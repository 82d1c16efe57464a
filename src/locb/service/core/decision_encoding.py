"""Encoding of decisions: the JSON response for the client, also from the log, and its packed form for the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from locb.common.feature_hashing import signed_indices
from locb.evaluation.clusters import Membership
from locb.policies import Explanation as PolicyExplanation
from locb.recommender.events import DecisionRow
from locb.recommender.requests import ParsedRequest
from locb.recommender.user_index import UserIndex
from locb.service.packed_responses import (
    NameOf,
    PackedExplanation,
    PackedResponse,
    PackedSource,
    chosen_context,
    encode_json,
    pack,
    pack_cluster,
    unpack,
    unpack_clusters,
    unpack_request,
)
from locb.service.schemas import Arm, ClusterSummary, EvidenceSource, Explanation, Features, RankedArm

MAX_CACHED_CLUSTERS = 10_000


class DecisionEncoder:
    """Encoder of decisions, with a cache of encoded clusters.

    Parameters
    ----------
    users : UserIndex
        Names of the users.
    dim : int
        Number of features per arm.
    """

    def __init__(self, users: UserIndex, dim: int) -> None:
        self._users = users
        self._dim = dim
        self._feature_names = [str(feature) for feature in range(dim)]
        # Encoded clusters (JSON and packed) by value, not by object: most policies create their ``Membership`` objects
        # for each decision.
        self._encoded: dict[Membership, tuple[bytes, bytes]] = {}

    def clear_cache(self) -> None:
        """Discard the encoded clusters. Required when a user is created or erased."""
        self._encoded.clear()

    def encode(
        self,
        decision_id: str,
        parsed: ParsedRequest,
        explanation: PolicyExplanation,
        memberships: Sequence[Membership],
    ) -> tuple[bytes, bytes]:
        """Return the JSON response to a recommend request, and the packed response for the log."""
        texts, packed_clusters = self._encode_clusters(memberships)
        ranking = parsed.rank(explanation)
        names, explained = self._explanation(parsed, explanation)
        packed = PackedResponse(*ranking, packed_clusters, explained)
        response = render(decision_id, parsed.request.arms, packed, names, texts, self._users.name_of)
        return response, pack(packed)

    def chosen_context(self, decision: DecisionRow) -> bytes:
        """Return the features of the chosen arm of a decision from the log, as float64; empty if they were dropped."""
        return chosen_context(decision.request, decision.response, self._dim)

    def _encode_clusters(self, memberships: Sequence[Membership]) -> tuple[bytes, bytes]:
        """Return the clusters as JSON, without brackets, and packed."""
        found = [*map(self._encoded.get, memberships)]
        if None in found:
            found = [
                self._encode_cluster(membership) if encoded is None else encoded
                for membership, encoded in zip(memberships, found, strict=True)
            ]
        if not found:
            return b"", b""
        texts, packed = zip(*found, strict=True)
        return b",".join(filter(None, texts)), b"".join(packed)

    def _encode_cluster(self, membership: Membership) -> tuple[bytes, bytes]:
        """Encode a cluster and cache the result, which is empty while no user is assigned to the seed's index."""
        if len(self._encoded) >= MAX_CACHED_CLUSTERS:
            self.clear_cache()
        summary = summarize_membership(membership, self._users)
        encoded = b"", b""
        if summary is not None:
            encoded = encode_json(summary), pack_cluster(membership.seed, summary.size, summary.returned)
        self._encoded[membership] = encoded
        return encoded

    def _explanation(
        self, parsed: ParsedRequest, explanation: PolicyExplanation
    ) -> tuple[Sequence[str], PackedExplanation | None]:
        """Return the names of the explained features, and the explanation."""
        if explanation.theta is None or explanation.bonus is None:
            return (), None
        found, contributions, intercept = parsed.contributions(explanation)
        names = self._feature_names if found is None else found
        name_of = self._users.name_of
        sources = [
            PackedSource(
                kind, None if seed is None or name_of(seed) is None else seed, float(weight), users, observations
            )
            for kind, seed, weight, users, observations in explanation.sources or ()
        ]
        stored_names = None if parsed.named_features is None else list(names)
        return names, PackedExplanation(contributions, intercept, sources, stored_names, explanation.screened)


def summarize_membership(membership: Membership, users: UserIndex) -> ClusterSummary | None:
    """Return a cluster with the name of its seed, or None while no user is assigned to the seed's index."""
    summary = users.summarize(membership)
    return None if summary is None else ClusterSummary(*summary)


class _Response(msgspec.Struct):
    """Variant of ``schemas.Decision`` whose clusters are already encoded."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: msgspec.Raw
    explanation: Explanation | None


def render(
    decision_id: str,
    arms: Sequence[Arm],
    packed: PackedResponse,
    names: Iterable[str],
    clusters: bytes,
    name_of: NameOf,
) -> bytes:
    """Return the JSON of a response.

    Parameters
    ----------
    decision_id : str
        Id of the decision.
    arms : sequence of Arm
        All arms of the request.
    packed : PackedResponse
        The response.
    names : iterable of str
        Names of the explained features.
    clusters : bytes
        The clusters as JSON, without brackets.
    name_of : callable
        Returns the name of the seed at a user index.
    """
    ranking, estimates, bonuses = packed.ranking, packed.estimates, packed.bonuses
    if estimates is None:
        ranked = [RankedArm(arms[position].id, None, None, None) for position in ranking]
    else:
        ranked = [
            RankedArm(arms[position].id, estimate + bonus, estimate, bonus)
            for position, estimate, bonus in zip(ranking, estimates, bonuses, strict=True)
        ]
    explanation = None
    if (found := packed.explanation) is not None:
        sources = [
            EvidenceSource(
                source.kind,
                None if source.seed is None else name_of(source.seed),
                source.weight,
                source.users,
                source.observations,
            )
            for source in found.sources
        ]
        contributions = dict(zip(names, found.contributions, strict=True))
        explanation = Explanation(contributions, found.intercept, bonuses[0], sources, found.screened)
    raw = msgspec.Raw(b"[" + clusters + b"]")
    return encode_json(_Response(decision_id, arms[ranking[0]].id, ranked, raw, explanation))


def render_stored(decision_id: bytes, request: bytes, response: bytes, name_of: NameOf) -> bytes:
    """Return the JSON of a response from the log.

    It equals the JSON that the client received, except that seeds without a name, such as erased users, are null.
    """
    packed, arms = unpack(response), unpack_request(request).arms
    names: list[str] = []
    if packed.explanation is not None:
        names = packed.explanation.names or feature_names(arms[packed.ranking[0]].features)
    clusters = (
        ClusterSummary(None if seed is None else name_of(seed), size, returned)
        for seed, size, returned in unpack_clusters(packed.clusters)
    )
    return render(decision_id.decode(), arms, packed, names, b",".join(map(encode_json, clusters)), name_of)


def feature_names(features: Features) -> list[str]:
    """Return the names of features in an explanation: their keys, or their indices if the features are an array."""
    return [*map(str, range(len(features)))] if isinstance(features, list) else [*signed_indices(features, 2)]
