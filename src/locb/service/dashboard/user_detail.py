"""One user closely: what is known of them, what was decided for them, what would be recommended now."""

from __future__ import annotations

import asyncio

import msgspec
import numpy as np

from locb.service.core.decision_encoding import group
from locb.service.core.service import Service
from locb.service.dashboard.feature_names import Names
from locb.service.dashboard.schemas import PreviewResponse, UserDecision, UserDecisions
from locb.service.request_parsing import parse_request, parse_stored_request
from locb.service.schemas import PreviewRequest, RecommendRequest, UserDetail
from locb.service.stats.intervals import NORMAL
from locb.service.store.rows import FoundDecision
from locb.service.store.schema import CORRECTION, DEFAULT, REWARD

MOST_NAMES = 300  # of features that are told with a user
REWARD_STATUS = {None: "pending", REWARD: "received", DEFAULT: "default", CORRECTION: "corrected"}
_preview = msgspec.json.Decoder(PreviewResponse).decode  # passes over the name of a decision


def user(service: Service, name: str, names: Names) -> UserDetail:
    """What is known of a user."""
    place, user_index = service.place_of(name), service.engine.user_index
    estimate = service.policy.estimate(place)
    intervals = None
    if estimate is not None and estimate.deviation is not None:
        reach = NORMAL * estimate.deviation
        intervals = list(zip((estimate.theta - reach).tolist(), (estimate.theta + reach).tolist(), strict=True))
    ((rewards, total),) = service.event_stats.at(np.array([place])).tolist()
    return UserDetail(
        name,
        None if estimate is None else estimate.served,
        None if estimate is None else estimate.theta.tolist(),
        None if estimate is None else estimate.radius,
        [told for told in (group(one, user_index) for one in service.policy.memberships(place)) if told],
        intervals,
        int(rewards),
        total / rewards if rewards else None,
        names.most(MOST_NAMES),
    )


async def decisions(service: Service, name: str, limit: int) -> UserDecisions:
    """The last decisions for a user."""
    place = service.place_of(name)
    found = await asyncio.to_thread(service.log.decisions_of, place, limit)
    if service.place_of(name) != place:  # erased and come again meanwhile
        found = []
    return UserDecisions(name, [_told(one, service.model.dim) for one in found])


def _told(found: FoundDecision, dim: int) -> UserDecision:
    row = found.decision
    question = parse_stored_request(row.request, dim)
    arm = question.request.arms[question.eligible[row.chosen]]
    return UserDecision(
        row.id.decode(),
        row.time,
        arm.id,
        found.reward,
        REWARD_STATUS[found.kind],
        msgspec.Raw(row.answer),
        arm.features,
    )


def preview(service: Service, asked: PreviewRequest) -> PreviewResponse:
    """What would be recommended now."""
    request = RecommendRequest(asked.user, asked.arms, asked.exclude, asked.count)
    return _preview(service.engine.preview(parse_request(request, service.model.dim)))
