"""The thread that runs jobs of the event loop in order."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from locb.service.core.group_commit import WriterThread


@pytest.fixture
def writer() -> Iterator[WriterThread]:
    writer = WriterThread()
    yield writer
    writer.stop()


def test_jobs_run_in_order_in_another_thread(writer: WriterThread) -> None:
    done: list[tuple[int, str]] = []

    def work(number: int, seconds: float) -> int:
        time.sleep(seconds)
        done.append((number, threading.current_thread().name))
        return number * number

    async def main() -> list[int]:
        return await asyncio.gather(writer.run(work, 1, 0.02), writer.run(work, 2, 0.0), writer.run(work, 3, 0.01))

    assert asyncio.run(main()) == [1, 4, 9]
    assert done == [(number, "locb-writer") for number in (1, 2, 3)]


def test_exception_of_a_job_is_raised_by_its_future(writer: WriterThread) -> None:
    async def main() -> int:
        with pytest.raises(KeyError, match="culprit"):
            await writer.run({}.__getitem__, "culprit")
        return await writer.run(lambda: 1)

    assert asyncio.run(main()) == 1


def test_cancelled_futures_are_ignored(writer: WriterThread) -> None:
    reported: list[dict[str, object]] = []

    async def main() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        for work in (lambda: 1, lambda: 1 / 0):
            writer.run(work).cancel()
        return await writer.run(lambda: 2)

    assert asyncio.run(main()) == 2
    assert reported == []


def test_stop_finishes_the_queued_jobs() -> None:
    writer, done = WriterThread(), []

    async def main() -> None:
        for number in range(3):
            writer.run(lambda number=number: (time.sleep(0.01), done.append(number)))
        writer.stop()

    asyncio.run(main())
    assert done == [0, 1, 2]


def test_jobs_whose_event_loop_is_closed_are_finished() -> None:
    writer, closed, done = WriterThread(), threading.Event(), []

    async def main() -> None:
        for number in range(2):
            writer.run(lambda number=number: (closed.wait(), done.append(number)))
        writer.run({}.__getitem__, "culprit")

    asyncio.run(main())
    closed.set()
    writer.stop()
    assert done == [0, 1]
