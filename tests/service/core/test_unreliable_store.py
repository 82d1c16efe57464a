"""A store that fails at random before or after writes, with new users, late rewards and erasures."""

import asyncio
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from locb.recommender.commands import ActivateCommand, EncodedDecision, RecommendCommand, RewardCommand
from locb.service.config import ServiceConfig
from locb.service.core import erasure, group_commit
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog
from stress.checks import Acknowledged, check, violations

OPTIONS: dict[str, Any] = {
    "dim": 2,
    "policy": "locb",
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

    def flaky(work: Any, rate: float = FAILURE_RATE) -> Any:
        def try_work(*arguments: Any) -> Any:
            chance = rng.random()
            if chance < rate / 2:
                log._drop_writer()
                raise StoreError("lost before")
            result = work(*arguments)
            if chance < rate:
                raise StoreError("lost after")
            return result

        return try_work

    with pytest.MonkeyPatch.context() as patched:
        for name in (
            *(("stage", "commit_staged") if log.backend == "sqlite" else ("commit",)),
            "write_settings",
            "erase",
            "record_rebuild",
        ):
            patched.setattr(log, name, flaky(getattr(log, name)))
        # Read after a failed commit. If it fails too, the outcome of the commit stays unknown for a while.
        patched.setattr(log, "last_seq", flaky(log.last_seq, 0.5))
        yield


@dataclass
class Received(Acknowledged):
    """Decisions and rewards that the service has acknowledged, except those of erased users."""

    users: dict[str, str] = field(default_factory=dict)  # by decision
    erased: set[str] = field(default_factory=set)  # names of users

    def erase(self, user: str) -> None:
        self.erased.add(user)
        for name in [name for name, other in self.users.items() if other == user]:
            del self.users[name], self.arms[name]
            self.rewards.pop(name, None)


class Client:
    """Client that sends commands, and repeats each until it is acknowledged."""

    def __init__(self, service: Service, name: str, rng: random.Random, received: Received) -> None:
        self.service, self.name, self.rng, self.received = service, name, rng, received

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
            self.received.users[name], self.received.arms[name] = user, json.loads(outcome.response)["arm"]
            is_active = not deferred
            if deferred and self.rng.random() < 0.7:
                await self.submit(ActivateCommand(name, 0.0))
                is_active = True
            if self.rng.random() < 0.3:
                await asyncio.sleep(0.03)  # the default reward is learned first
            if self.rng.random() < 0.7:
                reward = float(self.rng.randrange(3)) / 2
                rewarded = await self.submit(RewardCommand(name, reward, 1.0))
                if isinstance(rewarded, ProblemError) and rewarded.status == 409:
                    assert not is_active  # the reward of a decision that was never activated is not learned
                elif isinstance(rewarded, ProblemError):
                    assert (rewarded.status, user in self.received.erased) == (404, True)  # erased in the meantime
                else:
                    assert is_active
                    if name in self.received.users:
                        self.received.rewards[name] = reward
            if self.rng.random() < 0.04:
                await self.erase(user)

    async def erase(self, user: str) -> None:
        self.received.erase(user)
        while True:
            try:
                await self.service.erase_user(user)
            except ProblemError as error:
                if error.status == 404:
                    break
                await asyncio.sleep(0.001)
            else:
                break
        self.received.erase(user)  # what was acknowledged in the meantime may be erased, too


async def kill(service: Service) -> None:
    """Leave only the state on disk, as a killed process does, without threads or connections."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    service.snapshots.wait()
    service.committer._writer.stop()
    service.log.close()


async def session(store: Any, number: int, rng: random.Random, received: Received, killed: bool) -> None:
    service = Service(ServiceConfig(store.folder, store.url, default_reward=0.25, **OPTIONS))
    await service.start()
    try:
        with flaky_writes(service.log, rng):
            clients = [Client(service, f"{number}-{c}", rng, received) for c in range(CLIENTS)]
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
    rng, received = random.Random(seed), Received()
    for number in range(SESSIONS):
        asyncio.run(session(store, number, rng, received, killed=number < SESSIONS - 1))
    found = check(store.folder, store.url, received)
    assert violations(found) == []
    assert found["acknowledged decisions"] > 0
    assert found["acknowledged rewards"] > 0
    assert received.erased
