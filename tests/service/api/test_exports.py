"""Exports: they run in processes of their own, end with their client, and are limited in number."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from locb.service.store import export
from serving import arms, play, serving, wait_for

# Programs in place of the process of an export: one that does not end, and one that ends soon.
HANGS = "exec sleep 1000"
WRITES = 'read -r line; target=${line%\\"]}; echo rows > "${target##*\\"}/locb.parquet"'


def replace_program(monkeypatch: pytest.MonkeyPatch, path: Path, script: str) -> None:
    """Replace the process of an export by a shell script."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(export.sys, "executable", str(path))


def test_abandoned_export_ends_and_others_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    replace_program(monkeypatch, tmp_path / "program", HANGS)
    data = tmp_path / "state"
    with serving(data, max_exports=1) as (client, _):
        with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
            connection.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: list(data.glob("export-*")))
            refused = client.get("/v1/export")
            assert refused.status_code == 429
            assert "1 exports are in progress" in refused.json()["detail"]
            assert "retry-after" in refused.headers
        wait_for(lambda: not list(data.glob("export-*")))
        with socket.create_connection(("127.0.0.1", client.base_url.port)) as connection:
            connection.sendall(b"GET /v1/export HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_for(lambda: list(data.glob("export-*")))
    gc.collect()  # asyncio logs exceptions that nothing has retrieved when their futures are deleted
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_next_export_can_start_when_the_response_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_program(monkeypatch, tmp_path / "program", WRITES)
    data = tmp_path / "state"
    with serving(data, max_exports=1) as (client, _):
        responses = [client.get("/v1/export") for _ in range(30)]
        assert {(response.status_code, response.text) for response in responses} == {(200, "rows\n")}
        wait_for(lambda: not list(data.glob("export-*")))


def test_commits_do_not_wait_for_shared_threads(tmp_path: Path) -> None:
    released = threading.Event()
    with serving(tmp_path) as (client, service):
        play(client, np.random.default_rng(0), ["ann", "bob"], 4)
        worker = service.committer._worker
        assert worker is not None
        loop = worker.get_loop()

        async def occupy_threads() -> Any:
            return [loop.run_in_executor(None, released.wait) for _ in range(64)]

        try:
            asyncio.run_coroutine_threadsafe(occupy_threads(), loop).result()
            assert client.delete("/v1/users/ann").json()["erased_decisions"] >= 1
            response = client.post("/v1/recommend", json={"user": "bob", "arms": arms([1, 0, 0])})
            assert response.status_code == 200
        finally:
            released.set()


def test_failed_exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    data, full = tmp_path / "state", tmp_path / "full"
    full.write_text(f'#!/bin/sh\nulimit -f 0\nexec {sys.executable} "$@"\n')
    full.chmod(0o755)
    responses = []
    with serving(data) as (client, service):
        monkeypatch.setattr(export.sys, "executable", str(full))
        response = client.get("/v1/export")
        responses.append(response)
        assert response.status_code == 503
        assert response.headers["retry-after"] == "2"
        assert response.json()["type"] == "urn:locb:problem:unavailable"
        assert "the export cannot be written to the data folder: File too large" in response.json()["detail"]
        monkeypatch.undo()
        monkeypatch.setattr(service.exports, "_url", "postgresql+psycopg://127.0.0.1:1/none")
        response = client.get("/v1/export")
        responses.append(response)
        assert response.status_code == 503
        assert "the store cannot be read: " in response.json()["detail"]
        monkeypatch.setattr(export.sys, "executable", "/bin/false")
        responses.append(client.get("/v1/export"))
        assert responses[-1].status_code == 500
        assert "the process of an export ended with status 1" in caplog.text
        assert not list(data.glob("export-*"))
    assert not any(str(tmp_path) in response.text for response in responses)  # paths are not disclosed


def test_parts_are_limited_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as (client, service):
        play(client, np.random.default_rng(0), ["ann", "bob"], 7)
        rows = [row for chunk in service.log.decisions_with_rewards() for row in chunk]
        sizes = [len(row.request) + len(row.response) + 8 * service.model.dim for row in rows]
        size = max(sizes)
        parts = [len(part) for part in export.split_by_bytes(rows, service.model.dim, 2 * size)]
        assert len(parts) >= 3
        for end, length in zip(accumulate(parts[:-1]), parts, strict=False):
            assert sum(sizes[end - length : end - 1]) < 2 * size <= sum(sizes[end - length : end])
        monkeypatch.setattr(export, "PART_BYTES", 2 * size)
        export.write_parquet(service.log, tmp_path)
        assert pl.read_parquet(tmp_path / export.FILE_NAME)["decision_id"].to_list() == [
            row.id.decode() for row in rows
        ]


def test_process_of_an_export_imports_no_policy() -> None:
    """An export starts a process, which must start fast."""
    program = "import sys, locb.service.store.export; print([name for name in sys.modules if name.startswith('numba')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"
