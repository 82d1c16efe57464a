"""A store that hangs instead of refusing: requests get 503, the service stays responsive, stops, and recovers."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from locb.recommender.commands import ActivateCommand
from locb.service import errors
from locb.service.core import group_commit
from locb.service.core.background import store_watchdog
from locb.service.core.background.queues import CommandQueue
from locb.service.store import locks, log, postgresql, sqlite
from serving import arms, serving, wait_for
from stress.postgres import PostgresServer
from stress.service_process import ServiceProcess

REQUEST = {"user": "ann", "arms": arms([1, 0, 0])}


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watchdog, "WATCH_INTERVAL", 0.05)
    monkeypatch.setattr(store_watchdog, "STORE_TIMEOUT", 1.0)
    monkeypatch.setattr(postgresql, "LOCK_TIMEOUT", 0.2)
    monkeypatch.setattr(group_commit, "RETRY_INTERVAL", 0.05)
    monkeypatch.setattr(locks, "RELEASE_TIMEOUT", 0.05)
    monkeypatch.setattr(log, "CLOSE_TIMEOUT", 0.5)


@contextmanager
def stopped_backends(server: PostgresServer, url: str) -> Iterator[None]:
    """Stop the server processes of all connections to a database, which then do not respond."""
    name = url.rpartition("/")[2]
    with psycopg.connect(server.create_database(), autocommit=True) as admin:
        found = admin.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [name]).fetchall()
    assert found
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in found:
            os.kill(pid, signal.SIGCONT)


def is_healthy(client: httpx.Client) -> bool:
    return client.get("/v1/health").status_code == 200


def is_served(client: httpx.Client) -> bool:
    return client.post("/v1/recommend", json=REQUEST).status_code == 200


def test_hanging_server(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.create_database()
    with ThreadPoolExecutor(1) as threads, ExitStack() as hanging:
        with serving(tmp_path, store=url) as (client, service):
            wait_for(lambda: is_served(client))
            with stopped_backends(postgres, url):
                wait_for(lambda: not is_healthy(client))  # without a request
                assert client.post("/v1/recommend", json=REQUEST).status_code == 503
            wait_for(lambda: is_healthy(client))
            wait_for(lambda: is_served(client))
            assert "locb_oldest_request_seconds 0.0" in client.get("/metrics").text
            hanging.enter_context(stopped_backends(postgres, url))
            waiting = threads.submit(httpx.post, f"{client.base_url}/v1/recommend", json=REQUEST, timeout=60.0)
            wait_for(lambda: service.committer.oldest_wait > 0.0)
        assert waiting.result().status_code == 503  # the service has stopped


def test_sigterm_while_the_server_hangs(tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.create_database()
    options = ["--dim", "3", "--policy", "linucb-ind", "--shutdown-timeout", "0.5s"]
    with ThreadPoolExecutor(1) as threads, ServiceProcess(tmp_path / "state", options, url) as server:
        server.start()
        assert server.post("/v1/recommend", REQUEST)[0] == 200
        with stopped_backends(postgres, url):
            waiting = threads.submit(server.post, "/v1/recommend", REQUEST)
            wait_for(lambda: server.metric("locb_oldest_request_seconds") > 0.0)
            os.kill(server.pid, signal.SIGTERM)
            assert server.wait(60.0) == 1
        assert "exit without a final snapshot, because the store is unavailable" in server.output()
        assert waiting.exception() is not None or waiting.result()[0] == 503


def test_commands_that_the_store_may_have_executed_are_refused_apart() -> None:
    async def main() -> None:
        queue = CommandQueue(10)
        futures = queue.put([ActivateCommand("a", 0.0), ActivateCommand("b", 0.0)])
        with queue.take(1):
            refused, unknown = errors.stopping(), errors.store_unavailable("no response", unknown=True)
            queue.refuse(refused, unknown)
        assert [future.result() for future in futures] == [unknown, refused]
        assert (len(queue), queue.oldest_wait) == (0, 0.0)

    asyncio.run(main())


def test_locked_table(tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watchdog, "STORE_TIMEOUT", 60.0)  # on a busy machine, a commit may take a second
    url = postgres.create_database()
    with serving(tmp_path, store=url) as (client, _):
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE locb_decisions IN ACCESS EXCLUSIVE MODE")
            refused = client.post("/v1/recommend", json=REQUEST)
            assert refused.status_code == 503
            assert "lock timeout" in refused.json()["detail"]
            assert not is_healthy(client)
        wait_for(lambda: is_healthy(client))
        wait_for(lambda: is_served(client))


def test_lock_of_another_process_does_not_block_other_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_watchdog, "STORE_TIMEOUT", 60.0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 60)
    with ThreadPoolExecutor(1) as threads, serving(tmp_path) as (client, service):
        other = sqlite3.connect(tmp_path / "log.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        waiting = threads.submit(client.post, "/v1/recommend", json=REQUEST)
        wait_for(lambda: service.committer.blocked_seconds > 0.0)
        assert client.get("/v1/live").status_code == 200
        assert not waiting.done()
        other.execute("ROLLBACK")
        assert waiting.result().status_code == 200
        other.close()
