"""Python client of the service: ``Client`` is blocking, ``AsyncClient`` has the same methods as coroutines.

This package imports no other part of locb. It is also distributed alone, as ``locb_client``.
"""

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
    raise ImportError("locb.client needs the package httpx: run pip install 'locb[client]'") from error

from . import calls
from .transport import CONNECTION_ERRORS, BaseClient, Exchange, RawResponse, Request, Response, ServiceError

__all__ = ["AsyncClient", "Client", "Response", "ServiceError"]

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(call: Callable[Concatenate[BaseClient, P], Exchange[T]]) -> Callable[Concatenate[Client, P], T]:
    @wraps(call)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(call(self, *args, **kwargs))

    return method


def _awaitable(
    call: Callable[Concatenate[BaseClient, P], Exchange[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @wraps(call)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(call(self, *args, **kwargs))

    return method


class Client(BaseClient):
    """Blocking client of a service. Several threads can share a client.

    After a lost connection, a timeout, or status 429, 502, 503 or 504, the client sends the same request again. The
    client chooses the id of a decision before the first attempt, so every attempt returns the same decision. A request
    that fails raises ``ServiceError``.

    Parameters
    ----------
    url : str
        Address of the service, such as ``http://127.0.0.1:8080``.
    token : str, optional
        Bearer token. Required if the service has tokens.
    timeout : float, default 10.0
        Seconds to connect, and to wait for the next bytes of the response, in one attempt.
    retries : int, default 5
        Maximum number of attempts after the first. The pause before an attempt is random. Its upper limit doubles each
        time, from 0.1 to 5 seconds. The pause is at least as long as the header ``Retry-After`` of the response.
    total : float, default 60.0
        Seconds from the start of a request after which no further attempt starts.
    **options
        Further arguments of ``httpx.Client``, such as ``verify`` or ``proxy``.

    Examples
    --------
    >>> with Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     decision = client.recommend("ann", {"a": [1.0, 0.0], "b": [0.0, 1.0]})
    ...     client.reward(decision.decision_id, 1.0)
    """

    def _connect(self, **options: Any) -> None:
        self._http = httpx.Client(**options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()

    def _run(self, exchange: Exchange[T]) -> T:
        with closing(exchange):
            outcome: RawResponse | Exception | None = None
            while True:
                try:
                    step = exchange.send(outcome)
                except StopIteration as done:
                    value: T = done.value
                    return value
                if isinstance(step, float):
                    time.sleep(step)
                    outcome = None
                else:
                    outcome = self._send(step)

    def _send(self, request: Request) -> RawResponse | Exception:
        try:
            with (
                self._http.stream(**request.httpx_arguments()) as response,
                RawResponse(response, request.into) as received,
            ):
                for chunk in response.iter_bytes():
                    received.add(chunk)
                return received
        except CONNECTION_ERRORS as error:
            return error

    recommend = _blocking(calls.recommend)
    reward = _blocking(calls.reward)
    recommend_batch = _blocking(calls.recommend_batch)
    reward_batch = _blocking(calls.reward_batch)
    preview = _blocking(calls.preview)
    user = _blocking(calls.user)
    similar = _blocking(calls.similar)
    decisions = _blocking(calls.decisions)
    clusters = _blocking(calls.clusters)
    cluster = _blocking(calls.cluster)
    groups = _blocking(calls.groups)
    status = _blocking(calls.status)
    history = _blocking(calls.history)
    map = _blocking(calls.map)
    delete_user = _blocking(calls.delete_user)
    live = _blocking(calls.live)
    health = _blocking(calls.health)
    export = _blocking(calls.export)


class AsyncClient(BaseClient):
    """Asynchronous client of a service.

    Arguments and methods are those of ``Client``, but the methods are coroutines, and ``aclose`` replaces ``close``.
    """

    def _connect(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to the service."""
        await self._http.aclose()

    async def _run(self, exchange: Exchange[T]) -> T:
        with closing(exchange):
            outcome: RawResponse | Exception | None = None
            while True:
                try:
                    step = exchange.send(outcome)
                except StopIteration as done:
                    value: T = done.value
                    return value
                outcome = await (asyncio.sleep(step) if isinstance(step, float) else self._send(step))

    async def _send(self, request: Request) -> RawResponse | Exception:
        try:
            async with self._http.stream(**request.httpx_arguments()) as response:
                with RawResponse(response, request.into) as received:
                    async for chunk in response.aiter_bytes():
                        received.add(chunk)
                    return received
        except CONNECTION_ERRORS as error:
            return error

    recommend = _awaitable(calls.recommend)
    reward = _awaitable(calls.reward)
    recommend_batch = _awaitable(calls.recommend_batch)
    reward_batch = _awaitable(calls.reward_batch)
    preview = _awaitable(calls.preview)
    user = _awaitable(calls.user)
    similar = _awaitable(calls.similar)
    decisions = _awaitable(calls.decisions)
    clusters = _awaitable(calls.clusters)
    cluster = _awaitable(calls.cluster)
    groups = _awaitable(calls.groups)
    status = _awaitable(calls.status)
    history = _awaitable(calls.history)
    map = _awaitable(calls.map)
    delete_user = _awaitable(calls.delete_user)
    live = _awaitable(calls.live)
    health = _awaitable(calls.health)
    export = _awaitable(calls.export)
