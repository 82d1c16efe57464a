"""Answers that are kept."""

import asyncio

import pytest

from locb.service.dashboard import cache
from locb.service.dashboard.cache import ViewCache


class Clock:
    """Time that goes on when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(cache, "time", clock)
    return clock


def test_ten_who_ask_cost_as_much_as_one(clock: Clock) -> None:
    made = []

    async def make(number: int) -> int:
        made.append(number)
        await asyncio.sleep(0)
        clock.now += 0.5
        return len(made)

    async def run() -> None:
        answers = ViewCache(make, 1.0, 10.0)
        assert await asyncio.gather(*(answers.get("a", 1) for _ in range(10))) == [1] * 10
        clock.now += 4.9  # ten times as long as it took
        assert await answers.get("a", 1) == 1
        assert await answers.get("b", 2) == 2
        clock.now += 0.2
        assert await answers.get("a", 3) == 3
        assert made == [1, 2, 3]

    asyncio.run(run())


def test_what_failed_is_not_kept(clock: Clock) -> None:
    tries = []

    async def make() -> str:
        tries.append(None)
        if len(tries) == 1:
            raise ValueError("no")
        return "yes"

    async def run() -> None:
        answers = ViewCache(make, 1.0)
        with pytest.raises(ValueError, match="no"):
            await answers.get("a")
        assert await answers.get("a") == "yes"

    asyncio.run(run())


def test_one_who_leaves_does_not_end_it_for_the_others(clock: Clock) -> None:
    async def make() -> str:
        await asyncio.sleep(0.01)
        return "made"

    async def run() -> None:
        answers = ViewCache(make, 1.0)
        one = asyncio.create_task(answers.get("a"))
        other = asyncio.create_task(answers.get("a"))
        await asyncio.sleep(0)
        one.cancel()
        assert await other == "made"

    asyncio.run(run())


def test_who_is_in_a_hurry_gets_an_old_answer(clock: Clock) -> None:
    made: list[asyncio.Event] = []

    async def make() -> int:
        made.append(asyncio.Event())
        number = len(made)
        await made[-1].wait()
        return number

    async def run() -> None:
        answers = ViewCache(make, 1.0)
        assert await answers.get_within("a", 0.001) is None
        made[0].set()
        assert await answers.get_within("a", 10.0) == 1
        clock.now += 2.0
        assert await answers.get_within("a", 0.001) == 1
        made[1].set()
        assert await answers.get("a") == 2

    asyncio.run(run())


def test_not_all_is_kept_for_ever(clock: Clock) -> None:
    async def make() -> bytes:
        return b""

    async def run() -> None:
        answers = ViewCache(make, 1.0)
        for number in range(200):
            await answers.get(number)
        assert len(answers._entries) == cache.MAX_ENTRIES

    asyncio.run(run())
