"""Start of a new store from a log or a saved policy: replay, audit, integrity check and erasure hold as for events that
came in over HTTP, and a log that a service has written gives the same policy, bit for bit."""

import logging
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.service.config import ServiceConfig
from locb.service.core.audit import audit, check_log
from locb.service.core.service import Service
from locb.service.core.startup import start
from locb.service.store.export import StoredLog
from serving import arms, play, same_state, serving, wait_for

USERS = [f"u{number}" for number in range(7)]
REQUEST = {"arms": arms([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])}


def decide(client: Any, user: str, decision_id: str, reward: float | None = None) -> None:
    client.post("/v1/recommend", json=REQUEST | {"user": user, "decision_id": decision_id}).raise_for_status()
    if reward is not None:
        client.post("/v1/reward", json={"decision_id": decision_id, "reward": reward}).raise_for_status()


def observations(log: Any) -> list[Any]:
    return [(row.user_index, *row[2:]) for chunk in log.observations(0) for row in chunk]


def write_log(client: Any, service: Any) -> None:
    """Write a log with a default reward, and another one that was corrected later."""
    decide(client, "late", "late")
    play(client, np.random.default_rng(0), USERS, 60)
    decide(client, "none", "default")
    wait_for(lambda: not service.engine.default_rewards._pending)
    client.post("/v1/reward", json={"decision_id": "late", "reward": 0.75}).raise_for_status()
    play(client, np.random.default_rng(1), ["v0", "v1", *USERS], 40)


@pytest.mark.parametrize("policy", ["eloc", "locb"])
def test_log_of_a_service_gives_the_same_policy(store: Any, tmp_path: Path, policy: str) -> None:
    options = {"policy": policy, "parameters": {"n_seeds": 4}, "default_reward": 0.25, "reward_wait": 0.2}
    with serving(tmp_path / "source", **options) as (client, service):
        write_log(client, service)
        export = tmp_path / "export.parquet"
        exported = client.get("/v1/export").raise_for_status().content
        learned, model = observations(service.log), service.policy
        # The source still runs. Without --policy, its policy and parameters are used.
        again = {"policy": None, "dim": None, "start_from": str(tmp_path / "source"), "store": store.url}
        with serving(store.folder, **again) as (copied, other):
            assert same_state(other.policy, model)
            assert observations(other.log) == learned
            assert other.log.users() == [
                (index, other.log.users()[index][1], name) for index, _, name in service.log.users()
            ]
            if policy == "locb":  # the export of a service that has itself started from a log
                exported = copied.get("/v1/export").raise_for_status().content
            question = {"user": "u3", "arms": arms([0.5, -0.5, 1.0], [1.0, 0.0, -1.0])}
            assert copied.post("/v1/preview", json=question).json() == client.post("/v1/preview", json=question).json()
            play(copied, np.random.default_rng(2), USERS, 5)
            assert copied.post("/v1/reward", json={"decision_id": "late", "reward": 0.75}).status_code == 200
            assert copied.post("/v1/reward", json={"decision_id": "default", "reward": 1}).status_code == 404
    export.write_bytes(exported)
    imported = {**options, "default_reward": None, "start_from": str(export)}
    with serving(tmp_path / "second", **imported) as (_, other):
        assert same_state(other.policy, model)
        assert [row[:-1] for row in observations(other.log)] == [row[:-1] for row in learned]
    for folder, url in ((store.folder, store.url), (tmp_path / "second", None)):
        events, damage, dropped = check_log(folder, url)
        assert (damage, dropped > 100, events >= dropped) == ([], True, True)
        replayed, mismatches = audit(folder, url)
        assert mismatches == []
        assert replayed.served.sum() == len(learned) - 1 + 5 * (folder == store.folder)


@pytest.mark.parametrize("policy", ["eloc", "locb"])
def test_store_with_erased_users_gives_the_same_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    rng = np.random.default_rng(4)
    monkeypatch.setattr(start, "BATCH_EVENTS", 0)  # 100 events per transaction, the minimum
    with serving(tmp_path / "source", policy=policy, parameters={"n_seeds": 3}, retain=3600.0) as (client, service):
        play(client, rng, USERS, 60)
        for user in ("u2", "u5"):
            client.delete(f"/v1/users/{user}").raise_for_status()
        play(client, rng, ["new", *USERS[:2]], 30)  # gets the index of an erased user
        with serving(tmp_path / "copy", policy=None, dim=None, start_from=str(tmp_path / "source" / "log.db")) as (
            _,
            other,
        ):
            assert same_state(other.policy, service.policy)
            assert observations(other.log) == observations(service.log)
            named = [(index, name) for index, _, name in service.log.users()]
            assert [(index, name) for index, _, name in other.log.users()] == named
            assert (7, None) not in named
            assert sum(name is None for _, name in named) == 1
    assert check_log(tmp_path / "copy")[1] == []
    assert same_state(audit(tmp_path / "copy")[0], service.policy)


