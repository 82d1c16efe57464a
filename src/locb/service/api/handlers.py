"""Handlers of the routes for decisions, rewards, users, clusters and operation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from msgspec import Raw, Struct
from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from locb.recommender.commands import EncodedDecision, Outcome, RecommendCommand, RewardCommand
from locb.service.api.context import AppContext
from locb.service.api.metrics import CONTENT_TYPE
from locb.service.api.request_params import MAX_SIMILAR_USERS, parse_integer
from locb.service.connections import SEND_TIMEOUT
from locb.service.dashboard import user_detail as user_views
from locb.service.dashboard.schemas import SimilarUsers
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_steps
from locb.service.responses import SECURITY_HEADERS, encode_json, until_disconnect
from locb.service.schemas import (
    MAX_ARM_NAMES,
    Health,
    Liveness,
    RecommendBatchRequest,
    RecommendRequest,
    RewardBatchRequest,
    RewardRequest,
    UserErased,
)
from locb.service.store.export import FILE_NAME, Export, Exports

REQUESTS_PER_STEP = 16  # requests of a batch that are parsed per step of about 1 ms
PARQUET = "application/vnd.apache.parquet"
T = TypeVar("T")
_log = logging.getLogger("locb.service")


# Decisions and rewards


class BatchResults(Struct):
    """Response to a batch request. Its decisions are already encoded as JSON."""

    results: list[dict[str, Any]]


async def parse_in_steps(steps: Generator[None, None, T], lock: asyncio.Lock) -> T:
    """Run the steps of parsing a request, and return the result.

    A small request is parsed at once. The steps of large requests, one request at a time, alternate with the work on
    other requests.

    Parameters
    ----------
    steps : generator
        For example the result of ``parse_steps``.
    lock : asyncio.Lock
        Held while a large request is parsed.
    """
    try:
        next(steps)
        async with lock:
            while True:
                await asyncio.sleep(0)
                next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


async def recommend(app: AppContext, body: RecommendRequest) -> bytes:
    """Recommend an arm, and return the stored decision."""
    command = await parse_in_steps(_command_steps(app, body), app.parsing)
    outcome = await app.service.committer.execute(command)
    assert isinstance(outcome, EncodedDecision)  # noqa: S101 - problems are raised
    response: bytes = outcome.response
    return response


async def recommend_batch(app: AppContext, body: RecommendBatchRequest) -> BatchResults:
    """Recommend an arm for each request, and return a decision or a problem for each request."""
    commands = await parse_in_steps(_batch_steps(app, body.requests), app.parsing)
    return BatchResults([_batch_result("decision", outcome) for outcome in await _submit_all(app, commands)])


async def reward(app: AppContext, body: RewardRequest) -> Any:
    """Store and learn the reward of a decision, and return a confirmation."""
    return await app.service.committer.execute(RewardCommand(body.decision_id, body.reward, time.time()))


async def reward_batch(app: AppContext, body: RewardBatchRequest) -> BatchResults:
    """Store and learn rewards, and return a confirmation or a problem for each reward."""
    now = time.time()
    commands = [RewardCommand(request.decision_id, request.reward, now) for request in body.rewards]
    return BatchResults([_batch_result("reward", outcome) for outcome in await _submit_all(app, commands)])


def _command_steps(app: AppContext, request: RecommendRequest) -> Generator[None, None, RecommendCommand]:
    parsed = yield from parse_steps(request, app.service.model.dim, MAX_ARM_NAMES, app.collisions)
    return RecommendCommand(parsed, time.time())


def _batch_steps(
    app: AppContext, requests: Sequence[RecommendRequest]
) -> Generator[None, None, list[RecommendCommand | ProblemError]]:
    commands: list[RecommendCommand | ProblemError] = []
    for number, request in enumerate(requests):
        if number and number % REQUESTS_PER_STEP == 0:
            yield
        try:
            commands.append((yield from _command_steps(app, request)))
        except ProblemError as error:
            commands.append(error)
    return commands


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
    return await user_views.similar_users(app.service, user, parse_integer("limit", limit, MAX_SIMILAR_USERS))


async def erase_user(app: AppContext, user: str) -> UserErased:
    """Erase a user and everything learned from that user."""
    return UserErased(user, await app.service.erase_user(user))


async def list_clusters(app: AppContext) -> bytes:
    """Return all clusters of users, without their members."""
    return await app.views.cluster_list()


async def cluster_detail(app: AppContext, seed: str) -> bytes:
    """Return the members and the certificate of a cluster."""
    return await app.views.cluster_detail(seed)


# Operation


async def export(app: AppContext) -> Response:
    """Return all decisions and rewards as a Parquet file."""
    exports = app.service.exports
    return _ExportResponse(exports, await exports.write())


class _ExportResponse(FileResponse):
    """Response with the file of an export, which is removed at the end.

    The response ignores Range headers, because the file is written for this response only. It ends when the client
    closes the connection, or reads nothing for ``SEND_TIMEOUT`` seconds.
    """

    def __init__(self, exports: Exports, export: Export) -> None:
        headers = SECURITY_HEADERS | {"accept-ranges": "none"}
        super().__init__(export.path, 200, headers, PARQUET, filename=FILE_NAME)
        self._exports, self._export = exports, export

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._exports.release(self._export)
            async with asyncio.timeout(SEND_TIMEOUT):
                await send(message)

        try:
            await until_disconnect(super().__call__({**scope, "headers": []}, receive, send_in_time), receive)
        except TimeoutError:
            _log.warning("an export was cancelled, because the client read nothing for %g s", SEND_TIMEOUT)
        finally:
            await self._exports.remove(self._export)


async def live(app: AppContext) -> Liveness:  # noqa: ARG001 - handlers have the same parameters
    """Return the status ok, even while the store is unavailable."""
    return Liveness()


async def health(app: AppContext) -> Response:
    """Return whether the service can decide and learn, with HTTP status 200, or 503 if the store cannot be written."""
    service = app.service
    committer = service.committer
    # The response omits the reason: it can contain the address of the database, and the route needs no token.
    unavailable = (
        "the store cannot be written; GET /v1/status and the messages on standard error of the service have the reason"
    )
    response = Health(
        "ok" if committer.store_error is None else "unavailable",
        service.model.policy,
        len(service.engine.users),
        service.engine.seq,
        committer.queue_length,
        service.snapshots.newest_seq,
        None if committer.store_error is None else unavailable,
    )
    status = 200 if committer.store_error is None else 503
    return Response(encode_json(response), status, SECURITY_HEADERS, "application/json")


async def ping(app: AppContext) -> None:
    """Return an empty response, with which a client can measure the overhead of the server."""


async def ping_with_body(app: AppContext, body: Raw) -> None:
    """Decode the body, and return an empty response, with which a client can measure the overhead of the server."""


async def metrics(app: AppContext) -> Response:
    """Return metrics for Prometheus."""
    return Response(await app.metrics.render(), headers=SECURITY_HEADERS | {"content-type": CONTENT_TYPE})
