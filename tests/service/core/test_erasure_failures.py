"""Erasures while the store fails, and erasures that are requested again: each request gets a response."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from locb.service.config import ServiceConfig
from locb.service.core import erasure
from locb.service.core.audit import repeat_decisions
from locb.service.core.commands import RecommendCommand, RewardCommand
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError
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
