"""What each route does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from locb.service.api.context import AppContext, Json
from locb.service.api.guard import SAFE_HEADERS
from locb.service.api.query_params import whole
from locb.service.core.commands import Asked, RecommendCommand, RewardCommand
from locb.service.core.group_commit import Outcome
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import (
    ClusterDetail,
    ClusterList,
    ClusterSummary,
    Health,
    RecommendBatchRequest,
    RecommendRequest,
    RewardBatchRequest,
    RewardRequest,
    SimilarUser,
    SimilarUsers,
    UserErased,
)
from locb.service.store.export import export_parquet

MOST_SIMILAR = 1000
METRICS = "text/plain; version=0.0.4; charset=utf-8"  # as Prometheus asks for it
PARQUET = "application/vnd.apache.parquet"


class BatchResponse(Struct):
    """Of a batch."""

    results: list[dict[str, Any]]


async def recommend(app: AppContext, message: RecommendRequest) -> Response:
    """One decision."""
    outcome = await app.service.submit(_ask(app, message))
    assert isinstance(outcome, Asked)  # noqa: S101 - a problem is raised
    return Json(outcome.answer)


async def recommend_batch(app: AppContext, message: RecommendBatchRequest) -> BatchResponse:
    """Several decisions; each stands for itself."""
    tasks: list[RecommendCommand | ProblemError] = []
    for request in message.requests:
        try:
            tasks.append(_ask(app, request))
        except ProblemError as error:
            tasks.append(error)
    return BatchResponse([_told("decision", outcome) for outcome in await _all(app, tasks)])


async def reward(app: AppContext, message: RewardRequest) -> Any:
    """One reward."""
    return await app.service.submit(RewardCommand(message.decision_id, message.reward, app.now()))


async def reward_batch(app: AppContext, message: RewardBatchRequest) -> BatchResponse:
    """Several rewards; each stands for itself."""
    now = app.now()
    tasks = [RewardCommand(one.decision_id, one.reward, now) for one in message.rewards]
    return BatchResponse([_told("reward", outcome) for outcome in await _all(app, tasks)])


def _ask(app: AppContext, message: RecommendRequest) -> RecommendCommand:
    return RecommendCommand(parse_request(message, app.service.model.dim), app.now())


async def _all(app: AppContext, tasks: Sequence[RecommendCommand | RewardCommand | ProblemError]) -> list[Outcome]:
    submit = app.service.committer.submit
    waiting = [task if isinstance(task, ProblemError) else submit(task) for task in tasks]
    return [one if isinstance(one, ProblemError) else await one for one in waiting]


def _told(word: str, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, ProblemError):
        return {"problem": outcome.problem}
    return {word: Raw(outcome.answer) if isinstance(outcome, Asked) else outcome}


async def similar(app: AppContext, user: str, limit: str = "10") -> SimilarUsers:
    """Users like this one."""
    service = app.service
    most = whole("limit", limit, MOST_SIMILAR)
    place = service.place_of(user)
    name = service.engine.user_index.name
    # Places that nobody has are not users.
    found = [(name(other), far, radius) for other, far, radius in service.policy.similar_users(place, MOST_SIMILAR)]
    nearest = [SimilarUser(other, far, radius) for other, far, radius in found if other is not None]
    return SimilarUsers(user, nearest[:most])


async def forget(app: AppContext, user: str) -> UserErased:
    """Erase a user."""
    return UserErased(user, await app.service.forget(user))


async def clusters(app: AppContext) -> ClusterList:
    """All sets."""
    service = app.service
    return ClusterList(
        [
            ClusterSummary(service.seed_name(cluster), service.size(cluster), cluster.returned_at is not None)
            for cluster in service.policy.clusters()
            if cluster.seed is None or service.seed_name(cluster) is not None
        ]
    )


async def cluster(app: AppContext, seed: str) -> ClusterDetail:
    """One set with its members and certificate."""
    service = app.service
    found = service.cluster_of_seed(seed)
    name = service.engine.user_index.name
    members = [one for one in map(name, found.members.tolist()) if one is not None]
    width, exact = await service.certificate(found)
    return ClusterDetail(seed, len(members), found.returned_at is not None, found.returned_at, members, width, exact)


async def export(app: AppContext) -> Response:
    """All decisions and rewards."""
    path = await asyncio.to_thread(export_parquet, app.service.log, app.service.options.data_dir)
    headers = SAFE_HEADERS | {"accept-ranges": "none"}
    return _Whole(path, 200, headers, PARQUET, app.removing(path), "locb.parquet")


class _Whole(FileResponse):
    """A file as a whole, whatever range is asked for: it was made for this answer, and the next is another."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__({**scope, "headers": []}, receive, send)


async def health(app: AppContext) -> Any:
    """Whether all is well."""
    service = app.service
    committer = service.committer
    answer = Health(
        "ok" if committer.failure is None else "unavailable",
        service.model.policy,
        len(service.engine.user_index),
        service.engine.seq,
        committer.waiting,
        service.snapshots.newest,
        committer.failure,
    )
    return answer if committer.failure is None else app.json(answer, 503)


async def ping(app: AppContext) -> Response:  # noqa: ARG001 - all handlers are called alike
    """Nothing."""
    return Response(status_code=204, headers=SAFE_HEADERS)


async def ping_with_body(app: AppContext, message: Raw) -> Response:  # noqa: ARG001 - all handlers are called alike
    """Nothing, with a body."""
    return Response(status_code=204, headers=SAFE_HEADERS)


async def metrics(app: AppContext) -> Response:
    """Counts and times."""
    return Response(app.metrics.told(), headers=SAFE_HEADERS | {"content-type": METRICS})
