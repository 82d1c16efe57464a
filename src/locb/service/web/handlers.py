"""What each route does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from locb.service.batches import Ask, Asked, Pay
from locb.service.commits import Outcome
from locb.service.export import export_parquet
from locb.service.messages import (
    Forgotten,
    Group,
    GroupMembers,
    Groups,
    Health,
    RecommendBatch,
    RecommendRequest,
    RewardBatch,
    RewardRequest,
    SimilarUser,
    SimilarUsers,
)
from locb.service.problems import ProblemError
from locb.service.questions import read_question
from locb.service.web.desk import Desk, Json
from locb.service.web.gate import SAFE_HEADERS
from locb.service.web.queries import whole

MOST_SIMILAR = 1000
METRICS = "text/plain; version=0.0.4; charset=utf-8"  # as Prometheus asks for it
PARQUET = "application/vnd.apache.parquet"


class Answers(Struct):
    """Of a batch."""

    answers: list[dict[str, Any]]


async def recommend(desk: Desk, message: RecommendRequest) -> Response:
    """One decision."""
    outcome = await desk.service.submit(_ask(desk, message))
    assert isinstance(outcome, Asked)  # noqa: S101 - a problem is raised
    return Json(outcome.answer)


async def recommend_batch(desk: Desk, message: RecommendBatch) -> Answers:
    """Several decisions; each stands for itself."""
    tasks: list[Ask | ProblemError] = []
    for request in message.requests:
        try:
            tasks.append(_ask(desk, request))
        except ProblemError as error:
            tasks.append(error)
    return Answers([_told("decision", outcome) for outcome in await _all(desk, tasks)])


async def reward(desk: Desk, message: RewardRequest) -> Any:
    """One reward."""
    return await desk.service.submit(Pay(message.decision_id, message.reward, desk.now()))


async def reward_batch(desk: Desk, message: RewardBatch) -> Answers:
    """Several rewards; each stands for itself."""
    now = desk.now()
    tasks = [Pay(one.decision_id, one.reward, now) for one in message.rewards]
    return Answers([_told("rewarded", outcome) for outcome in await _all(desk, tasks)])


def _ask(desk: Desk, message: RecommendRequest) -> Ask:
    return Ask(read_question(message, desk.service.model.dim), desk.now())


async def _all(desk: Desk, tasks: Sequence[Ask | Pay | ProblemError]) -> list[Outcome]:
    submit = desk.service.committer.submit
    waiting = [task if isinstance(task, ProblemError) else submit(task) for task in tasks]
    return [one if isinstance(one, ProblemError) else await one for one in waiting]


def _told(word: str, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, ProblemError):
        return {"problem": outcome.problem}
    return {word: Raw(outcome.answer) if isinstance(outcome, Asked) else outcome}


async def similar(desk: Desk, user: str, limit: str = "10") -> SimilarUsers:
    """Users like this one."""
    service = desk.service
    most = whole("limit", limit, MOST_SIMILAR)
    place = service.place_of(user)
    name = service.engine.directory.name
    # Places that nobody has are not users.
    found = [(name(other), far, radius) for other, far, radius in service.policy.similar_users(place, MOST_SIMILAR)]
    nearest = [SimilarUser(other, far, radius) for other, far, radius in found if other is not None]
    return SimilarUsers(user, nearest[:most])


async def forget(desk: Desk, user: str) -> Forgotten:
    """Erase a user."""
    return Forgotten(user, await desk.service.forget(user))


async def clusters(desk: Desk) -> Groups:
    """All sets."""
    service = desk.service
    return Groups(
        [
            Group(service.seed_name(cluster), service.size(cluster), cluster.returned_at is not None)
            for cluster in service.policy.clusters()
            if cluster.seed is None or service.seed_name(cluster) is not None
        ]
    )


async def cluster(desk: Desk, seed: str) -> GroupMembers:
    """One set with its members and certificate."""
    service = desk.service
    found = service.cluster_of_seed(seed)
    name = service.engine.directory.name
    members = [one for one in map(name, found.members.tolist()) if one is not None]
    width, exact = await service.certificate(found)
    return GroupMembers(seed, len(members), found.returned_at is not None, found.returned_at, members, width, exact)


async def export(desk: Desk) -> Response:
    """All decisions and rewards."""
    path = await asyncio.to_thread(export_parquet, desk.service.log, desk.service.options.data_dir)
    headers = SAFE_HEADERS | {"accept-ranges": "none"}
    return _Whole(path, 200, headers, PARQUET, desk.removing(path), "locb.parquet")


class _Whole(FileResponse):
    """A file as a whole, whatever range is asked for: it was made for this answer, and the next is another."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__({**scope, "headers": []}, receive, send)


async def health(desk: Desk) -> Any:
    """Whether all is well."""
    service = desk.service
    committer = service.committer
    answer = Health(
        "ok" if committer.failure is None else "unavailable",
        service.model.policy,
        len(service.engine.directory),
        service.engine.seq,
        committer.waiting,
        service.snapshots.newest,
        committer.failure,
    )
    return answer if committer.failure is None else desk.json(answer, 503)


async def ping(desk: Desk) -> Response:  # noqa: ARG001 - all handlers are called alike
    """Nothing."""
    return Response(status_code=204, headers=SAFE_HEADERS)


async def ping_with_body(desk: Desk, message: Raw) -> Response:  # noqa: ARG001 - all handlers are called alike
    """Nothing, with a body."""
    return Response(status_code=204, headers=SAFE_HEADERS)


async def metrics(desk: Desk) -> Response:
    """Counts and times."""
    return Response(desk.metrics.told(), headers=SAFE_HEADERS | {"content-type": METRICS})
