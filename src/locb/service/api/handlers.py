"""Handlers of the routes for decisions, rewards, users, clusters and operation."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from locb.service.api.context import AppContext
from locb.service.api.metrics import CONTENT_TYPE
from locb.service.api.request_params import parse_integer
from locb.service.core.commands import EncodedDecision, Outcome, RecommendCommand, RewardCommand
from locb.service.dashboard import user_detail as user_views
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.responses import SECURITY_HEADERS, JsonResponse, empty_response, encode_json
from locb.service.schemas import (
    Health,
    Liveness,
    RecommendBatchRequest,
    RecommendRequest,
    RewardBatchRequest,
    RewardRequest,
    SimilarUsers,
    UserErased,
)
from locb.service.store.export import export_parquet

MAX_SIMILAR = 1000
PARQUET = "application/vnd.apache.parquet"


# Decisions and rewards


class BatchResults(Struct):
    """Response to a batch request. Its decisions are already encoded as JSON."""

    results: list[dict[str, Any]]


async def recommend(app: AppContext, body: RecommendRequest) -> Response:
    """Recommend an arm, and return the stored decision."""
    outcome = await app.service.committer.execute(_recommend_command(app, body))
    assert isinstance(outcome, EncodedDecision)  # noqa: S101 - problems are raised
    return JsonResponse(outcome.response)


async def recommend_batch(app: AppContext, body: RecommendBatchRequest) -> BatchResults:
    """Recommend an arm for each request, and return a decision or a problem for each request."""
    commands: list[RecommendCommand | ProblemError] = []
    for request in body.requests:
        try:
            commands.append(_recommend_command(app, request))
        except ProblemError as error:
            commands.append(error)
    return BatchResults([_batch_result("decision", outcome) for outcome in await _submit_all(app, commands)])


async def reward(app: AppContext, body: RewardRequest) -> Any:
    """Store and learn the reward of a decision, and return a confirmation."""
    return await app.service.committer.execute(RewardCommand(body.decision_id, body.reward, time.time()))


async def reward_batch(app: AppContext, body: RewardBatchRequest) -> BatchResults:
    """Store and learn rewards, and return a confirmation or a problem for each reward."""
    now = time.time()
    commands = [RewardCommand(request.decision_id, request.reward, now) for request in body.rewards]
    return BatchResults([_batch_result("reward", outcome) for outcome in await _submit_all(app, commands)])


def _recommend_command(app: AppContext, request: RecommendRequest) -> RecommendCommand:
    return RecommendCommand(parse_request(request, app.service.model.dim), time.time())


async def _submit_all(
    app: AppContext, commands: Sequence[RecommendCommand | RewardCommand | ProblemError]
) -> list[Outcome]:
    """Submit all commands at once, so that either all or none are queued, and return their outcomes.

    A request that could not be parsed is a problem instead of a command. The problem is returned as the outcome.
    """
    submitted = [command for command in commands if not isinstance(command, ProblemError)]
    futures = iter(app.service.committer.submit(submitted))
    return [command if isinstance(command, ProblemError) else await next(futures) for command in commands]


def _batch_result(field: str, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, ProblemError):
        return {"problem": outcome.for_request()}
    return {field: Raw(outcome.response) if isinstance(outcome, EncodedDecision) else outcome}


# Users and clusters


async def similar_users(app: AppContext, user: str, limit: str = "10") -> SimilarUsers:
    """Return up to ``limit`` users who share a cluster with a user, nearest estimate first."""
    return await user_views.similar_users(app.service, user, parse_integer("limit", limit, MAX_SIMILAR))


async def erase_user(app: AppContext, user: str) -> UserErased:
    """Erase a user and everything learned from that user."""
    return UserErased(user, await app.service.erase_user(user))


async def list_clusters(app: AppContext) -> Response:
    """Return all clusters of users, without their members."""
    return JsonResponse(await app.views.cluster_list())


async def cluster_detail(app: AppContext, seed: str) -> Response:
    """Return the members and the certificate of a cluster."""
    return JsonResponse(await app.views.cluster_detail(seed))


# Operation


async def export(app: AppContext) -> Response:
    """Return all decisions and rewards as a Parquet file."""
    path = await asyncio.to_thread(export_parquet, app.service.log, app.service.config.data_dir)
    headers = SECURITY_HEADERS | {"accept-ranges": "none"}
    remove = BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
    return _CompleteFileResponse(path, 200, headers, PARQUET, remove, "locb.parquet")


class _CompleteFileResponse(FileResponse):
    """File response that ignores Range headers, because the file is written for this response only."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__({**scope, "headers": []}, receive, send)


async def live(app: AppContext) -> Liveness:  # noqa: ARG001 - handlers have the same parameters
    """Return the status ok, even while the store is unavailable."""
    return Liveness()


async def health(app: AppContext) -> Response:
    """Return whether the service can decide and learn, with HTTP status 200, or 503 if the store cannot be written."""
    service = app.service
    committer = service.committer
    # Without the reason, which can contain the address of the database. The route needs no token.
    unavailable = "the store cannot be written; GET /v1/status and the log of the service have the reason"
    response = Health(
        "ok" if committer.store_error is None else "unavailable",
        service.model.policy,
        len(service.engine.users),
        service.engine.seq,
        committer.queue_length,
        service.snapshots.newest_seq,
        None if committer.store_error is None else unavailable,
    )
    return JsonResponse(encode_json(response), 200 if committer.store_error is None else 503)


async def ping(app: AppContext) -> Response:  # noqa: ARG001 - handlers have the same parameters
    """Return an empty response, with which a client can measure the overhead of the server."""
    return empty_response()


async def ping_with_body(app: AppContext, body: Raw) -> Response:  # noqa: ARG001 - handlers have the same parameters
    """Decode the body, and return an empty response, with which a client can measure the overhead of the server."""
    return empty_response()


async def metrics(app: AppContext) -> Response:
    """Return metrics for Prometheus."""
    return Response(await app.metrics.render(), headers=SECURITY_HEADERS | {"content-type": CONTENT_TYPE})
