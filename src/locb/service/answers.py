"""Decisions as they are told."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from locb.clusters import Membership
from locb.hashing import parts
from locb.policies import Explanation as Told
from locb.service.directory import Directory
from locb.service.messages import Decision, Explanation, Group, Lender, RankedArm
from locb.service.questions import Question

_encode = msgspec.json.Encoder().encode


def encode_decision(
    name: str, question: Question, told: Told, memberships: Sequence[Membership], directory: Directory
) -> bytes:
    """The answer to a question, as JSON."""
    return _encode(
        Decision(
            name,
            question.request.arms[question.eligible[told.arm]].id,
            _ranking(question, told),
            groups(memberships, directory),
            _explanation(question, told, directory),
        )
    )


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
    score = told.estimate + told.bonus
    score[told.arm] = np.inf  # of arms that tie, the one that was chosen comes first
    order = np.argsort(-score, kind="stable").tolist()
    estimates, bonuses = told.estimate.tolist(), told.bonus.tolist()
    ranking = [RankedArm(arms[eligible[a]].id, estimates[a] + bonuses[a], estimates[a], bonuses[a]) for a in order]
    return ranking if question.request.count is None else ranking[: question.request.count]


def _explanation(question: Question, told: Told, directory: Directory) -> Explanation | None:
    if told.theta is None or told.bonus is None:
        return None
    features = question.request.arms[question.eligible[told.arm]].features
    if isinstance(features, list):
        products = (question.contexts[told.arm] * told.theta).tolist()
        contributions = dict(zip(map(str, range(len(products))), products, strict=True))
        constant = 0.0
    else:
        theta = told.theta.tolist()
        contributions = {}
        vector, names, places, weights = parts(features, len(theta))
        for name, place, weight in zip(names, places, weights, strict=True):
            contributions[name] = contributions.get(name, 0.0) + weight * theta[place]
        constant = float(vector[0]) * theta[0]
    lenders = [
        Lender(lender.kind, None if lender.seed is None else directory.name(lender.seed), lender.weight, lender.users,
               lender.observations)
        for lender in told.lenders or ()
    ]  # fmt: skip
    return Explanation(contributions, constant, float(told.bonus[told.arm]), lenders)
