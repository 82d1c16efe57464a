"""Work is done by one thread, in order; what comes of it is told to who waits, if anybody still does."""

import asyncio
import threading
import time

import pytest

from locb.service.core.group_commit import WriterThread


@pytest.fixture
def worker():
    worker = WriterThread("test")
    yield worker
    worker.stop()


def test_work_is_done_in_order_by_another_thread(worker: WriterThread) -> None:
    done: list[tuple[int, str]] = []

    def work(number: int, seconds: float) -> int:
        time.sleep(seconds)
        done.append((number, threading.current_thread().name))
        return number * number

    async def main() -> list[int]:
        return await asyncio.gather(worker.run(work, 1, 0.02), worker.run(work, 2, 0.0), worker.run(work, 3, 0.01))

    assert asyncio.run(main()) == [1, 4, 9]
    assert done == [(1, "test"), (2, "test"), (3, "test")]


def test_what_work_raises_is_raised_where_it_is_waited_for(worker: WriterThread) -> None:
    async def main() -> int:
        with pytest.raises(KeyError, match="culprit"):
            await worker.run({}.__getitem__, "culprit")
        return await worker.run(lambda: 1)

    assert asyncio.run(main()) == 1


def test_nobody_need_wait(worker: WriterThread) -> None:
    heard: list[dict[str, object]] = []

    async def main() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: heard.append(told))
        for work in (lambda: 1, lambda: 1 / 0):
            worker.run(work).cancel()
        return await worker.run(lambda: 2)

    assert asyncio.run(main()) == 2
    assert heard == []


def test_a_worker_that_is_stopped_has_done_all() -> None:
    worker, done = WriterThread("test"), []

    async def main() -> None:
        for number in range(3):
            worker.run(lambda number=number: (time.sleep(0.01), done.append(number)))
        worker.stop()

    asyncio.run(main())
    assert done == [0, 1, 2]
