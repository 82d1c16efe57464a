"""The event log, on SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select, text

from locb.recommender.events import CORRECTION, DEFAULT, REWARD, Records
from locb.service.store import log as log_module
from locb.service.store import reader as reader_module
from locb.service.store import schema as tables
from locb.service.store import user_decisions
from locb.service.store.database import DuplicateDecisionError, StoreError, database_url
from locb.service.store.log import EventLog
from service.store.sample_rows import CONTEXT, REQUEST, RESPONSE, decision, observation, sample_records, user_row

ODD_NAMES = ["\0", "a\0b", "🦆", "é" * 256, "🦆" * 256, "'; DROP TABLE locb_users; --", "%s %(x)s ?", " ", "\ufffe"]
Opener = Callable[[Any], EventLog]


def flat(chunks: Any) -> list[Any]:
    return [tuple(row) for chunk in chunks for row in chunk]


def test_empty_log(log: EventLog) -> None:
    assert log.last_seq() == 0
    assert log.settings() == {}
    assert log.users() == []
    assert log.find([b"a"]) == []
    assert log.find([]) == []
    assert log.recent_decisions(0, 10) == []
    assert (
        flat(log.observations(0))
        == flat(log.decisions())
        == flat(log.unrewarded_decisions())
        == flat(log.decisions_with_rewards())
        == []
    )


def test_committed_events_are_found_after_reopening(store: Any, open_log: Opener) -> None:
    first = open_log(store)
    first.commit(sample_records())
    first.write_settings({"format": tables.FORMAT, "model": {"dim": 2}})
    first.close()
    log = open_log(store)
    assert log.last_seq() == 6
    assert log.users() == [(0, 1, b"ann"), (1, 3, b"bob")]
    assert flat(log.decisions()) == [decision(2, "a"), decision(4, "b", 1), decision(5, "c", 1)]
    assert flat(log.observations(0)) == [(6, 0, REWARD, 0.0, 1.0, CONTEXT)]
    assert log.settings() == {"format": tables.FORMAT, "model": {"dim": 2}}


def test_ranges_and_chunks(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "CHUNK_ROWS", 2)
    log.commit(Records(decisions=[decision(seq, f"d{seq}") for seq in range(1, 8)]))
    log.commit(Records(observations=[observation(7 + seq, seq) for seq in range(1, 8)]))
    assert [len(chunk) for chunk in log.decisions()] == [2, 2, 2, 1]
    assert [row[0] for row in flat(log.decisions(2, 5))] == [3, 4, 5]
    assert [row[0] for row in flat(log.observations(9))] == [10, 11, 12, 13, 14]
    assert [row[0] for row in flat(log.observations(9, 11))] == [10, 11]


def test_find_returns_the_last_observation(log: EventLog) -> None:
    log.commit(sample_records())
    log.commit(Records(observations=[observation(7, 4, DEFAULT, 0.25)]))
    found = {
        found_decision.decision.id: (found_decision.kind, found_decision.reward)
        for found_decision in log.find([b"a", b"b", b"c", b"unknown"])
    }
    assert found == {b"a": (REWARD, 1.0), b"b": (DEFAULT, 0.25), b"c": (None, None)}
    log.commit(Records(observations=[observation(8, 4, CORRECTION, 0.75, previous_reward=0.25)]))
    assert log.find([b"b"]) == [(decision(4, "b", 1), CORRECTION, 0.75, None)]


def test_find_many_ids(log: EventLog) -> None:
    log.commit(Records(decisions=[decision(seq, f"d{seq}") for seq in range(1, 1801)]))
    names = [f"d{seq}".encode() for seq in range(1, 1801)]
    assert sorted(found.decision.id for found in log.find(names)) == sorted(names)


def test_recent_decisions_of_a_user(log: EventLog) -> None:
    log.commit(sample_records())
    assert [found.decision.id for found in log.recent_decisions(1, 10)] == [b"c", b"b"]
    assert [found.decision.id for found in log.recent_decisions(1, 1)] == [b"c"]
    assert [(found.decision.id, found.reward) for found in log.recent_decisions(0, 10)] == [(b"a", 1.0)]


def test_recent_decisions_with_and_without_the_table(
    store: Any, open_log: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_UNINDEXED_EVENTS", 10)
    log = open_log(store)
    for start in range(1, 26, 5):
        log.commit(Records(decisions=[decision(seq, f"d{seq}", seq % 3) for seq in range(start, start + 5)]))
    expected = [seq for seq in range(25, 0, -1) if seq % 3 == 1]

    def table_size() -> int:
        with log._engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(tables.user_decisions)).scalar_one())

    assert table_size() == 20  # the policy was extended at seq 10 and at seq 20
    for limit in (1, 2, 4, 9, 100):
        assert [found.decision.seq for found in log.recent_decisions(1, limit)] == expected[:limit]
    log.close()
    log = open_log(store)
    assert table_size() == 25
    log.commit(Records(decisions=[decision(26, "d26", 1), decision(27, "d27", 2)]))
    assert [found.decision.seq for found in log.recent_decisions(1, 100)] == [26, *expected]
    assert log.settings() == {}
    assert log.erase([1]) == [10]
    assert log.recent_decisions(1, 100) == []
    left = [seq for seq in range(1, 26) if seq % 3 != 1]
    assert [row.seq for chunk in log.decisions() for row in chunk] == [*left, 27]
    assert table_size() == 17


def test_commit_succeeds_if_the_table_cannot_be_extended(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(connection: Connection) -> int:
        connection.execute(text("SELECT * FROM nowhere"))
        raise AssertionError

    monkeypatch.setattr(log_module, "MAX_UNINDEXED_EVENTS", 1)
    with monkeypatch.context() as broken:
        broken.setattr(user_decisions, "extend", fail)
        log.commit(Records(decisions=[decision(1, "a")]))
    assert [found.decision.seq for found in log.recent_decisions(0, 10)] == [1]
    log.commit(Records(decisions=[decision(2, "b")]))
    assert [found.decision.seq for found in log.recent_decisions(0, 10)] == [2, 1]


@pytest.mark.parametrize("count", [1, 2, 4, 5, 16, 17, 255, 256, 257, 600])
def test_batch_sizes(log: EventLog, count: int) -> None:
    decisions = [decision(seq, f"d{seq}", seq % 7, active_at=None if seq % 3 else 0.5) for seq in range(1, count + 1)]
    observations = [observation(count + row.seq, row.seq, context=b"" if row.seq % 2 else CONTEXT) for row in decisions]
    log.commit(Records(decisions=decisions, observations=observations))
    assert flat(log.decisions()) == decisions
    assert [row[-1] for row in flat(log.observations(0))] == [row.context for row in observations]


def test_staged_rows_are_lost_with_the_connection(log: EventLog) -> None:
    log.stage(Records(decisions=[decision(1, "a")]))
    log._drop_writer()
    with pytest.raises(StoreError, match="lost"):
        log.commit_staged()
    seq = log.last_seq()
    assert seq == (0 if log.backend == "sqlite" else 1)
    log.commit(Records(observations=[observation(seq + 1, 1)]))
    assert log.last_seq() == seq + 1


def test_settings_are_written_in_one_transaction(log: EventLog) -> None:
    log.commit(Records(decisions=[decision(1, "a")]))
    with pytest.raises(TypeError):
        log.write_settings({"first": 1, "second": object()})
    with pytest.raises(DuplicateDecisionError):
        log.commit(Records(decisions=[decision(2, "a")]))
    with pytest.raises(TypeError):
        log.write_settings({"first": 1, "second": object()})
    assert log.settings() == {}


def test_ids_are_arbitrary_text(log: EventLog) -> None:
    log.commit(
        Records(
            users=[user_row(user_index, user_index + 1, name) for user_index, name in enumerate(ODD_NAMES)],
            decisions=[
                decision(len(ODD_NAMES) + user_index + 1, name, user_index) for user_index, name in enumerate(ODD_NAMES)
            ],
        )
    )
    assert [name for _, _, name in log.users()] == [name.encode() for name in ODD_NAMES]
    for user_index, name in enumerate(ODD_NAMES):
        (found,) = log.find([name.encode()])
        assert found.decision.user_index == user_index


def test_numbers_are_stored_exactly(log: EventLog) -> None:
    for seq, reward in enumerate((0.1, 5e-324, -1e6, 1 / 3, 2**53 - 1.0), 1):
        log.commit(Records(observations=[observation(seq, seq, reward=reward, previous_reward=reward)]))
        ((_, _, _, previous, stored, _),) = flat(log.observations(seq - 1))
        assert (previous.hex(), stored.hex()) == (reward.hex(), reward.hex())


@pytest.mark.parametrize(
    "duplicate",
    [
        Records(
            users=[user_row(2, 7, "eve")],
            decisions=[decision(8, "new"), decision(9, "a")],
            observations=[observation(10, 8)],
        ),
        Records(users=[user_row(2, 7, "eve")], decisions=[decision(8, "new")], observations=[observation(9, 2)]),
        Records(decisions=[decision(7, "new")], observations=[observation(8, 7), observation(9, 7)]),
        Records(users=[user_row(2, 7, "ann")], decisions=[decision(8, "new")]),
    ],
    ids=["decision id", "observation", "observation in one batch", "user"],
)
def test_commit_with_a_duplicate_has_no_effect(log: EventLog, duplicate: Records) -> None:
    log.commit(sample_records())
    with pytest.raises(DuplicateDecisionError):
        log.commit(duplicate)
    assert log.last_seq() == 6
    assert len(log.users()) == 2
    assert log.find([b"new"]) == []
    assert len(flat(log.observations(0))) == 1
    log.commit(Records(decisions=[decision(7, "new")]))
    assert log.last_seq() == 7


def test_default_and_correction_are_unique_per_decision(log: EventLog) -> None:
    log.commit(sample_records())
    log.commit(Records(observations=[observation(7, 4, DEFAULT, 0.0)]))
    log.commit(Records(observations=[observation(8, 4, CORRECTION, 1.0)]))
    for kind in (DEFAULT, CORRECTION):
        with pytest.raises(DuplicateDecisionError):
            log.commit(Records(observations=[observation(9, 4, kind, 0.5)]))


def test_unrewarded_decisions(log: EventLog) -> None:
    log.commit(sample_records())
    log.commit(Records(decisions=[decision(7, "later", active_at=None)]))
    assert [row[0] for row in flat(log.unrewarded_decisions())] == [4, 5]
    log.commit(Records(activations=[(321.0, 7)]))
    assert flat(log.unrewarded_decisions())[-1] == (7, b"later", 0, 107.0, 321.0, 1, REQUEST, RESPONSE)
    log.commit(Records(observations=[observation(8, 7)]))
    assert [row[0] for row in flat(log.unrewarded_decisions())] == [4, 5]


def test_decisions_with_rewards_has_each_decision_once(log: EventLog) -> None:
    log.commit(sample_records())
    log.commit(Records(observations=[observation(7, 4, DEFAULT, 0.0), observation(8, 5, DEFAULT, 0.0)]))
    log.commit(Records(observations=[observation(9, 4, CORRECTION, 0.5)]))
    log.commit(Records(observations=[observation(10, 2, CORRECTION, 2.0), observation(11, 2, CORRECTION + 1, 3.0)]))
    by_id = {row.id: row for chunk in log.decisions_with_rewards() for row in chunk}
    assert [row[1] for row in flat(log.decisions_with_rewards())] == [b"a", b"b", b"c"]
    assert {name: (row.user, row.default, row.reward) for name, row in by_id.items()} == {
        b"a": (b"ann", None, 3.0),
        b"b": (b"bob", 0.0, 0.5),
        b"c": (b"bob", 0.0, None),
    }
    assert (by_id[b"b"].default_time, by_id[b"b"].reward_time) == (207.0, 209.0)
    assert (by_id[b"a"].time, by_id[b"a"].request, by_id[b"a"].response) == (102.0, REQUEST, RESPONSE)


def test_settings_are_replaced_individually(log: EventLog) -> None:
    log.write_settings({"a": 1, "b": None})
    log.write_settings({"b": [1.5, "zwei"]})
    assert log.settings() == {"a": 1, "b": [1.5, "zwei"]}


def test_reconnect_after_a_database_outage(postgres: Any, tmp_path: Path) -> None:
    log = EventLog(tmp_path, postgres.create_database())
    try:
        log.commit(sample_records())
        assert len(log.users()) == 2
        postgres.restart()
        with pytest.raises(StoreError, match="connection|terminat|crash"):
            log.commit(Records(decisions=[decision(7, "lost")]))
        assert log.last_seq() == 6
        log.commit(Records(decisions=[decision(7, "found")]))
        assert log.last_seq() == 7
        assert [found.decision.seq for found in log.find([b"lost", b"found"])] == [7]
        postgres.stop()
        for query in (log.last_seq, log.users, lambda: log.find([b"a"]), lambda: flat(log.observations(0))):
            with pytest.raises(StoreError):
                query()
        with pytest.raises(StoreError, match="refused"):
            log.write_settings({"a": 1})
    finally:
        postgres.stop()
        postgres.start()
    assert log.last_seq() == 7
    assert len(log.users()) == 2
    log.close()


def test_error_names_the_database_without_the_password(postgres: Any, tmp_path: Path) -> None:
    address = postgres.create_database()
    server = f"127.0.0.1:{postgres.port}/{address.rpartition('/')[2]}"
    for wrong, account in (
        (address.replace("locb:", "locb:SECRET"), "locb:***"),
        (f"postgresql://locb@{server}?password=SECRET", "locb"),
    ):
        with pytest.raises(StoreError, match="password authentication failed") as caught:
            EventLog(tmp_path, wrong)
        assert str(caught.value).startswith(f"cannot open --store postgresql://{account}@{server}: ")
        assert "SECRET" not in str(caught.value)


def test_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"not a database, but as long as one" * 100)
    with pytest.raises(StoreError, match="not a database") as caught:
        EventLog(tmp_path)
    assert str(caught.value).startswith(f"cannot open {tmp_path / 'log.db'}: ")
    (tmp_path / "log.db").unlink()
    EventLog(tmp_path).close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/name", "--store has the unsupported scheme 'mysql'"),
        ("sqlite://", "--store has no file name: use sqlite:///path"),
        ("sqlite+aiosqlite:///x.db", r"--store has the unsupported scheme 'sqlite\+aiosqlite'"),
        ("nonsense://x", "--store has the unsupported scheme 'nonsense'"),
        ("hello", "--store must be an address such as postgresql://"),
        ("", "--store must be an address such as postgresql://"),
    ],
)
def test_invalid_address(url: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        EventLog(tmp_path, url)
    assert list(tmp_path.iterdir()) == []


def test_database_url(tmp_path: Path) -> None:
    assert database_url(tmp_path, None).database == str(tmp_path / "log.db")
    assert database_url(tmp_path, "sqlite:////elsewhere/log.db").database == "/elsewhere/log.db"
    for scheme in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2"):
        url = database_url(tmp_path, f"{scheme}://me:secret@host/name")
        assert url.drivername == "postgresql+psycopg"
        assert "secret" not in repr(url)


def test_failed_write_releases_the_lock_of_sqlite(tmp_path: Path) -> None:
    """The exception refers to the cursor of the failed statement, and a log handler may keep the exception."""
    log = EventLog(tmp_path)
    log.commit(Records(users=[user_row(0, 1, "ann")], decisions=[decision(2, "a")]))
    with closing(sqlite3.connect(tmp_path / "log.db", timeout=0.0, isolation_level=None)) as other:
        other.execute("ALTER TABLE locb_decisions RENAME TO hidden")
        with pytest.raises(StoreError, match="no such table") as kept:
            log.commit(Records(users=[user_row(1, 3, "bob")], decisions=[decision(4, "b", 1)]))
        other.execute("ALTER TABLE hidden RENAME TO locb_decisions")
    assert kept.value.__cause__ is not None
    log.close()


@pytest.mark.parametrize("kinds", [(REWARD, REWARD), (REWARD, DEFAULT), (DEFAULT, REWARD), (CORRECTION, CORRECTION)])
def test_a_decision_is_learned_once(log: EventLog, kinds: tuple[int, int]) -> None:
    log.commit(Records(decisions=[decision(1, "a"), decision(2, "b")], observations=[observation(3, 2, DEFAULT)]))
    log.commit(Records(observations=[observation(4, 1, kinds[0])]))
    with pytest.raises(DuplicateDecisionError):
        log.commit(Records(observations=[observation(5, 1, kinds[1])]))
    log.commit(Records(observations=[observation(5, 1, CORRECTION + 1)]))
    assert [row.kind for chunk in log.observations(0) for row in chunk] == [DEFAULT, kinds[0], CORRECTION + 1]
