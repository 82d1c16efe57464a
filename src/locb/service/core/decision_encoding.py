"""Encoding of decisions as JSON responses."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from locb.common.feature_hashing import feature_contributions
from locb.evaluation.clusters import Membership
from locb.policies import EvidenceSource as PolicyEvidenceSource
from locb.policies import Explanation as PolicyExplanation
from locb.service.core.user_index import UserIndex
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import ClusterSummary, EvidenceSource, Explanation, RankedArm

MAX_CACHED_CLUSTERS = 10_000
_encode = msgspec.json.Encoder().encode


class DecisionEncoder:
    """Encoder of decisions as JSON, with a cache of encoded clusters.

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
        # Encoded clusters by value, not by object: most policies create their ``Membership`` objects for each decision.
        self._encoded: dict[Membership, bytes] = {}

    def clear_cache(self) -> None:
        """Discard the encoded clusters. Required when a user is created or erased."""
        self._encoded.clear()

    def encode(
        self,
        decision_id: str,
        parsed: ParsedRequest,
        explanation: PolicyExplanation,
        memberships: Sequence[Membership],
    ) -> bytes:
        """Return the JSON response to a recommend request."""
        arm = parsed.request.arms[parsed.eligible[explanation.arm]].id
        ranking = _rank_arms(parsed, explanation)
        if self._users.unassigned and explanation.sources:
            explanation = explanation._replace(sources=self._without_unassigned(explanation.sources, memberships))
        clusters = self._encode_clusters(memberships)
        return _encode(_Response(decision_id, arm, ranking, clusters, self._explanation(parsed, explanation)))

    def _without_unassigned(
        self, sources: Sequence[PolicyEvidenceSource], memberships: Sequence[Membership]
    ) -> tuple[PolicyEvidenceSource, ...]:
        """Return the sources with corrected user counts: clusters that are not final contain all unassigned indices."""
        forming = {
            membership.seed
            for membership in memberships
            if membership.seed is not None and membership.returned_at is None
        }
        unassigned = self._users.unassigned
        return tuple(
            source._replace(users=source.users - unassigned)
            if source.kind == "cluster" and source.seed in forming
            else source
            for source in sources
        )

    def _encode_clusters(self, memberships: Sequence[Membership]) -> msgspec.Raw:
        found = [*map(self._encoded.get, memberships)]
        if None in found:
            found = [
                self._encode_cluster(membership) if encoded is None else encoded
                for membership, encoded in zip(memberships, found, strict=True)
            ]
        return msgspec.Raw(b"[" + b",".join(filter(None, found)) + b"]")

    def _encode_cluster(self, membership: Membership) -> bytes:
        """Encode a cluster and cache the result, which is empty while no user is assigned to the seed's index."""
        if len(self._encoded) >= MAX_CACHED_CLUSTERS:
            self.clear_cache()
        summary = summarize_membership(membership, self._users)
        encoded = self._encoded[membership] = b"" if summary is None else _encode(summary)
        return encoded

    def _explanation(self, parsed: ParsedRequest, explanation: PolicyExplanation) -> Explanation | None:
        if explanation.theta is None or explanation.bonus is None:
            return None
        arm = explanation.arm
        features = parsed.request.arms[parsed.eligible[arm]].features
        intercept = explanation.intercept
        if isinstance(features, list):
            products = (parsed.contexts[arm] * explanation.theta).tolist()
            contributions = dict(zip(self._feature_names, products, strict=True))
        else:
            theta = explanation.theta.tolist()
            contributions = {}
            vector, names, indices, weights = feature_contributions(features, len(theta))
            for name, index, weight in zip(names, indices, weights, strict=True):
                contributions[name] = contributions.get(name, 0.0) + weight * theta[index]
            intercept += float(vector[0]) * theta[0]
        name_of = self._users.name_of
        sources = [
            EvidenceSource(kind, None if seed is None else name_of(seed), weight, users, observations)
            for kind, seed, weight, users, observations in explanation.sources or ()
        ]
        return Explanation(contributions, intercept, float(explanation.bonus[arm]), sources)


class _Response(msgspec.Struct):
    """Variant of ``schemas.Decision`` whose clusters are already encoded."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: msgspec.Raw
    explanation: Explanation | None


def encode_seed(name: str | None) -> str:
    """Return the JSON text ``"seed":name`` as it appears in a response.

    This text occurs only where a cluster has this seed, because JSON escapes the quotes within strings.
    """
    return f'"seed":{_encode(name).decode()}'


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


def _rank_arms(parsed: ParsedRequest, explanation: PolicyExplanation) -> list[RankedArm]:
    arms, eligible = parsed.request.arms, parsed.eligible
    if explanation.estimate is None or explanation.bonus is None:  # the policy does not explain its choices
        return [RankedArm(arms[eligible[explanation.arm]].id, None, None, None)]
    estimates, bonuses = explanation.estimate.tolist(), explanation.bonus.tolist()
    scores = [estimate + bonus for estimate, bonus in zip(estimates, bonuses, strict=True)]
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    if order[0] != explanation.arm:  # among arms with equal scores, the chosen one comes first
        order.remove(explanation.arm)
        order.insert(0, explanation.arm)
    if parsed.request.count is not None:
        del order[parsed.request.count :]
    return [RankedArm(arms[eligible[a]].id, scores[a], estimates[a], bonuses[a]) for a in order]
