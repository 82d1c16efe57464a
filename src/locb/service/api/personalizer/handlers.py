"""The routes of Azure Personalizer: its requests, answered in its shapes."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from locb.common.feature_hashing import feature_row
from locb.service.api.context import AppContext, Json
from locb.service.api.guard import SAFE_HEADERS, more_headers
from locb.service.api.personalizer.schemas import DONE, RANKED, RankRequest, RewardRequest, answer, question, refusal
from locb.service.core.commands import ActivateCommand, Asked, RecommendCommand, RewardCommand
from locb.service.errors import ProblemError, invalid
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest

_encode = msgspec.json.Encoder().encode


class _Ranking(msgspec.Struct):
    ranking: list[_Ranked]


class _Ranked(msgspec.Struct):
    arm: str


_decode = msgspec.json.Decoder(_Ranking).decode


async def rank(app: AppContext, message: RankRequest) -> Response:
    """Which action?"""
    service = app.service
    dim = service.model.dim
    try:
        asked = question(message, dim, service.options.personalizer_user)
        # As numbers: with all its crosses an action has many more names than the vector has places.
        arms = [Arm(name, feature_row(features, dim)) for name, features in asked.arms]
    except ValueError as error:
        raise invalid(str(error)) from None
    request = RecommendRequest(asked.user, arms, asked.excluded, None, asked.event_id)
    outcome = await service.submit(RecommendCommand(parse_request(request, dim), app.now(), asked.deferred))
    assert isinstance(outcome, Asked)  # noqa: S101 - a problem is raised
    ranked = [one.arm for one in _decode(outcome.answer).ranking]
    return app.json(answer(message, outcome.name, ranked), RANKED)


async def reward_event(app: AppContext, message: RewardRequest, event: str) -> Response:
    """What the action earned."""
    await app.service.submit(RewardCommand(event, message.value, app.now()))
    return Response(status_code=DONE, headers=SAFE_HEADERS)


async def activate(app: AppContext, event: str) -> Response:
    """The action is shown: a reward is waited for from now on."""
    await app.service.submit(ActivateCommand(event, app.now()))
    return Response(status_code=DONE, headers=SAFE_HEADERS)


def told_as_azure(error: ProblemError) -> Response:
    """A problem in the shape that its client understands."""
    fields: Any = error.problem.fields
    status, body = refusal(int(error.status), error.problem.detail, fields[0] if fields else None)
    response = Json(_encode(body), status)
    response.headers.update(more_headers(error))
    return response
