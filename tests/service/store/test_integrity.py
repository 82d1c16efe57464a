"""The integrity check finds truncated and edited logs, and says where the damage is."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from commandline import call
from locb.recommender.events import CORRECTION, DEFAULT, Records
from locb.service.config import ServiceConfig
from locb.service.core import service as service_module
from locb.service.core.background import wal_checkpoints
from locb.service.core.service import Service
from locb.service.store.chain import DIGEST_BYTES, digest_user, load_salts
from locb.service.store.integrity import DamagedLogError
from locb.service.store.log import EventLog
from service.store.sample_rows import decision, observation, sample_records, user_row
from serving import play, serving


def fill(log: EventLog) -> None:
    """Write 14 events: users, decisions, rewards, an erasure, a rebuild, and the reassignment of the index."""
    log.commit(sample_records())  # events 1 to 6
    log.commit(Records(observations=[observation(7, 4, DEFAULT, 0.0, user_index=1)]))
    log.erase([1])  # event 8; erases events 3, 4, 5 and 7
    log.record_rebuild()
    log.commit(Records(users=[user_row(2, 10, None)]))
    log.commit(Records(users=[user_row(1, 11, "eve"), user_row(2, 12, "joe")], decisions=[decision(13, "d", 1)]))
    log.commit(Records(observations=[observation(14, 2, CORRECTION, 0.5)], activations=[(5.0, 13)]))


def run(log: EventLog, *statements: str) -> None:
    with log._engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_intact_log(log: EventLog) -> None:
    assert log.check_all(20) == log.check_sequence(0) == []
    fill(log)
    assert log.check_all(20) == log.check_recent(5) == []
    for after in range(15):
        assert log.check_sequence(after) == []


@pytest.mark.parametrize(
    ("statement", "expected", "in_sequence"),
    [
        ("UPDATE locb_observations SET reward = 0.25 WHERE seq = 6", (6, "edited: its content does not"), False),
        ("UPDATE locb_decisions SET chosen = 0 WHERE seq = 2", (2, "edited: its content does not"), False),
        ("UPDATE locb_decisions SET request = response WHERE seq = 2", (2, "edited: its content"), False),
        ("UPDATE locb_decisions SET response = request WHERE seq = 2", (2, "edited: its content"), False),
        ("UPDATE locb_users SET id = salt WHERE user_index = 0", (1, "edited: its content"), False),
        ("DELETE FROM locb_observations WHERE seq = 6", (6, "missing"), True),
        ("DELETE FROM locb_decisions WHERE seq = 13", (13, "missing"), True),
        ("DELETE FROM locb_users WHERE user_index = 0", (1, "missing"), True),
        ("UPDATE locb_observations SET seq = 13 WHERE seq = 14", (13, "occurs 2 times"), True),
        ("UPDATE locb_observations SET seq = 15 WHERE seq = 14", (14, "missing"), True),
        ("DELETE FROM locb_erasures WHERE seq = 4", (4, "missing"), True),
        ("DELETE FROM locb_commits WHERE previous_seq = 6", (7, "missing in the table locb_commits"), True),
        ("DELETE FROM locb_commits WHERE previous_seq = 13", (14, "missing in the table locb_commits: "), True),
        ("UPDATE locb_commits SET digests = hash WHERE previous_seq = 6", (7, "the running hash"), True),
        ("UPDATE locb_head SET last_seq = 13", (14, "follows the end of the log, event 13"), True),
        ("UPDATE locb_head SET hash = (SELECT hash FROM locb_commits WHERE previous_seq = 0)",
         (14, "the running hash of its commit does not match the table locb_head"), True),
        ("UPDATE locb_commits SET epoch = 9 WHERE previous_seq = 0", (7, "its commit has epoch 1, but"), True),
    ],
)  # fmt: skip
def test_damage_is_found(log: EventLog, statement: str, expected: tuple[int, str], in_sequence: bool) -> None:
    fill(log)
    run(log, statement)
    found = log.check_all(20)
    assert found, statement
    assert found[0].seq == expected[0]
    assert found[0].description.startswith(expected[1])
    assert log.check_sequence(0)[:1] == (found[:1] if in_sequence else [])


def test_service_refuses_a_damaged_log(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        play(client, np.random.default_rng(0), ["ann", "bob"], 5)
    log = EventLog(tmp_path)
    run(log, "UPDATE locb_observations SET reward = reward + 1 WHERE seq = 12")
    log.close()
    message = "the log is damaged: event 12: edited: its content does not match its digest; restore the store"
    with pytest.raises(DamagedLogError, match=message):
        Service(ServiceConfig(tmp_path))
    done = call("store", "check", "--data-dir", "state", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "locb: state is not a folder: pass the --data-dir of a service\n")
    done = call("store", "check", "--data-dir", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "event 12: edited: its content does not match its digest\n")
    assert done.stderr == "locb: the log of 12 events is damaged, first at event 12: restore the store from a backup\n"


@pytest.mark.parametrize("table", ["observations", "users", "decisions"])
def test_content_of_replayed_events_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    """Decisions are not replayed, so only the newest are checked."""
    monkeypatch.setattr(service_module, "CHECKED_EVENTS", 1)
    with serving(tmp_path) as (client, _):
        play(client, np.random.default_rng(0), ["ann", "bob"], 5)
    log = EventLog(tmp_path)
    changes = {
        "observations": "reward = reward + 1",
        "users": "id = CAST('eve' AS BLOB)",
        "decisions": "time = time + 1",
    }
    run(log, f"UPDATE locb_{table} SET {changes[table]} WHERE seq = (SELECT min(seq) FROM locb_{table})")
    assert len(log.check_all(9)) == 1
    log.close()
    Service(ServiceConfig(tmp_path)).log.close()  # the newest snapshot contains the event
    shutil.rmtree(tmp_path / "snapshots")
    if table == "decisions":
        Service(ServiceConfig(tmp_path)).log.close()
        return
    with pytest.raises(DamagedLogError, match="edited: its content does not match its digest"):
        Service(ServiceConfig(tmp_path))


def test_lost_write_ahead_log_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the write-ahead log is lost: the rest is consistent, but lacks events that were acknowledged."""
    monkeypatch.setattr(wal_checkpoints, "CHECKPOINT_INTERVAL", 3600.0)
    state, copy = tmp_path / "state", tmp_path / "copy"
    with serving(state) as (client, service):
        play(client, np.random.default_rng(0), ["ann", "bob"], 2)
        service.log.wal_checkpoint(True)
        play(client, np.random.default_rng(1), ["ann", "bob"], 8)
        shutil.copytree(state, copy)  # as a killed process leaves it
        last = service.engine.seq
    wal = copy / "log.db-wal"
    with wal.open("r+b") as file:
        file.truncate(wal.stat().st_size // 2)
    with pytest.raises(DamagedLogError, match=f"missing: the log ends at event .*, but events up to {last} were"):
        Service(ServiceConfig(copy))
    for _ in range(2):  # the first check does not change the recorded position
        done = call("store", "check", "--data-dir", "copy", cwd=tmp_path)
        assert done.returncode == 1
        assert f"but events up to {last} were written" in done.stdout
    (copy / "position").unlink()  # the message says so
    with serving(copy) as (client, service):
        assert 0 < service.engine.seq < last
        play(client, np.random.default_rng(2), ["ann"], 1)
    done = call("store", "check", "--data-dir", "copy", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"The log is intact: {service.engine.seq} events.\n")


def test_replaced_log_is_found(tmp_path: Path) -> None:
    """A log with as many events, but of another history."""
    with serving(tmp_path / "one") as (client, _):
        play(client, np.random.default_rng(0), ["ann", "bob"], 3)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for name in ("one", "two"):
        with serving(tmp_path / name) as (client, _):
            play(client, np.random.default_rng(0), ["ann", "bob"], 3)
    shutil.copy(tmp_path / "one" / "log.db", tmp_path / "two" / "log.db")
    with pytest.raises(DamagedLogError, match="differs from the event that is recorded in the data folder"):
        Service(ServiceConfig(tmp_path / "two"))


def test_digests_do_not_reveal_an_erased_name(log: EventLog) -> None:
    """The digest of a user's event remains, but the salt is gone."""
    log.commit(sample_records())
    with log._reading() as connection:
        before = load_salts(connection)
    assert len(set(before.values())) == 2
    log.erase([1])
    with log._reading() as connection:
        assert load_salts(connection) == {0: before[0]}
        digests = connection.execute(text("SELECT digests FROM locb_commits WHERE previous_seq = 0")).scalar()
    third = digests[2 * DIGEST_BYTES : 3 * DIGEST_BYTES]
    assert third == digest_user(before[1], 3, 1, b"bob")
    assert third != digest_user(b"", 3, 1, b"bob")
