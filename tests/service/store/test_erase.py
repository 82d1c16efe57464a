"""Erasure in the event log: tables and files, including the write-ahead log."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from locb.recommender.events import CORRECTION, DEFAULT, REWARD, Records
from locb.service.store import reader as reader_module
from locb.service.store import sqlite
from locb.service.store.log import EventLog
from service.store.sample_rows import decision, observation, sample_records, user_row


def test_erase_user(log: EventLog) -> None:
    log.commit(sample_records())
    assert log.erase([1]) == [2]
    assert log.users() == [(0, 1, b"ann"), (1, 3, None)]
    assert [row[1] for chunk in log.decisions() for row in chunk] == [b"a"]
    assert log.last_seq() == 7
    assert log.settings() == {"rebuilt_at": None}
    assert log.erase([0]) == [1]
    assert list(log.observations(0)) == []


def test_reassigned_index_keeps_its_seq(log: EventLog) -> None:
    log.commit(sample_records())
    log.erase([1])
    log.commit(Records(users=[user_row(1, 8, "eve")]))
    assert log.users() == [(0, 1, b"ann"), (1, 3, b"eve")]


def test_erased_data_is_in_no_file(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    secret, kept = b"SECRET-OF-EVE", b"KEPT-OF-ANN"
    try:
        log.commit(Records(users=[(0, 1, kept), (1, 2, secret)]))
        seq = 3
        for _ in range(20):
            decisions = [
                decision(seq + i, f"{(secret if i % 2 else kept).decode()}-{seq + i}", i % 2,
                         request=(secret if i % 2 else kept) * 500,
                         response=(secret if i % 2 else kept) * 900)
                for i in range(20)
            ]  # fmt: skip
            log.commit(Records(decisions=decisions))
            log.commit(
                Records(
                    observations=[
                        observation(row.seq + 20, row.seq, user_index=row.user_index, context=row.response[:100])
                        for row in decisions
                    ]
                )
            )
            seq += 40
            log.wal_checkpoint()
        assert any(secret in path.read_bytes() for path in tmp_path.iterdir())
        assert log.erase([1]) == [200]
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert kept in files["log.db"]
        assert [name for name, content in files.items() if secret in content] == []
    finally:
        log.close()


def test_erased_data_is_removed_from_the_wal_after_a_concurrent_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "CHUNK_ROWS", 1)
    log = EventLog(tmp_path)
    wal = tmp_path / "log.db-wal"
    try:
        log.commit(sample_records())
        reading = log.decisions()
        assert next(reading)[0].id == b"a"
        log.erase([1])
        assert b"bob" in wal.read_bytes()
        assert log.wal_pending
        assert [row.id for chunk in reading for row in chunk] == [b"b", b"c"]
        log.wal_checkpoint(True)
        assert not log.wal_pending
        assert wal.read_bytes() == b""
    finally:
        log.close()


def test_start_truncates_the_wal_of_a_killed_process(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "one")
    log.commit(sample_records())
    shutil.copytree(tmp_path / "one", tmp_path / "two")  # the state after a power failure
    log.close()
    assert b"bob" in (tmp_path / "two" / "log.db-wal").read_bytes()
    log = EventLog(tmp_path / "two")
    assert (tmp_path / "two" / "log.db-wal").read_bytes() == b""
    assert log.last_seq() == 6
    log.close()


def test_large_wal_is_truncated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventLog(tmp_path)
    try:
        log.commit(sample_records())
        wal = tmp_path / "log.db-wal"
        assert wal.stat().st_size > 0
        assert not log.wal_pending
        monkeypatch.setattr(sqlite, "MAX_WAL_BYTES", 10)
        assert log.wal_pending
        log.wal_checkpoint(True)
        assert wal.stat().st_size == 0
        assert not log.wal_pending
    finally:
        log.close()


def test_wal_checkpoint_is_a_no_op_for_postgresql(postgres: Any, tmp_path: Path) -> None:
    log = EventLog(tmp_path, postgres.create_database())
    log.wal_checkpoint(True)
    assert not log.wal_pending
    log.close()


def test_erase_several_users(log: EventLog) -> None:
    """Each erasure is one event; rewards, default rewards and corrections are deleted with their decisions."""
    log.commit(Records(users=[user_row(index, index + 1, f"user {index}") for index in range(4)]))
    log.commit(Records(decisions=[decision(5 + index, f"d{index}", index) for index in range(4)]))
    rewarded = ((9, 6, 1, REWARD), (10, 7, 2, DEFAULT), (11, 7, 2, CORRECTION), (12, 8, 3, REWARD))
    log.commit(Records(observations=[observation(a, b, kind, user_index=index) for a, b, index, kind in rewarded]))
    assert log.erase([2, 1]) == [1, 1]
    assert log.last_seq() == 14
    assert [row.seq for chunk in log.observations(0) for row in chunk] == [12]
    assert [row.id for chunk in log.decisions() for row in chunk] == [b"d0", b"d3"]
    assert log.users() == [(0, 1, b"user 0"), (1, 2, None), (2, 3, None), (3, 4, b"user 3")]
    assert log.check_all(10) == log.check_sequence(0) == []


def test_erase_does_not_scan_the_observations(tmp_path: Path) -> None:
    log, plans = EventLog(tmp_path), list[str]()
    log.commit(sample_records())

    def explain(_: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> None:
        if statement.startswith(("SELECT", "DELETE")):
            found = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(row[-1] for row in found)

    event.listen(log._engine, "before_cursor_execute", explain)
    assert log.erase([1]) == [2]
    log.close()
    assert [plan for plan in plans if "locb_observations" in plan]
    assert [plan for plan in plans if plan.startswith("SCAN locb_observations")] == []
