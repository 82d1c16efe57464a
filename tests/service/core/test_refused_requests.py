"""Requests that get status 503 because the store fails: they leave no trace in memory, in the log or in a snapshot."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from locb.recommender.commands import ActivateCommand, EncodedDecision, RecommendCommand, RewardCommand
from locb.service.config import ServiceConfig
from locb.service.core import group_commit
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError, database_url
from locb.service.store.log import EventLog
from stress.checks import Acknowledged, check, violations

ARMS = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8]), Arm("z", [0.0, 1.0])]
KNOWN = [f"known {number}" for number in range(4)]
REFUSED = [f"refused {number}" for number in range(30)]
LATER = [f"later {number}" for number in range(40)]


@pytest.fixture(autouse=True)
def _fast_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "RETRY_INTERVAL", 0.01)


@contextmanager
def unavailable(store: Any) -> Iterator[None]:
    """Let the database reject all reads and writes of decisions: their table has another name."""
    engine = create_engine(database_url(store.folder, store.url))

    def rename(old: str, new: str) -> None:
        with engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))

    rename("locb_decisions", "hidden")
    try:
        yield
    finally:
        rename("hidden", "locb_decisions")
        engine.dispose()


class Session:
    """A running service, and the requests that it has acknowledged."""

    def __init__(self, service: Service, acknowledged: Acknowledged) -> None:
        self.service, self.acknowledged = service, acknowledged

    async def recommend(self, users: list[str]) -> list[Any]:
        """Request a decision for each user, in one batch; the id of the decision is the name of the user."""
        parsed = [parse_request(RecommendRequest(user, ARMS, decision_id=user), 2) for user in users]
        outcomes = await asyncio.gather(*self.service.committer.submit([RecommendCommand(own, 0.0) for own in parsed]))
        for user, outcome in zip(users, outcomes, strict=True):
            if isinstance(outcome, EncodedDecision):
                self.acknowledged.arms[user] = json.loads(outcome.response)["arm"]
        return outcomes

    async def reward(self, users: list[str]) -> None:
        for number, user in enumerate(users):
            await self.service.committer.execute(RewardCommand(user, number % 3 / 2, 1.0))
            self.acknowledged.rewards[user] = number % 3 / 2

    async def serve(self, users: list[str]) -> None:
        await self.recommend(users)
        await self.reward(users)

    async def refuse(self, users: list[str]) -> None:
        for outcome in await self.recommend(users):
            assert isinstance(outcome, ProblemError)
            assert outcome.status == 503
        assert not any(user in self.service.engine.users for user in users)

    async def recover(self) -> None:
        while self.service.committer.store_error is not None:
            await asyncio.sleep(0.01)


def run(store: Any, acknowledged: Acknowledged, scenario: Callable[[Session], Awaitable[None]]) -> None:
    """Run a scenario with a service, which is then stopped as by SIGTERM."""

    async def main() -> None:
        parameters = {"n_seeds": 2, "gamma": 0.6}
        service = Service(ServiceConfig(store.folder, store.url, dim=2, policy="locb", parameters=parameters))
        await service.start()
        try:
            await scenario(Session(service, acknowledged))
        finally:
            await service.stop()

    asyncio.run(main())


def check_log(store: Any, acknowledged: Acknowledged, open_log: Any) -> None:
    """Check that the log has the acknowledged users and decisions only, and that a replay gives the last snapshot."""
    log = open_log(store)
    names = {name.decode() for _, _, name in log.users() if name is not None}
    decisions = {row.id.decode() for chunk in log.decisions() for row in chunk}
    log.close()
    assert names == decisions == acknowledged.arms.keys()
    assert violations(check(store.folder, store.url, acknowledged)) == []


def test_shutdown_during_an_outage(store: Any, open_log: Any) -> None:
    acknowledged = Acknowledged()

    async def before(session: Session) -> None:
        await session.serve(KNOWN)
        outage.enter_context(unavailable(store))
        await session.refuse(REFUSED)

    async def after(session: Session) -> None:
        await session.serve(LATER)

    with ExitStack() as outage:
        run(store, acknowledged, before)
    run(store, acknowledged, after)
    check_log(store, acknowledged, open_log)


def test_outage(store: Any, open_log: Any) -> None:
    acknowledged = Acknowledged()

    async def scenario(session: Session) -> None:
        await session.serve(KNOWN)
        with unavailable(store):
            await session.refuse(REFUSED)
            await session.refuse([*REFUSED[:3], "another user"])
        await session.recover()
        await session.serve(LATER[:10])
        with unavailable(store):
            await session.refuse(REFUSED)
        await session.serve(LATER[10:])  # before the next probe of the store

    run(store, acknowledged, scenario)
    check_log(store, acknowledged, open_log)


@contextmanager
def lost_connection(log: EventLog, *, written: bool) -> Iterator[None]:
    """Let each commit fail, with or without its effect."""
    name = "commit_staged" if log.backend == "sqlite" else "commit"
    commit = getattr(log, name)

    def fail(*arguments: Any) -> None:
        if written:
            commit(*arguments)
        elif log.backend == "sqlite":
            log._drop_writer()  # with the staged rows
        raise StoreError("the connection was lost")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log, name, fail)
        yield


def test_response_of_the_database_is_lost(store: Any, open_log: Any) -> None:
    """The service reads whether the batch was written before it responds."""
    acknowledged = Acknowledged()

    async def scenario(session: Session) -> None:
        log = session.service.log
        await session.serve(KNOWN)
        with lost_connection(log, written=True):
            await session.serve(LATER)
        assert acknowledged.arms.keys() == {*KNOWN, *LATER}
        with lost_connection(log, written=False):
            await session.refuse(REFUSED)
            assert session.service.committer._in_doubt is None
        await session.recover()

    run(store, acknowledged, scenario)
    check_log(store, acknowledged, open_log)


def test_activation_whose_outcome_is_unknown(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> None:
        raise StoreError("the connection was lost")

    async def scenario(session: Session) -> None:
        log, committer = session.service.log, session.service.committer
        parsed = parse_request(RecommendRequest("ann", ARMS, decision_id="d"), 2)
        await committer.execute(RecommendCommand(parsed, 0.0, deferred=True))
        for written, status in ((False, 409), (True, 200)):
            with lost_connection(log, written=written), monkeypatch.context() as patched:
                patched.setattr(log, "last_seq", unreadable)
                with pytest.raises(ProblemError, match="it is unknown whether the request was stored"):
                    await committer.execute(ActivateCommand("d", 1.0))
            (reward,) = committer.submit([RewardCommand("d", 1.0, 2.0)])
            assert getattr(await reward, "status", 200) == status

    run(store, Acknowledged(), scenario)
