"""The delay of commits under sustained load: concurrent clients share commits, and a single client never waits.

No test measures time. The delay is an hour, so that a test does not end if a request waits in vain.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from locb.recommender.commands import Batch, RecommendCommand, RewardCommand
from locb.recommender.events import Records
from locb.service.config import ServiceConfig
from locb.service.core import group_commit
from locb.service.core.background import queues
from locb.service.core.background.queues import CommandQueue
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest

HOUR = 3600.0


@pytest.fixture(autouse=True)
def long_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_DELAY", HOUR)


def reward(number: int = 0) -> RewardCommand:
    """A command whose outcome is a problem, because the decision does not exist."""
    return RewardCommand(f"unknown-{number}", 1.0, 0.0)


async def handle_batch(queue: CommandQueue, arriving: int = 0) -> int:
    """Handle one batch, while requests arrive, and return the number of its commands."""
    await asyncio.wait_for(queue.collect(), 60.0)
    with queue.take(256) as taken:
        for _ in range(arriving):
            queue.put([reward()])
        return len(taken)


def take(queue: CommandQueue) -> int:
    """Take a batch, and return the number of its commands."""
    with queue.take(256) as taken:
        return len(taken)


async def queue_under_load(requests: int) -> CommandQueue:
    """Return an empty queue, after batches during which so many requests were queued or handled."""
    queue = CommandQueue(1000)
    for _ in range(40):
        for _ in range(requests):
            queue.put([reward()])
        await handle_batch(queue)
    return queue


def test_batch_waits_for_as_many_requests_as_were_concurrent() -> None:
    async def main() -> None:
        queue = await queue_under_load(4)
        queue.put([reward()])
        collecting = asyncio.create_task(queue.collect())
        for _ in range(2):
            await asyncio.sleep(0)
            queue.put([reward()])
        for _ in range(10):
            await asyncio.sleep(0)
        assert not collecting.done()
        queue.put([reward()])
        await asyncio.wait_for(collecting, 60.0)
        assert take(queue) == 4

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 7])
def test_requests_of_a_single_client_are_not_delayed(size: int) -> None:
    async def main() -> None:
        queue = CommandQueue(1000)
        for number in range(100):
            count = size if number % 2 else 1  # a batch of decisions, then a reward
            queue.put([reward() for _ in range(count)])
            assert await handle_batch(queue) == count

    asyncio.run(main())


def test_client_that_remains_after_load_is_delayed_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        queue = await queue_under_load(20)
        monkeypatch.setattr(queues, "MAX_DELAY", 0.0)
        for _ in range(10):
            queue.put([reward()])
            assert await handle_batch(queue) == 1
        monkeypatch.setattr(queues, "MAX_DELAY", HOUR)
        for _ in range(10):
            queue.put([reward()])
            assert await handle_batch(queue) == 1

    asyncio.run(main())


def test_requests_that_arrive_during_commits_start_the_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        queue = CommandQueue(1000)
        queue.put([reward()])
        for _ in range(10):
            assert await handle_batch(queue, arriving=1) >= 1
            monkeypatch.setattr(queues, "MAX_DELAY", 0.0)
        monkeypatch.setattr(queues, "MAX_DELAY", HOUR)
        collecting = asyncio.create_task(queue.collect())
        await asyncio.sleep(0)
        queue.put([reward()])
        await asyncio.wait_for(collecting, 60.0)
        assert len(queue) == 2

    asyncio.run(main())


def test_long_queue_is_not_delayed() -> None:
    async def main() -> None:
        queue = await queue_under_load(100)
        queue.put([reward() for _ in range(queues.UNDELAYED_COMMANDS)])
        assert await handle_batch(queue) == queues.UNDELAYED_COMMANDS
        collecting = [asyncio.create_task(queue.collect())]  # the queue is empty
        queue.put([reward()])
        collecting.append(asyncio.create_task(queue.collect()))
        await asyncio.sleep(0)
        queue.put([reward() for _ in range(queues.UNDELAYED_COMMANDS)])
        await asyncio.wait_for(asyncio.gather(*collecting), 60.0)

    asyncio.run(main())


def test_rest_of_a_large_batch_is_not_delayed() -> None:
    async def main() -> None:
        queue = CommandQueue(1000)
        queue.put([reward() for _ in range(260)])
        assert await handle_batch(queue) == 256
        assert await handle_batch(queue) == 4

    asyncio.run(main())


def test_batch_of_large_requests_is_small() -> None:
    arms = [Arm(f"a{number}", [float(number)] * 3) for number in range(1000)]
    many_arms = RecommendCommand(parse_request(RecommendRequest("ann", arms), 3), 0.0)
    names = [Arm("a", {f"name {number}": 1.0 for number in range(4000)})]
    many_names = RecommendCommand(parse_request(RecommendRequest("ann", names), 3), 0.0)
    long_texts = [Arm("a", {"text": "x" * 500_000})]
    many_bytes = RecommendCommand(parse_request(RecommendRequest("ann", long_texts), 3), 0.0)

    async def main() -> None:
        queue = CommandQueue(1000)
        for command in (many_arms, many_names, many_bytes):
            queue.put([command] * 50)
            sizes = []
            while len(queue):
                sizes.append(take(queue))
            assert sum(sizes) == 50
            assert max(sizes) * command.parsed.weight < queues.MAX_BATCH_WEIGHT + command.parsed.weight
        queue.put([many_names, reward(), reward()])
        assert take(queue) == 3

    asyncio.run(main())


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(ServiceConfig(tmp_path, dim=3, policy="linucb-ind"))


def test_delay_ends_when_the_service_stops(service: Service) -> None:
    async def main() -> None:
        await service.start()
        service.committer._queue._concurrency = 4.0
        pending = asyncio.create_task(service.committer.execute(reward()))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not pending.done()
        await service.stop()
        with pytest.raises(ProblemError, match="unknown-0"):
            await pending

    asyncio.run(main())


def test_concurrent_clients_share_commits(service: Service) -> None:
    """Each of four clients sends its next request after a response, and all requests of a round are one batch."""

    async def client(number: int) -> None:
        for _ in range(50):
            for _ in range(5 * number):  # the requests do not arrive in the same iteration of the event loop
                await asyncio.sleep(0)
            with pytest.raises(ProblemError, match=f"unknown decision 'unknown-{number}'"):
                await service.committer.execute(reward(number))

    async def main() -> None:
        await service.start()
        sizes: list[int] = []
        prepare = service.engine.prepare

        def record(received: object, *others: object) -> object:
            sizes.append(len(received))  # type: ignore[arg-type]
            return prepare(received, *others)  # type: ignore[arg-type]

        vars(service.engine)["prepare"] = record
        service.committer._queue._concurrency = 4.0
        await asyncio.gather(*(client(number) for number in range(4)))
        await service.stop()
        assert sizes == [4] * 50

    asyncio.run(main())


def test_other_requests_are_served_between_a_slow_preparation_and_the_write(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    command = RecommendCommand(parse_request(RecommendRequest("ann", [Arm("a", [1.0] * 3)]), 3), 0.0)

    async def main() -> None:
        await service.start()
        prepare, stage = service.engine.prepare, service.log.stage

        def observed_prepare(*arguments: Any) -> Batch:
            order.append("prepare")
            asyncio.get_running_loop().call_soon(order.append, "other request")
            return prepare(*arguments)

        def observed_stage(records: Records) -> None:
            order.append("write")
            stage(records)

        monkeypatch.setattr(service.engine, "prepare", observed_prepare)
        monkeypatch.setattr(service.log, "stage", observed_stage)
        for limit, expected in ((0.0, ["prepare", "other request", "write"]), (HOUR, ["prepare", "write"])):
            order.clear()
            monkeypatch.setattr(group_commit, "MAX_UNINTERRUPTED", limit)
            await service.committer.execute(command)
            assert order[: len(expected)] == expected
        await service.stop()

    asyncio.run(main())
