"""Handlers of the routes of Azure Personalizer."""

from __future__ import annotations

import time
from collections.abc import Generator

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from locb.common.feature_hashing import feature_row
from locb.recommender.commands import ActivateCommand, EncodedDecision, RecommendCommand, RewardCommand
from locb.recommender.requests import NAMES_PER_STEP, ParsedRequest
from locb.service.api.context import AppContext
from locb.service.api.handlers import parse_in_steps
from locb.service.api.personalizer.conversion import argument_steps, to_error_response, to_rank_response
from locb.service.api.personalizer.schemas import RankRequest, RankResponse, RewardRequest
from locb.service.errors import ProblemError, invalid
from locb.service.request_parsing import parse_request
from locb.service.responses import SECURITY_HEADERS, encode_json
from locb.service.schemas import Arm, RecommendRequest


class _RankedArm(msgspec.Struct):
    arm: str


class _Ranking(msgspec.Struct):
    ranking: list[_RankedArm]


_decode_ranking = msgspec.json.Decoder(_Ranking).decode


async def rank(app: AppContext, body: RankRequest) -> RankResponse:
    """Rank the actions of a request, and store the recommended action as a decision."""
    service = app.service
    steps = _parse_steps(body, service.model.dim, service.config.personalizer_user)
    parsed, deferred = await parse_in_steps(steps, app.parsing)
    app.collisions.check(parsed)
    outcome = await service.committer.execute(RecommendCommand(parsed, time.time(), deferred))
    assert isinstance(outcome, EncodedDecision)  # noqa: S101 - problems are raised
    ranked = [ranked_arm.arm for ranked_arm in _decode_ranking(outcome.response).ranking]
    return to_rank_response(body, outcome.decision_id, ranked)


def _parse_steps(body: RankRequest, dim: int, user_path: str) -> Generator[None, None, tuple[ParsedRequest, bool]]:
    """Convert a rank request to a recommend request in steps.

    Return the parsed request, and whether it is deferred.
    """
    hashed: list[Arm] = []
    count = 0
    try:
        arguments = yield from argument_steps(body, dim, user_path)
        # Features are hashed here, so that the log stores dim numbers and not the many names of the cross features.
        for name, features in arguments.arms:
            hashed.append(Arm(name, feature_row(features, dim)))
            count += len(features)
            if count > NAMES_PER_STEP:
                yield
                count = 0
    except ValueError as error:
        raise invalid(str(error)) from None
    request = RecommendRequest(arguments.user, hashed, arguments.excluded, None, arguments.event_id)
    parsed = parse_request(request, dim)
    parsed.named_features = [features for _, features in arguments.arms]
    parsed.max_arm_names = max(len(features) for features in parsed.named_features)
    return parsed, arguments.deferred


async def reward_event(app: AppContext, body: RewardRequest, event: str) -> None:
    """Store and learn the reward of an event. The reward of an event that is not activated is ignored."""
    aggregation = app.service.config.personalizer_rewards
    await app.service.committer.execute(RewardCommand(event, body.value, time.time(), aggregation))


async def activate_event(app: AppContext, event: str) -> None:
    """Activate an event: the wait for its reward starts."""
    await app.service.committer.execute(ActivateCommand(event, time.time()))


def error_response(error: ProblemError) -> Response:
    """Return a problem as an error response of Personalizer."""
    problem = error.for_request()
    target = problem.fields[0] if problem.fields else UNSET
    status, body = to_error_response(problem.status, problem.detail, target, problem.request_id)
    return Response(encode_json(body), status, SECURITY_HEADERS | error.headers(), "application/json")
