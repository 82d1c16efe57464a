"""Worker threads, which run jobs in order, and background tasks, which start again when they fail."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locb.service.config import ServiceConfig
from locb.service.core.background import supervised_tasks
from locb.service.core.background.queues import WorkerThread
from locb.service.core.service import Service
from locb.service.store.log import EventLog
from serving import play, serving, wait_for


@pytest.fixture
def writer() -> Iterator[WorkerThread]:
    writer = WorkerThread("writer")
    yield writer
    writer.stop()


def test_jobs_run_in_order_in_another_thread(writer: WorkerThread) -> None:
    done: list[tuple[int, str]] = []

    def work(number: int, seconds: float) -> int:
        time.sleep(seconds)
        done.append((number, threading.current_thread().name))
        return number * number

    async def main() -> list[int]:
        return await asyncio.gather(writer.run(work, 1, 0.02), writer.run(work, 2, 0.0), writer.run(work, 3, 0.01))

    assert asyncio.run(main()) == [1, 4, 9]
    assert done == [(number, "writer") for number in (1, 2, 3)]


def test_exception_of_a_job_is_raised_by_its_future(writer: WorkerThread) -> None:
    async def main() -> int:
        with pytest.raises(KeyError, match="culprit"):
            await writer.run({}.__getitem__, "culprit")
        return await writer.run(lambda: 1)

    assert asyncio.run(main()) == 1


def test_cancelled_futures_are_ignored(writer: WorkerThread) -> None:
    reported: list[dict[str, object]] = []

    async def main() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        for work in (lambda: 1, lambda: 1 / 0):
            writer.run(work).cancel()
        return await writer.run(lambda: 2)

    assert asyncio.run(main()) == 2
    assert reported == []


def test_stop_finishes_the_queued_jobs() -> None:
    writer, done = WorkerThread("writer"), []

    async def main() -> None:
        for number in range(3):
            writer.run(lambda number=number: (time.sleep(0.01), done.append(number)))
        writer.stop()

    asyncio.run(main())
    assert done == [0, 1, 2]


def test_jobs_whose_event_loop_is_closed_are_finished() -> None:
    writer, closed, done = WorkerThread("writer"), threading.Event(), []

    async def main() -> None:
        for number in range(2):
            writer.run(lambda number=number: (closed.wait(), done.append(number)))
        writer.run({}.__getitem__, "culprit")

    asyncio.run(main())
    closed.set()
    writer.stop()
    assert done == [0, 1]


def test_failed_tasks_start_again_and_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervised_tasks, "RESTART_INTERVAL", 0.01)
    checkpoint, reads, failed = EventLog.wal_checkpoint, EventLog.counts, set()

    def fail_once(name: str, work: Any) -> Any:
        def wrapped(log: EventLog, *arguments: Any) -> Any:
            if name not in failed:
                failed.add(name)
                raise ArithmeticError(f"{name} is broken")
            return work(log, *arguments)

        return wrapped

    with serving(tmp_path) as (client, service):
        play(client, np.random.default_rng(0), ["ann"], 3)
    monkeypatch.setattr(EventLog, "counts", fail_once("statistics", reads))
    with serving(tmp_path) as (client, service):
        monkeypatch.setattr(EventLog, "wal_checkpoint", fail_once("wal-checkpoint", checkpoint))
        play(client, np.random.default_rng(0), ["ann"], 1)
        wal = tmp_path / "log.db-wal"
        wait_for(lambda: failed == {"statistics", "wal-checkpoint"})
        wait_for(lambda: service.background.failures.total() == 2 and not service.backfilling)
        wait_for(lambda: client.get("/v1/status").json()["decisions"] == 4)
        metrics = client.get("/metrics").text
        assert 'locb_background_failures_total{task="wal-checkpoint"} 1.0' in metrics
        assert 'locb_background_failures_total{task="statistics"} 1.0' in metrics
        assert 'locb_background_failures_total{task="snapshot-memory"} 0.0' in metrics
        assert "the background task 'wal-checkpoint' failed" in caplog.text
        play(client, np.random.default_rng(0), ["ann"], 20)
        monkeypatch.setattr(EventLog, "wal_pending", True)
        wait_for(lambda: wal.stat().st_size == 0)


def test_cancelled_caller_keeps_the_commit_lock_until_its_write_ends(tmp_path: Path) -> None:
    service = Service(ServiceConfig(tmp_path, None, dim=2, policy="linucb-ind"))
    may_end = threading.Event()

    async def write() -> None:
        async with service.committer.commit_lock:
            await service.committer.write_slow(may_end.wait)

    async def main() -> None:
        await service.start()
        writing = asyncio.create_task(write())
        await asyncio.sleep(0.01)
        for _ in range(2):
            writing.cancel()
            await asyncio.sleep(0.01)
        assert service.committer.commit_lock.locked()
        may_end.set()
        async with service.committer.commit_lock:
            assert writing.cancelled() or writing.cancelling()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await service.stop()

    asyncio.run(main())
