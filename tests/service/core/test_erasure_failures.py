"""Erasures while the store fails, and erasures that are requested again: each request gets a response."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from locb.recommender.commands import RecommendCommand, RewardCommand
from locb.service.config import ServiceConfig
from locb.service.core import erasure
from locb.service.core.audit import repeat_decisions
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog
from serving import same_state

ARMS = [Arm("x", [1.0, 0.0]), Arm("y", [0.0, 1.0])]
PAUSE = 0.2  # seconds between attempts to rebuild the policy
TIMEOUT = 10.0  # seconds in which an erasure gets a response, also on a busy machine


@asynccontextmanager
async def running(folder: Path, **options: Any) -> Any:
    """Provide a service that has decisions and rewards of the users u0, u1 and u2."""
    service = Service(ServiceConfig(folder, None, dim=2, policy="linucb-ind", **options))
    await service.start()
    try:
        for number in range(6):
            await decide(service, f"u{number % 3}", f"d{number}")
            await service.committer.execute(RewardCommand(f"d{number}", 1.0, 0.0))
        yield service
    finally:
        await service.stop()


async def decide(service: Service, user: str, decision_id: str) -> None:
    parsed = parse_request(RecommendRequest(user, ARMS, decision_id=decision_id), 2)
    await service.committer.execute(RecommendCommand(parsed, 0.0))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not condition():
            await asyncio.sleep(0.002)


async def answered(request: Awaitable[int]) -> int:
    """Return the number of erased decisions, or the status of the problem."""
    try:
        return await asyncio.wait_for(request, TIMEOUT)
    except ProblemError as problem:
        return problem.status


@contextmanager
def lost_response(log: Any, name: str) -> Iterator[list[int]]:
    """Lose the response of the first call of a method that writes. Yield a list, to which the loss is appended."""
    work, lost = getattr(log, name), list[int]()

    def write(*arguments: Any) -> Any:
        result = work(*arguments)
        if not lost:
            lost.append(1)
            raise StoreError("the connection was lost after the commit")
        return result

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log, name, write)
        yield lost


@pytest.mark.parametrize("traffic", [True, False])
def test_lost_response_of_the_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traffic: bool) -> None:
    """The rebuild is in the log, and another request, or the next rebuild, finds that."""
    monkeypatch.setattr(erasure, "RETRY_INTERVAL", PAUSE if traffic else 0.01)

    async def main() -> None:
        async with running(tmp_path) as service:
            with lost_response(service.log, "record_rebuild") as lost:
                request = asyncio.create_task(service.erase_user("u0"))
                await until(lambda: lost)
                if traffic:
                    await decide(service, "u1", "during the pause")
                assert await answered(request) == 2
            await decide(service, "u1", "later")
            assert service.engine.seq == service.log.last_seq()
            assert service.background.failures.total() == 0
            assert service.fatal_error is None
            rebuilt_at = service.log.settings()["rebuilt_at"]
            replayed, mismatches = repeat_decisions(service.log, service.model, rebuilt_at)
            assert (mismatches, same_state(replayed, service.policy)) == ([], True)

    asyncio.run(main())


@contextmanager
def delayed_rebuild(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let each rebuild wait for an event while requests are served."""
    may_end, catch_up = threading.Event(), erasure.Eraser._catch_up

    def wait(eraser: erasure.Eraser, *arguments: Any) -> None:
        may_end.wait(TIMEOUT)
        catch_up(eraser, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(erasure.Eraser, "_catch_up", wait)
        patched.setattr(erasure, "MAX_FINAL_CATCH_UP", 0)
        yield may_end
        may_end.set()


def test_repeated_request_waits_for_the_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 404 also confirms that the policy does not depend on the user."""

    async def main() -> None:
        async with running(tmp_path) as service:
            with delayed_rebuild(monkeypatch) as may_end:
                first = asyncio.create_task(answered(service.erase_user("u0")))
                await until(lambda: service.rebuilding)
                repeated = asyncio.create_task(answered(service.erase_user("u0")))
                other = asyncio.create_task(answered(service.erase_user("unknown")))
                assert await other == 404
                assert not repeated.done()
                may_end.set()
                assert await asyncio.gather(first, repeated) == [2, 404]
            assert await answered(service.erase_user("u0")) == 404

    asyncio.run(main())


def test_users_are_erased_together_and_decisions_are_committed_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "MAX_ERASURES", 2)
    committed: list[Any] = []

    def noting(work: Callable[..., Any], note: Any) -> Callable[..., Any]:
        def write(*arguments: Any) -> Any:
            committed.append(note or len(arguments[0]))
            return work(*arguments)

        return write

    async def main() -> None:
        async with running(tmp_path) as service:
            for number in range(3, 6):
                await decide(service, f"u{number}", f"d{number}-0")
            monkeypatch.setattr(service.log, "erase", noting(service.log.erase, None))
            monkeypatch.setattr(service.log, "stage", noting(service.log.stage, "decision"))
            restart, restarts = service._backfill.restart, list[int]()
            monkeypatch.setattr(service._backfill, "restart", lambda last: (restarts.append(last), restart(last)))
            async with service.committer.commit_lock:
                users = [*(f"u{number}" for number in range(6)), "u0"]
                requests = [asyncio.create_task(answered(service.erase_user(user))) for user in users]
                await asyncio.sleep(0.01)
                decision = asyncio.create_task(decide(service, "v", "between"))
                await asyncio.sleep(0.01)
            assert await asyncio.gather(*requests) == [2, 2, 2, 1, 1, 1, 404]
            await decision
            assert committed == [2, "decision", 2, 2]
            assert 1 <= len(restarts) <= 3  # one per rebuild
            assert service.erasure_count == 6
            assert service.log.check_all(1) == []

    asyncio.run(main())


def test_failing_statistics_do_not_fail_the_erasure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with running(tmp_path) as service:
            monkeypatch.setattr(service._backfill, "restart", lambda _: 1 / 0)
            assert await answered(service.erase_user("u0")) == 2

    asyncio.run(main())


def test_requests_get_a_response_when_the_service_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with delayed_rebuild(monkeypatch) as may_end:
            async with running(tmp_path) as service:
                request = asyncio.create_task(answered(service.erase_user("u0")))
                await until(lambda: service.rebuilding)
                threading.Timer(0.05, may_end.set).start()
            assert await request == 503
            assert await answered(service.erase_user("u1")) == 503

    asyncio.run(main())


def test_restarts_of_the_statistics_do_not_accumulate_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running_now, highest, counts = 0, 0, EventLog.counts

    def slow(log: EventLog, last: int) -> tuple[int, int]:
        nonlocal running_now, highest
        running_now += 1
        highest = max(highest, running_now)
        time.sleep(0.03)
        running_now -= 1
        return counts(log, last)

    async def main() -> None:
        async with running(tmp_path) as service:
            monkeypatch.setattr(EventLog, "counts", slow)
            for _ in range(4):
                service._backfill.restart(service.engine.seq)
                await asyncio.sleep(0.01)
            await until(lambda: not service.backfilling)
            assert service.event_stats.decisions == 6
        assert highest == 1

    asyncio.run(main())
