"""Snapshots: writing in the background, loading, and removal."""

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.base import file_format
from locb.service.core.startup.snapshots import KEPT_SNAPSHOTS, Snapshots
from serving import serving

STORE = "0123abcd"
INTERVAL = 100_000  # events between snapshots


def trained_policy(rewards: int = 3) -> locb.LinUCB:
    policy = locb.LinUCB(n_users=2, dim=2)
    for _ in range(rewards):
        policy.update(0, np.array([0.6, 0.8]), 1.0)
    return policy


def write(snapshots: Snapshots, *seqs: int) -> None:
    for seq in seqs:
        snapshots.write(trained_policy(seq), seq)
        snapshots.wait()


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def file_names(*seqs: int, store: str = STORE) -> list[str]:
    return [f"{store}-{seq:016d}.locb" for seq in seqs]


def test_newest_snapshot_is_loaded(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "snapshots", STORE, INTERVAL)
    assert snapshots.newest_seq is None
    assert snapshots.load_newest(0, 100) is None
    write(snapshots, 3, 7)
    assert snapshots.newest_seq == 7
    assert snapshots.write_seconds >= snapshots.blocked_seconds > 0.0
    again = Snapshots(tmp_path / "snapshots", STORE, INTERVAL)
    assert again.newest_seq == 7
    policy, seq = again.load_newest(0, 100) or pytest.fail("none")
    assert (seq, policy.served.tolist()) == (7, [7, 0])


def test_only_the_newest_snapshots_are_kept(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 1, 2, 3, 4)
    assert KEPT_SNAPSHOTS == 2
    assert list_names(tmp_path) == file_names(3, 4)


@pytest.mark.parametrize("damage", ["cut", "empty", "bit", "other"])
def test_damaged_snapshot_is_ignored(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "locb.service")  # whatever other tests have set
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 3, 7)
    path = tmp_path / file_names(7)[0]
    content = bytearray(path.read_bytes())
    if damage == "bit":
        content[len(content) // 2] ^= 4
    path.write_bytes({"cut": content[:-100], "empty": b"", "bit": content, "other": b"something else"}[damage])
    policy, seq = Snapshots(tmp_path, STORE, INTERVAL).load_newest(0, 100) or pytest.fail("none")
    assert (seq, policy.served.tolist()) == (3, [3, 0])
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"snapshot {path.name} ignored" in caplog.text


def test_all_snapshots_are_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "locb.service")
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 3, 7)
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    assert snapshots.load_newest(0, 100) is None
    assert snapshots.newest_seq is None
    assert len(caplog.records) == 2


def test_snapshots_outside_the_log_are_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 3, 7)
    _, seq = snapshots.load_newest(0, 6) or pytest.fail("none")  # the restored log ends at seq 6
    assert seq == 3
    assert list_names(tmp_path) == file_names(3)
    assert "it ends at event 7, which is not in the log" in caplog.text
    assert snapshots.load_newest(4, 6) is None  # an erasure rebuilt the policy at seq 4
    assert list_names(tmp_path) == []


def test_snapshots_of_another_store_are_not_changed(tmp_path: Path) -> None:
    write(Snapshots(tmp_path, "ffffffff", INTERVAL), 5)
    (tmp_path / "notes.txt").write_text("mine")
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    assert snapshots.load_newest(0, 100) is None
    write(snapshots, 1, 2, 3)
    snapshots.remove_all()
    assert snapshots.newest_seq is None
    assert list_names(tmp_path) == [*file_names(5, store="ffffffff"), "notes.txt"]


def test_unfinished_snapshot_is_removed(tmp_path: Path) -> None:
    (tmp_path / f".{file_names(9)[0]}.0123.part").write_bytes(b"half of it")
    Snapshots(tmp_path, STORE, INTERVAL)
    assert list_names(tmp_path) == []


def test_snapshot_of_an_older_format_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 3, 7)
    path = tmp_path / file_names(7)[0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_format, "POLICY", file_format.FileKind(version=file_format.VERSION - 1))
        trained_policy(7).save(path)
    _, seq = snapshots.load_newest(0, 100) or pytest.fail("none")
    assert seq == 3
    assert f"snapshot {path.name} ignored" in caplog.text
    assert f"was saved by an older locb (format {file_format.VERSION - 1})" in caplog.text


class SlowPolicy:
    """A policy that blocks while it is saved, until an event is set."""

    def __init__(self, policy: locb.LinUCB) -> None:
        self.may, self.policy = threading.Event(), policy

    def checkpoint(self) -> Any:
        return self

    def save(self, path: Path) -> None:
        assert self.may.wait(10)
        self.policy.save(path)


def test_snapshot_is_written_in_the_background(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    slow, done = SlowPolicy(trained_policy()), threading.Event()
    snapshots.write(slow, 5, done.set)
    assert snapshots.writing
    assert snapshots.newest_seq is None
    slow.may.set()
    snapshots.wait()
    assert done.is_set()
    assert not snapshots.writing
    assert list_names(tmp_path) == file_names(5)


def test_later_observations_are_not_in_the_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may = threading.Event()
    write_file = locb.policies.base.file_format.write

    def write_later(*arguments: Any) -> None:
        assert may.wait(10)
        write_file(*arguments)

    policy = trained_policy(3)
    policy.save(tmp_path / "before")
    monkeypatch.setattr(locb.policies.base.file_format, "write", write_later)
    snapshots = Snapshots(tmp_path / "snapshots", STORE, INTERVAL)
    snapshots.write(policy, 3)
    policy.update(1, np.array([0.6, 0.8]), 1.0)
    policy.add_users(5)
    may.set()
    snapshots.wait()
    assert (tmp_path / "snapshots" / file_names(3)[0]).read_bytes() == (tmp_path / "before").read_bytes()


def test_full_disk_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    snapshots = Snapshots(tmp_path, STORE, INTERVAL)
    write(snapshots, 3)
    with monkeypatch.context() as patched:
        patched.setattr(locb.policies.base.file_format.os, "fsync", full)
        write(snapshots, 7)
    assert "cannot write the snapshot of event 7: [Errno 28] No space left on device" in caplog.text
    assert (snapshots.newest_seq, list_names(tmp_path)) == (3, file_names(3))
    write(snapshots, 8)
    assert (snapshots.newest_seq, list_names(tmp_path)) == (8, file_names(3, 8))


def test_service_copies_the_policy_in_the_writer_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop serves requests while the policy is copied, and the copy contains exactly the events up to seq."""
    write_snapshot, may, copies = Snapshots.write_if_supported, threading.Event(), []

    def write_when_allowed(self: Snapshots, policy: locb.Policy, seq: int) -> None:
        if threading.current_thread().name == "locb-writer":
            assert may.wait(60)
            copies.append((seq, int(policy.served.sum())))
        write_snapshot(self, policy, seq)

    monkeypatch.setattr(Snapshots, "write_if_supported", write_when_allowed)
    with serving(tmp_path, dim=2, snapshot_every=3) as (client, service):
        for number in range(2):
            arms = [{"id": "a", "features": [0.6, 0.8]}]
            request = {"user": "ann", "arms": arms, "decision_id": str(number)}
            assert client.post("/v1/recommend", json=request).is_success
        assert client.get("/v1/users/ann").status_code == 200  # the snapshot of event 3 waits in the writer thread
        assert copies == []
        assert service.snapshots.newest_seq is None
        may.set()
        assert client.post("/v1/reward", json={"decision_id": "0", "reward": 1.0}).is_success
        assert copies == [(3, 0)]
    assert service.snapshots.newest_seq == 4
