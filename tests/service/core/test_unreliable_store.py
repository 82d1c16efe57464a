"""A store that fails at random before or after writes, with new users, late rewards and erasures."""

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from locb.service.config import ServiceConfig
from locb.service.core import erasure, group_commit
from locb.service.core.commands import ActivateCommand, EncodedDecision, RecommendCommand, RewardCommand
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog
from stress.checks import Acknowledged, check, violations

OPTIONS: dict[str, Any] = {
    "dim": 2,
    "parameters": {"n_seeds": 3, "gamma": 0.6},
    "reward_wait": 0.02,
    "snapshot_every": 40,
}
CLIENTS, STEPS, SESSIONS = 8, 12, 3
SEEDS = int(os.environ.get("FLAKY_SEEDS", "2"))
FAILURE_RATE = 0.15


@contextmanager
def flaky_writes(log: EventLog, rng: random.Random) -> Iterator[None]:
    """Let writes fail at random, before or after their effect."""

    def flaky(work: Any) -> Any:
        def try_work(*arguments: Any) -> Any:
            chance = rng.random()
            if chance < FAILURE_RATE / 2:
                log._drop_writer()
                raise StoreError("lost before")
            result = work(*arguments)
            if chance < FAILURE_RATE:
                raise StoreError("lost after")
            return result

        return try_work

    with pytest.MonkeyPatch.context() as patched:
        for name in (*(("stage", "commit_staged") if log.stages_inline else ("commit",)), "write_settings", "erase"):
            patched.setattr(log, name, flaky(getattr(log, name)))
        yield


class Client:
    """Client that sends commands, and repeats each until it is acknowledged."""

    def __init__(self, service: Service, name: str, rng: random.Random) -> None:
        self.service, self.name, self.rng = service, name, rng

    async def submit(self, command: Any) -> Any:
        while True:
            try:
                return await self.service.committer.execute(command)
            except ProblemError as error:
                if error.status != 503:
                    return error
                await asyncio.sleep(0.001)

    async def run(self) -> None:
        for step in range(STEPS):
            user = f"user-{self.rng.randrange(12)}"
            name, deferred = f"{self.name}-{step}", self.rng.random() < 0.3
            angle = self.rng.random()
            arms = [Arm("x", [1.0, 0.0]), Arm("y", [angle, 1 - angle]), Arm("z", [0.6, 0.8])]
            parsed = parse_request(RecommendRequest(user, arms, decision_id=name), 2)
            outcome = await self.submit(RecommendCommand(parsed, asyncio.get_running_loop().time(), deferred))
            assert isinstance(outcome, EncodedDecision)
            if deferred and self.rng.random() < 0.7:
                await self.submit(ActivateCommand(name, 0.0))
            if self.rng.random() < 0.3:
                await asyncio.sleep(0.03)  # the default reward is learned first
            if self.rng.random() < 0.7:
                reward = float(self.rng.randrange(3)) / 2
                rewarded = await self.submit(RewardCommand(name, reward, 1.0))
                assert not isinstance(rewarded, ProblemError) or rewarded.status == 404  # erased in the meantime
            if self.rng.random() < 0.04:
                await self.erase(user)

    async def erase(self, user: str) -> None:
        for _ in range(50):
            try:
                await self.service.erase_user(user)
            except ProblemError as error:
                if error.status == 404:
                    return
                await asyncio.sleep(0.001)
            else:
                return


async def kill(service: Service) -> None:
    """Leave only the state on disk, as a killed process does, without threads or connections."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    service.snapshots.wait()
    service.committer._writer.stop()
    service.log.close()


async def session(folder: Path, url: str | None, number: int, rng: random.Random, killed: bool) -> None:
    service = Service(ServiceConfig(folder, url, default_reward=0.25, **OPTIONS))
    await service.start()
    try:
        with flaky_writes(service.log, rng):
            clients = [Client(service, f"{number}-{c}", rng) for c in range(CLIENTS)]
            await asyncio.wait_for(asyncio.gather(*(client.run() for client in clients)), 600)
        if not killed:
            while service.committer.store_error is not None or service.engine.pending_erasure:
                await asyncio.sleep(0.01)
            await service.stop()
    finally:  # no effect after a shutdown
        await kill(service)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_log_matches_the_policy_despite_failed_writes(seed: int, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "RETRY_INTERVAL", 0.01)
    monkeypatch.setattr(erasure, "RETRY_INTERVAL", 0.01)
    rng = random.Random(seed)
    for number in range(SESSIONS):
        asyncio.run(session(store.folder, store.url, number, rng, killed=number < SESSIONS - 1))
    found = check(store.folder, store.url, Acknowledged())
    assert violations(found) == []
    assert found["observations"] > 0
