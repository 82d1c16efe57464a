"""Encoding of decisions: the JSON response for the client, also from the log, and its packed form for the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from locb.common.feature_hashing import feature_contributions, signed_indices
from locb.evaluation.clusters import Membership
from locb.policies import EvidenceSource as PolicyEvidenceSource
from locb.policies import Explanation as PolicyExplanation
from locb.recommender.user_index import UserIndex
from locb.service.packed_responses import (
    NameOf,
    PackedExplanation,
    PackedResponse,
    PackedSource,
    encode_json,
    pack,
    pack_cluster,
    unpack,
    unpack_clusters,
    unpack_request,
)
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import Arm, ClusterSummary, EvidenceSource, Explanation, Features, RankedArm

MAX_CACHED_CLUSTERS = 10_000
WITH_ALL_USERS = ("everyone", "population", "other")  # kinds of evidence sources that contain all users


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
        if self._users.unassigned and explanation.sources:
            explanation = explanation._replace(sources=self._without_unassigned(explanation.sources, memberships))
        texts, packed_clusters = self._encode_clusters(memberships)
        names, explained = self._explanation(parsed, explanation)
        packed = PackedResponse(*_rank_arms(parsed, explanation), packed_clusters, explained)
        response = render(decision_id, parsed.request.arms, packed, names, texts, self._users.name_of)
        return response, pack(packed)

    def _without_unassigned(
        self, sources: Sequence[PolicyEvidenceSource], memberships: Sequence[Membership]
    ) -> tuple[PolicyEvidenceSource, ...]:
        """Return the sources with corrected user counts, without unassigned indices.

        Clusters that are not final, and the kinds ``WITH_ALL_USERS``, contain all unassigned indices.
        """
        forming = {
            membership.seed
            for membership in memberships
            if membership.seed is not None and membership.returned_at is None
        }
        unassigned = self._users.unassigned
        return tuple(
            source._replace(users=source.users - unassigned)
            if source.kind in WITH_ALL_USERS or (source.kind == "cluster" and source.seed in forming)
            else source
            for source in sources
        )

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
        position = parsed.eligible[explanation.arm]
        named = parsed.named_features
        features = parsed.request.arms[position].features if named is None else named[position]
        intercept = explanation.intercept
        names: Sequence[str]
        if isinstance(features, list):
            names = self._feature_names
            contributions = (parsed.contexts[explanation.arm] * explanation.theta).tolist()
        else:
            theta = explanation.theta.tolist()
            by_name: dict[str, float] = {}
            vector, keys, indices, weights = feature_contributions(features, len(theta))
            for key, index, weight in zip(keys, indices, weights, strict=True):
                by_name[key] = by_name.get(key, 0.0) + weight * theta[index]
            intercept += float(vector[0]) * theta[0]
            names, contributions = list(by_name), list(by_name.values())
        name_of = self._users.name_of
        sources = [
            PackedSource(
                kind, None if seed is None or name_of(seed) is None else seed, float(weight), users, observations
            )
            for kind, seed, weight, users, observations in explanation.sources or ()
        ]
        stored_names = None if named is None else list(names)
        return names, PackedExplanation(contributions, float(intercept), sources, stored_names, explanation.screened)


def summarize_membership(membership: Membership, users: UserIndex) -> ClusterSummary | None:
    """Return a cluster with the name of its seed, or None while no user is assigned to the seed's index."""
    final = membership.returned_at is not None
    if membership.seed is None:
        return ClusterSummary(None, membership.size, final)
    name = users.name_of(membership.seed)
    # Every cluster that is not final contains all unassigned indices, which must not be counted as users.
    unassigned = 0 if final else users.unassigned
    size = None if membership.size is None else membership.size - unassigned
    return None if name is None else ClusterSummary(name, size, final)


def _rank_arms(
    parsed: ParsedRequest, explanation: PolicyExplanation
) -> tuple[list[int], list[float] | None, list[float]]:
    """Return the positions of the ranked arms in the request, with their estimates and bonuses.

    The chosen arm comes first, and the others follow by decreasing score. The chosen arm has the highest score, or one
    of several equal scores, unless a safety screen of the policy has replaced that arm.
    """
    eligible = parsed.eligible
    if explanation.estimate is None or explanation.bonus is None:  # the policy does not explain its choices
        bonus = [] if explanation.bonus is None else [float(explanation.bonus[explanation.arm])]
        return [eligible[explanation.arm]], None, bonus
    estimates, bonuses = explanation.estimate.tolist(), explanation.bonus.tolist()
    scores = [estimate + bonus for estimate, bonus in zip(estimates, bonuses, strict=True)]
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    if order[0] != explanation.arm:
        order.remove(explanation.arm)
        order.insert(0, explanation.arm)
    if parsed.request.count is not None:
        del order[parsed.request.count :]
    return [eligible[a] for a in order], [estimates[a] for a in order], [bonuses[a] for a in order]


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