def test_imported_log_is_replayed_continued_and_erased(store: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = [f'{{"id": "{arm}", "features": {rng.normal(size=3).tolist()}}}' for arm in "ab"]
    table = pl.DataFrame({
        "user": ["ann", "bob", "ann", "cay", "bob", "ann", "x" * 300],
        "chosen": ["a", "b", "b", "a", "a", "z", "a"],
        "arms": [f"[{', '.join(rows)}]"] * 7,
        "reward": [1.0, 0.0, None, 0.5, 1.0, 1.0, 1.0],
        "time": ["2026-01-03", "2026-01-01", "2026-01-04", "2026-01-02", "2026-01-05", "2026-01-06", "2026-01-07"],
    })  # fmt: skip
    table.write_csv(tmp_path / "log.csv")
    options = {"policy": "locb", "parameters": {"n_seeds": 2}, "store": store.url}
    with serving(store.folder, start_from=str(tmp_path / "log.csv"), **options) as (client, service):
        names = [name for _, _, name in service.log.users()]
        assert names == [b"bob", b"cay", b"ann"]  # in the order of their first decisions
        times = [row.time for chunk in service.log.decisions() for row in chunk]
        assert times == sorted(times)
        assert times[0] == 1767225600.0
        assert service.policy.served.tolist() == [2, 1, 1]
        assert list((store.folder / "snapshots").iterdir())
        play(client, rng, ["ann", "dan"], 10)
        before = service.policy
    shutil.rmtree(store.folder / "snapshots")
    again = {"start_from": str(tmp_path / "log.csv"), "policy": "locb", "store": store.url}
    with serving(store.folder, **again) as (client, service):  # not imported again; replayed from the first event
        assert same_state(service.policy, before)
        assert client.delete("/v1/users/bob").raise_for_status().json()["erased_decisions"] == 2
        wait_for(lambda: not service.rebuilding)
        assert client.delete("/v1/users/bob").status_code == 404
        assert service.policy.served.sum() == before.served.sum() - 2
        erased = service.policy
    assert check_log(store.folder, store.url)[1] == []
    replayed, mismatches = audit(store.folder, store.url)
    assert mismatches == []
    assert same_state(replayed, erased)


def test_rows_that_are_not_imported_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "log.csv").write_text("who,arm,reward\nann,a,1\nbob,b,oops\nann,b,\n,a,1\n" + "c" * 257 + ",a,1\n")
    options = {"start_from": str(tmp_path / "log.csv"), "start_options": {"user": "who"}, "dim": 8}
    with caplog.at_level(logging.INFO, "locb.service"), serving(tmp_path / "state", **options) as (_, service):
        assert service.policy.served.tolist() == [1]
        assert np.array_equal(
            np.frombuffer(next(service.log.observations(0))[0].context), locb.features({"arm": "a"}, 8)
        )
    for message in (
        "skipped 1 row: the reward (reward) is not a number (for example row 2: 'oops')",
        "skipped 1 row: the user is missing",
        "skipped 1 row: the id of the user has more than 256 characters",
        "1 decisions have no reward: they are stored, but nothing is learned",
        'arms have only ids: each is learned with the features {"arm": ID}, which requests must send, too',
        "the log has no times",
        "learned 1 rewards of 1 users from",
    ):
        assert message in caplog.text


