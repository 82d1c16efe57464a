"""Answers that are kept for a while, so that ten pages cost as much as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_KEPT = 64  # answers to different questions
REST = 50.0  # so many times as long as it took to make, an answer is kept at least: 2% of the time goes there at most


class Cached(Generic[T]):
    """Makes what is asked for, and gives the same again for some seconds.

    Parameters
    ----------
    seconds : float
        For which an answer is kept, or longer if it took long to make.
    make : coroutine function
        Makes an answer. Of those who ask for the same meanwhile, all get that one.
    """

    def __init__(self, seconds: float, make: Callable[..., Awaitable[T]]) -> None:
        self._seconds = seconds
        self._make = make
        self._kept: dict[Hashable, tuple[float, T]] = {}  # until when
        self._making: dict[Hashable, asyncio.Task[T]] = {}

    async def get(self, *question: Hashable) -> T:
        """The answer to this question."""
        known = self._kept.get(question)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        task = self._making.get(question)
        if task is None:
            task = self._making[question] = asyncio.create_task(self._answer(question))
        return await asyncio.shield(task)

    async def _answer(self, question: tuple[Hashable, ...]) -> T:
        start = time.monotonic()
        try:
            made = await self._make(*question)
        finally:
            del self._making[question]
        now = time.monotonic()
        while len(self._kept) >= MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept.pop(question, None)
        self._kept[question] = now + max(self._seconds, REST * (now - start)), made
        return made
