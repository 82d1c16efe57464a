"""Ask a service for decisions and send it rewards, from Python: ``Client`` waits, ``AsyncClient`` is awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

try:
    import httpx
except ImportError as error:
    raise ImportError("locb.client needs httpx: pip install 'locb[client]'") from error

from locb.client import calls
from locb.client.transport import LOST, Answer, Reply, Request, Service, ServiceError, Steps

__all__ = ["Answer", "AsyncClient", "Client", "ServiceError"]

P = ParamSpec("P")
T = TypeVar("T")


def _waits(steps: Callable[Concatenate[Service, P], Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    @wraps(steps)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(steps(self, *args, **kwargs))

    return call


def _awaits(
    steps: Callable[Concatenate[Service, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @wraps(steps)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(steps(self, *args, **kwargs))

    return call


class Client(Service):
    """Decisions and rewards over HTTP; may be shared by threads.

    Every decision has an id before it is asked for, so that after a lost connection, no answer in time, or 429, 502,
    503 or 504 the same request is sent again and the same decision is made. A problem is a ``ServiceError``.

    Parameters
    ----------
    url : str
        The service, such as ``http://127.0.0.1:8080``.
    token : str, optional
        Sent as a bearer token.
    timeout : float
        Seconds to wait in an attempt.
    retries : int
        Attempts after the first, at most. Between them it waits ever longer, and as long as ``Retry-After`` says.
    total : float
        Seconds after which no other attempt is begun.
    **options
        Further arguments of ``httpx.Client``, such as ``verify`` or ``proxy``.
    """

    def _connect(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _run(self, steps: Steps[T]) -> T:
        with closing(steps):
            came: Reply | Exception | None = None
            while True:
                try:
                    step = steps.send(came)
                except StopIteration as done:
                    value: T = done.value
                    return value
                if isinstance(step, float):
                    time.sleep(step)
                    came = None
                else:
                    came = self._send(step)

    def _send(self, request: Request) -> Reply | Exception:
        try:
            with self._http.stream(**request.sent()) as response, Reply(response, request.into) as reply:
                for chunk in response.iter_bytes():
                    reply.add(chunk)
                return reply
        except LOST as error:
            return error

    recommend = _waits(calls.recommend)
    reward = _waits(calls.reward)
    recommend_batch = _waits(calls.recommend_batch)
    reward_batch = _waits(calls.reward_batch)
    preview = _waits(calls.preview)
    user = _waits(calls.user)
    similar = _waits(calls.similar)
    decisions = _waits(calls.decisions)
    clusters = _waits(calls.clusters)
    cluster = _waits(calls.cluster)
    groups = _waits(calls.groups)
    status = _waits(calls.status)
    history = _waits(calls.history)
    map = _waits(calls.map)
    forget = _waits(calls.forget)
    health = _waits(calls.health)
    export = _waits(calls.export)


class AsyncClient(Service):
    """``Client``, to be awaited: the same arguments and methods, with ``async with`` and ``await``."""

    def _connect(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        with closing(steps):
            came: Reply | Exception | None = None
            while True:
                try:
                    step = steps.send(came)
                except StopIteration as done:
                    value: T = done.value
                    return value
                came = await (asyncio.sleep(step) if isinstance(step, float) else self._send(step))

    async def _send(self, request: Request) -> Reply | Exception:
        try:
            async with self._http.stream(**request.sent()) as response:
                with Reply(response, request.into) as reply:
                    async for chunk in response.aiter_bytes():
                        reply.add(chunk)
                    return reply
        except LOST as error:
            return error

    recommend = _awaits(calls.recommend)
    reward = _awaits(calls.reward)
    recommend_batch = _awaits(calls.recommend_batch)
    reward_batch = _awaits(calls.reward_batch)
    preview = _awaits(calls.preview)
    user = _awaits(calls.user)
    similar = _awaits(calls.similar)
    decisions = _awaits(calls.decisions)
    clusters = _awaits(calls.clusters)
    cluster = _awaits(calls.cluster)
    groups = _awaits(calls.groups)
    status = _awaits(calls.status)
    history = _awaits(calls.history)
    map = _awaits(calls.map)
    forget = _awaits(calls.forget)
    health = _awaits(calls.health)
    export = _awaits(calls.export)
