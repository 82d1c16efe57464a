"""Decisions as they are told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from locb.clusters import Membership
from locb.hashing import parts
from locb.policies import Explanation as Told
from locb.service.directory import Directory
from locb.service.messages import Explanation, Group, Lender, RankedArm
from locb.service.questions import Question

_encode = msgspec.json.Encoder().encode
MOST_REMEMBERED = 1000


class Answers:
    """Tells decisions, and remembers how sets were told: most users are in the same ones."""

    def __init__(self, directory: Directory, dim: int) -> None:
        self._directory = directory
        self._places = [str(place) for place in range(dim)]
        self._told: dict[int, tuple[Sequence[Membership], msgspec.Raw]] = {}

    def forget(self) -> None:
        """Names have changed."""
        self._told.clear()

    def encode(self, name: str, question: Question, told: Told, memberships: Sequence[Membership]) -> bytes:
        """The answer to a question, as JSON."""
        arm = question.request.arms[question.eligible[told.arm]].id
        ranking = _ranking(question, told)
        return _encode(_Decision(name, arm, ranking, self._groups(memberships), self._explanation(question, told)))

    def _groups(self, memberships: Sequence[Membership]) -> msgspec.Raw:
        if not isinstance(memberships, tuple):  # made for this user alone
            return msgspec.Raw(_encode(groups(memberships, self._directory)))
        known = self._told.get(id(memberships))
        if known is None:
            if len(self._told) >= MOST_REMEMBERED:
                self._told.clear()
            raw = msgspec.Raw(_encode(groups(memberships, self._directory)))
            known = self._told[id(memberships)] = memberships, raw  # kept, so that its id is not given to another
        return known[1]

    def _explanation(self, question: Question, told: Told) -> Explanation | None:
        if told.theta is None or told.bonus is None:
            return None
        features = question.request.arms[question.eligible[told.arm]].features
        constant = 0.0
        if isinstance(features, list):
            contributions = dict(zip(self._places, (question.contexts[told.arm] * told.theta).tolist(), strict=True))
        else:
            theta = told.theta.tolist()
            contributions = {}
            vector, names, places, weights = parts(features, len(theta))
            for name, place, weight in zip(names, places, weights, strict=True):
                contributions[name] = contributions.get(name, 0.0) + weight * theta[place]
            constant = float(vector[0]) * theta[0]
        name_of = self._directory.name
        lenders = [
            Lender(kind, None if seed is None else name_of(seed), weight, users, observations)
            for kind, seed, weight, users, observations in told.lenders or ()
        ]
        return Explanation(contributions, constant, float(told.bonus[told.arm]), lenders)


class _Decision(msgspec.Struct):
    """A decision of which some is JSON already; told as ``messages.Decision`` says."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: msgspec.Raw
    explanation: Explanation | None


def groups(memberships: Sequence[Membership], directory: Directory) -> list[Group]:
    """Sets by the names of their seeds; those of seeds who have not come yet are left out."""
    told = []
    for seed, size, returned_at in memberships:
        name = None if seed is None else directory.name(seed)
        if seed is None or name is not None:
            told.append(Group(name, size, returned_at is not None))
    return told


def _ranking(question: Question, told: Told) -> list[RankedArm]:
    arms, eligible = question.request.arms, question.eligible
    if told.estimate is None or told.bonus is None:  # a policy that does not say how it chooses
        return [RankedArm(arms[eligible[told.arm]].id, None, None, None)]
    estimates, bonuses = told.estimate.tolist(), told.bonus.tolist()
    scores = [estimate + bonus for estimate, bonus in zip(estimates, bonuses, strict=True)]
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    if order[0] != told.arm:  # of arms that tie, the one that was chosen comes first
        order.remove(told.arm)
        order.insert(0, told.arm)
    ranking = [RankedArm(arms[eligible[a]].id, scores[a], estimates[a], bonuses[a]) for a in order]
    return ranking if question.request.count is None else ranking[: question.request.count]
