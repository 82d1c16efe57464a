"""Cache of the dashboard's views."""

import asyncio

import pytest

from locb.service.dashboard import cache
from locb.service.dashboard.cache import ViewCache


class FakeClock:
    """Clock that replaces the module ``time``."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(cache, "time", clock)
    return clock


def test_concurrent_calls_share_a_computation_until_it_expires(clock: FakeClock) -> None:
    computed = []

    async def compute(number: int) -> int:
        computed.append(number)
        await asyncio.sleep(0)
        clock.now += 0.5
        return len(computed)

    async def run() -> None:
        views = ViewCache(compute, 1.0, 10.0)
        assert await asyncio.gather(*(views.get("a", 1) for _ in range(10))) == [1] * 10
        clock.now += 4.9  # the TTL is ten times the time of the computation
        assert await views.get("a", 1) == 1
        assert await views.get("b", 2) == 2
        clock.now += 0.2
        assert await views.get("a", 3) == 3
        assert computed == [1, 2, 3]

    asyncio.run(run())


def test_failures_are_not_cached(clock: FakeClock) -> None:
    attempts = []

    async def compute() -> str:
        attempts.append(None)
        if len(attempts) == 1:
            raise ValueError("first attempt")
        return "result"

    async def run() -> None:
        views = ViewCache(compute, 1.0)
        with pytest.raises(ValueError, match="first attempt"):
            await views.get("a")
        assert await views.get("a") == "result"

    asyncio.run(run())


def test_cancelled_caller_does_not_cancel_the_computation(clock: FakeClock) -> None:
    async def compute() -> str:
        await asyncio.sleep(0.01)
        return "result"

    async def run() -> None:
        views = ViewCache(compute, 1.0)
        first = asyncio.create_task(views.get("a"))
        second = asyncio.create_task(views.get("a"))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "result"

    asyncio.run(run())


def test_expired_result_after_a_timeout(clock: FakeClock) -> None:
    events: list[asyncio.Event] = []

    async def compute() -> int:
        events.append(asyncio.Event())
        number = len(events)
        await events[-1].wait()
        return number

    async def run() -> None:
        views = ViewCache(compute, 1.0)
        assert await views.get_within("a", 0.001) is None
        events[0].set()
        assert await views.get_within("a", 10.0) == 1
        clock.now += 2.0
        assert await views.get_within("a", 0.001) == 1
        events[1].set()
        assert await views.get("a") == 2

    asyncio.run(run())


def test_number_of_entries_is_limited(clock: FakeClock) -> None:
    async def compute() -> bytes:
        return b""

    async def run() -> None:
        views = ViewCache(compute, 1.0)
        for key in range(200):
            await views.get(key)
        assert len(views._entries) == cache.MAX_ENTRIES

    asyncio.run(run())
