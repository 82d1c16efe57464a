"""Answers that are kept for a while, so that ten pages cost as much as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_KEPT = 32  # answers to different questions


class Cached(Generic[T]):
    """Makes what is asked for, and gives the same again for some seconds.

    Parameters
    ----------
    make : coroutine function
        Makes an answer. Of those who ask for the same meanwhile, all get that one.
    seconds : float
        For which an answer is kept.
    rest : float
        An answer is kept at least so many times as long as it took to make.
    """

    def __init__(self, make: Callable[..., Awaitable[T]], seconds: float, rest: float = 0.0) -> None:
        self._make = make
        self._seconds = seconds
        self._rest = rest
        self._kept: dict[Hashable, tuple[float, T]] = {}  # until when
        self._making: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, question: Hashable, *given: Any) -> T:
        """The answer to this question, from what is given if it is made now."""
        known = self._kept.get(question)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        return await asyncio.shield(self._task(question, given))

    async def soon(self, question: Hashable, seconds: float, *given: Any) -> T | None:
        """The same, but an old answer if a new one takes longer than this, and None if there is none yet."""
        known = self._kept.get(question)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        task = self._task(question, given)
        done, _ = await asyncio.wait([task], timeout=seconds)
        return task.result() if done else None if known is None else known[1]

    def _task(self, question: Hashable, given: tuple[Any, ...]) -> asyncio.Task[T]:
        task = self._making.get(question)
        if task is None:
            task = self._making[question] = asyncio.create_task(self._answer(question, given))
        return task

    async def _answer(self, question: Hashable, given: tuple[Any, ...]) -> T:
        start = time.monotonic()
        try:
            made = await self._make(*given)
        finally:
            del self._making[question]
        now = time.monotonic()
        self._kept.pop(question, None)
        while len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[question] = now + max(self._seconds, self._rest * (now - start)), made
        return made
