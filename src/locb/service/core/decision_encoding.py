"""Decisions as they are told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from locb.common.feature_hashing import feature_contributions
from locb.evaluation.clusters import Membership
from locb.policies import EvidenceSource as PolicyEvidenceSource
from locb.policies import Explanation as Told
from locb.service.core.user_index import UserIndex
from locb.service.request_parsing import ParsedRequest
from locb.service.schemas import ClusterSummary, EvidenceSource, Explanation, RankedArm

_encode = msgspec.json.Encoder().encode
MOST_REMEMBERED = 10_000


class DecisionEncoder:
    """Tells decisions, and remembers how sets were told."""

    def __init__(self, users: UserIndex, dim: int) -> None:
        self._users = users
        self._places = [str(user_index) for user_index in range(dim)]
        self._told: dict[int, bytes] = {}  # by the id of a set's words
        self._kept: list[Membership] = []

    def forget(self) -> None:
        """Names have changed."""
        self._told.clear()
        self._kept.clear()

    def encode(self, name: str, question: ParsedRequest, told: Told, memberships: Sequence[Membership]) -> bytes:
        """The answer to a question, as JSON."""
        arm = question.request.arms[question.eligible[told.arm]].id
        ranking = _ranking(question, told)
        if self._users.unassigned and told.sources:
            told = told._replace(sources=self._counted(told.sources, memberships))
        return _encode(_Decision(name, arm, ranking, self._groups(memberships), self._explanation(question, told)))

    def _counted(
        self, sources: Sequence[PolicyEvidenceSource], memberships: Sequence[Membership]
    ) -> tuple[PolicyEvidenceSource, ...]:
        """Without the places that nobody has among the users of sets that still change."""
        changing = {one.seed for one in memberships if one.seed is not None and one.returned_at is None}
        empty = self._users.unassigned
        return tuple(
            one._replace(users=one.users - empty) if one.kind == "cluster" and one.seed in changing else one
            for one in sources
        )

    def _groups(self, memberships: Sequence[Membership]) -> msgspec.Raw:
        found = []
        for one in memberships:
            words = self._told.get(id(one))
            found.append(self._tell(one) if words is None else words)
        return msgspec.Raw(b"[" + b",".join(filter(None, found)) + b"]")

    def _tell(self, one: Membership) -> bytes:
        """A set as JSON, once; nothing while nobody has come for its seed's place."""
        if len(self._kept) >= MOST_REMEMBERED:
            self.forget()
        told = summarize_membership(one, self._users)
        words = self._told[id(one)] = b"" if told is None else _encode(told)
        self._kept.append(one)  # so that its id is not given to another
        return words

    def _explanation(self, question: ParsedRequest, told: Told) -> Explanation | None:
        if told.theta is None or told.bonus is None:
            return None
        features = question.request.arms[question.eligible[told.arm]].features
        constant = 0.0
        if isinstance(features, list):
            contributions = dict(zip(self._places, (question.contexts[told.arm] * told.theta).tolist(), strict=True))
        else:
            theta = told.theta.tolist()
            contributions = {}
            vector, names, places, weights = feature_contributions(features, len(theta))
            for name, user_index, weight in zip(names, places, weights, strict=True):
                contributions[name] = contributions.get(name, 0.0) + weight * theta[user_index]
            constant = float(vector[0]) * theta[0]
        name_of = self._users.name_of
        sources = [
            EvidenceSource(kind, None if seed is None else name_of(seed), weight, users, observations)
            for kind, seed, weight, users, observations in told.sources or ()
        ]
        return Explanation(contributions, constant, float(told.bonus[told.arm]), sources)


class _Decision(msgspec.Struct):
    """A decision of which some is JSON already; told as ``messages.Decision`` says."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: msgspec.Raw
    explanation: Explanation | None


def told_seed(name: str | None) -> str:
    """How a seed stands in an answer; in no other place can these words stand, since quotes in a text are escaped."""
    return f'"seed":{_encode(name).decode()}'


def summarize_membership(one: Membership, users: UserIndex) -> ClusterSummary | None:
    """A set by the name of its seed; None while nobody has come for the seed's place."""
    if one.seed is None:
        return ClusterSummary(None, one.size, one.returned_at is not None)
    name = users.name_of(one.seed)
    # A place that nobody has is in every set that still changes, and in no other; it is nobody.
    empty = users.unassigned if one.returned_at is None else 0
    size = None if one.size is None else one.size - empty
    return None if name is None else ClusterSummary(name, size, one.returned_at is not None)


def _ranking(question: ParsedRequest, told: Told) -> list[RankedArm]:
    arms, eligible = question.request.arms, question.eligible
    if told.estimate is None or told.bonus is None:  # a policy that does not say how it chooses
        return [RankedArm(arms[eligible[told.arm]].id, None, None, None)]
    estimates, bonuses = told.estimate.tolist(), told.bonus.tolist()
    scores = [estimate + bonus for estimate, bonus in zip(estimates, bonuses, strict=True)]
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    if order[0] != told.arm:  # of arms that tie, the one that was chosen comes first
        order.remove(told.arm)
        order.insert(0, told.arm)
    if question.request.count is not None:
        del order[question.request.count :]
    return [RankedArm(arms[eligible[a]].id, scores[a], estimates[a], bonuses[a]) for a in order]
