"""The store of a service as a log: it is read while the service runs, without a lock, and without a change."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.common.live_store import store_address, without_password
from serving import arms, play, serving

USERS = ["ann", "bob", "cay"]


def facts(log: locb.Log) -> Any:
    return (
        [log.user_ids[user] for user in log.users],
        log.chosen.tolist(),
        log.features[log.rows_of(log.chosen)].tolist(),
        np.nan_to_num(log.rewards, nan=-1.0).tolist(),
    )


def test_store_of_a_running_service_is_a_log(store: Any, tmp_path: Path) -> None:
    source = store.url or store.folder
    with serving(store.folder, store=store.url) as (client, service):
        play(client, np.random.default_rng(0), USERS, 12)
        client.post("/v1/recommend", json={"user": "dan", "arms": arms([1.0, 0.0, 0.0])}).raise_for_status()
        head = service.log.last_seq()
        log = locb.Log.read(source)
        (tmp_path / "decisions.parquet").write_bytes(client.get("/v1/export").raise_for_status().content)
        assert facts(log) == facts(locb.Log.read(tmp_path / "decisions.parquet"))
        assert len(log) == 13
        assert np.isnan(log.rewards[-1])
        play(client, np.random.default_rng(1), USERS, 2)  # the service still writes
        assert service.log.last_seq() >= head + 4
        assert len(locb.Log.read([str(source)], format="store")) == 15
    assert len(locb.Log.read(source)) == 15  # the service has stopped
    if store.url is None:
        assert len(locb.Log.read(store.folder / "log.db")) == 15
    assert locb.find_groups([str(source)], method="off-club", gamma=0.2, replicates=0).users.height == 3


def test_sources_that_are_not_a_store(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    with pytest.raises(ValueError, match="is not the store of a service, or the service has never started"):
        locb.Log.read(other)
    with pytest.raises(FileNotFoundError, match="Store does not exist"):
        locb.Log.read(f"sqlite:///{tmp_path}/missing.db")
    with pytest.raises(ValueError, match="cannot read the store: "):
        locb.Log.read("postgresql://127.0.0.1:1/none")
    with pytest.raises(ValueError, match="'store' needs a data folder with log.db"):
        locb.Log.read(tmp_path, format="store")
    (tmp_path / "log.csv").write_text("user,arm,reward\na,x,1\n")
    assert store_address(tmp_path / "log.csv") is None
    assert store_address(tmp_path) is None
    assert store_address({"user": ["a"]}) is None
    assert without_password("postgresql://ann:secret@host/db") == "postgresql://ann:***@host/db"
