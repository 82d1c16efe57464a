"""Another process takes over the log of a running service: the service reports it, and only the command exits."""

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from locb.recommender.commands import RecommendCommand
from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.database import StoreError
from locb.service.store.log import EventLog
from service.store.test_locks import terminate_connections
from stress.service_process import ServiceProcess

ARMS = [Arm("x", [1.0, 0.0]), Arm("y", [0.0, 1.0])]
REASON = "another process has taken over the log (epoch 2 instead of 1): this process must stop"


async def recommend(service: Service) -> Any:
    parsed = parse_request(RecommendRequest("ann", ARMS), 2)
    return await service.committer.execute(RecommendCommand(parsed, 0.0))


def test_service_in_a_library_calls_back_and_sends_no_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    reasons: list[str] = []
    path = tmp_path / "log.db"

    def fail() -> None:
        # A process on another machine, for which the lock of the file has no effect.
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE locb_head SET epoch = epoch + 1")
        raise StoreError("the connection was lost")

    async def main() -> Service:
        service = Service(
            ServiceConfig(tmp_path / "state", f"sqlite:///{path}", dim=2, policy="linucb-ind"),
            on_fatal_error=reasons.append,
        )
        await service.start()
        await recommend(service)
        with monkeypatch.context() as patched:
            patched.setattr(service.log, "try_begin", lambda: True)
            patched.setattr(service.log, "stage", lambda _: fail())
            with pytest.raises(ProblemError, match="the connection was lost"):
                await recommend(service)
        for _ in range(3):
            with pytest.raises(ProblemError, match="another process has taken over the log") as problem:
                await recommend(service)
            assert problem.value.status == 503
        assert service.committer.store_error == REASON
        await service.stop()
        return service

    previous = [signal.signal(number, lambda got, _: signals.append(got)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        service = asyncio.run(main())
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), previous, strict=True):
            signal.signal(number, handler)
    assert signals == []
    assert reasons == [REASON]
    assert service.fatal_error == REASON
    assert list((tmp_path / "state" / "snapshots").iterdir()) == []  # the state in memory does not match the log


def test_command_stops_with_exit_status_1(postgres: Any, tmp_path: Path) -> None:
    url = postgres.create_database()
    with ServiceProcess(tmp_path / "state", ["--dim", "2", "--policy", "linucb-ind"], url) as server:
        server.start()
        request = {"user": "ann", "arms": [{"id": arm.id, "features": arm.features} for arm in ARMS]}
        assert server.post("/v1/recommend", request)[0] == 200
        terminate_connections(url)  # the lock of the database is lost
        EventLog(tmp_path / "other", url).close()
        process = server._process
        assert process is not None
        # The service extends its lease at intervals, so that it stops without a request.
        assert process.wait(120) == 1
        assert f"the service cannot continue: {REASON}" in server.output()
        assert server.output().endswith(f"locb: {REASON}\n")
        assert "Traceback" not in server.output()