def test_unfinished_import_is_repeated_and_never_served(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 500
    table = {
        "user": [f"u{i % 9}" for i in range(count)],
        "arm": ["a", "c"] * (count // 2),
        "reward": [1.0, 0.0] * (count // 2),
    }
    pl.DataFrame(table).write_csv(tmp_path / "log.csv")
    config = ServiceConfig(store.folder, store.url, "linucb-ind", 3, start_from=str(tmp_path / "log.csv"))
    monkeypatch.setattr(start, "BATCH_EVENTS", 200)
    finish = start._finish
    for method, owner in (("_commit", start.Importer), ("_finish", start)):
        original, calls = getattr(owner, method), []

        def fail(*arguments: Any, original: Any = original, calls: Any = calls) -> None:
            calls.append(0)
            if original is finish or len(calls) == 3:
                raise KeyboardInterrupt
            original(*arguments)

        monkeypatch.setattr(owner, method, fail)
        with pytest.raises(KeyboardInterrupt):
            Service(config)
        monkeypatch.setattr(owner, method, original)
        with pytest.raises(
            ValueError, match=r"the import of .*log.csv into this store did not finish: start the service"
        ):
            Service(ServiceConfig(store.folder, store.url, dim=3))
        with pytest.raises(ValueError, match="no event log"):
            audit(store.folder, store.url)
        with pytest.raises(ValueError, match="never started"):
            StoredLog(store.url or f"sqlite:///{store.folder}/log.db")
    with serving(store.folder, store=store.url, start_from=str(tmp_path / "log.csv")) as (_, service):
        assert service.policy.served.sum() == count
        assert len(list((store.folder / "snapshots").iterdir())) == 1
    assert check_log(store.folder, store.url)[:2] == (2 * count + 9, [])


def test_progress_has_the_remaining_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "".join(f"u{i % 9},{i % 2}\n" for i in range(200))
    (tmp_path / "log.csv").write_text("user,reward,arm\n" + rows.replace("\n", ",a\n"))
    monkeypatch.setattr(start, "BATCH_EVENTS", 0)  # 100 events per transaction, the minimum
    monkeypatch.setattr(start, "REPORT_INTERVAL", 0.0)
    ticks = iter(range(100))
    monkeypatch.setattr(start, "time", SimpleNamespace(monotonic=lambda: float(next(ticks))))
    with caplog.at_level(logging.INFO, "locb.service"):
        Service(
            ServiceConfig(tmp_path / "state", policy="linucb-ind", dim=3, start_from=str(tmp_path / "log.csv"))
        ).log.close()
    shown = [message for message in caplog.messages if " per second" in message]
    assert shown[1] == "learned 100 rewards of 200 (50%), 50 per second, about 2 s left"
    assert shown[-1].startswith("learned 200 rewards of 200 (100%)")
    assert "left" not in shown[-1]


def test_features_of_an_imported_log_have_names(tmp_path: Path) -> None:
    log, rng = tmp_path / "log.csv", np.random.default_rng(0)
    rows = [
        f"u{i % 5},{arm},{int(rng.random() < chance)}\n"
        for i in range(200)
        for arm, chance in (("lamp", 0.8), ("rug", 0.1))
    ]
    log.write_text("user,arm,reward\n" + "".join(rows))
    for _ in range(2):  # the second start only opens the store
        with serving(tmp_path / "state", policy="locb", dim=16, start_from=str(log)) as (client, _):
            indices = client.get("/v1/users/u1").json()["feature_indices"]
            assert set(indices) == {"arm=lamp", "arm=rug"}
            top = client.get("/v1/groups").json()["clusters"][0]["top_features"]
            assert top[0]["feature"] == "arm=lamp"


def test_arms_that_hashing_makes_equal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With --dim 16, the ids novel and puzzle have the same index and sign."""
    assert np.array_equal(locb.features({"arm": "novel"}, 16), locb.features({"arm": "puzzle"}, 16))
    log, items = tmp_path / "log.csv", ["dumbbell", "yoga-mat", "tea-set", "lamp", "novel", "puzzle", "mug", "rug"]
    log.write_text("user,arm,reward\n" + "".join(f"ann,{item},1\n" for item in items))
    pair = "2 of 8 arms have the same vector .* hashing into 16 numbers, for example 'novel' and 'puzzle'"
    with pytest.raises(ValueError, match=f"{pair}.*; use --dim 64, the smallest power of two .* collisions=allow"):
        Service(ServiceConfig(tmp_path / "state", dim=16, start_from=str(log)))
    with pytest.raises(ValueError, match="--start-option collisions must be 'allow', not 'no'"):
        Service(ServiceConfig(tmp_path / "state", dim=16, start_from=str(log), start_options={"collisions": "no"}))
    with serving(tmp_path / "state", dim=64, start_from=str(log)):  # the refused imports have written nothing
        assert "have the same vector" not in caplog.text
    allowed = {"start_from": str(log), "start_options": {"collisions": "allow"}}
    with serving(tmp_path / "allowed", dim=16, **allowed):
        assert "2 of 8 arms have the same vector" in caplog.text
    log.write_text("user,arm,reward\n" + "".join(f"ann,{item},1\n" for item in range(3000)))
    with pytest.raises(ValueError, match="no --dim N up to 1,024 separates all arms"):
        Service(ServiceConfig(tmp_path / "many", dim=16, start_from=str(log)))


def test_sources_that_are_refused(tmp_path: Path) -> None:
    def refused(message: str, source: Any, folder: str = "new", **options: Any) -> None:
        with pytest.raises(ValueError, match=message):
            Service(ServiceConfig(tmp_path / folder, **({"dim": 3} | options), start_from=str(source)))

    log = tmp_path / "log.csv"
    log.write_text('user,arms,chosen,reward\nann,"[[1,0],[0,1]]",0,1\n')
    with serving(tmp_path / "old") as (client, _):
        decide(client, "ann", "a", 1.0)
    refused("needs a new store, but the store has events and was not started from a log", log, "old")
    refused("has 2 features per arm, but --dim is 3: use --dim 2", log)
    refused("has 3 features per arm, but --dim is 2: use --dim 3", tmp_path / "old", dim=2)
    refused("--start-option cannot be used with the store", tmp_path / "old", start_options={"reward": "r"})
    refused("--start-option colour is not an option for reading a log", log, start_options={"colour": 1})
    log.write_text("user,arm,reward\nann,a,\n")
    refused("no row of the log has a reward", log)
    refused("--dim is required, because the arms of the log have only ids", log, dim=None)
    log.write_text("arm,reward\na,1\n")
    refused("the log names no users: name the column of the user", log)
    with pytest.raises(FileNotFoundError):
        Service(ServiceConfig(tmp_path / "new", dim=3, start_from="missing.csv"))
    with serving(tmp_path / "new"):  # nothing was written
        pass
