"""Logs in published formats: Vowpal Wabbit dsjson, the Open Bandit Dataset, and Yahoo R6A."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from datasets import files

# An event of the documentation of Vowpal Wabbit, shortened.
EVENT: dict[str, Any] = {
    "_label_cost": -1.0,
    "_label_probability": 0.8166667,
    "_label_Action": 2,
    "_labelIndex": 1,
    "Timestamp": "2017-08-30T12:06:57.4960000Z",
    "Version": "1",
    "EventId": "fikexgr3ce",
    "a": [2, 1, 3],
    "c": {
        "GUser": {"id": "rnc", "major": "engineering"},
        "_multi": [
            {"TAction": {"topic": "SkiConditions-VT"}},
            {"TAction": {"topic": "HerbGarden"}},
            {"TAction": {"topic": "BeyBlades"}},
        ],
    },
    "p": [0.8166667, 0.03333334, 0.15],
    "VWState": {"m": "N/A"},
}


def write_events(path: Path, *events: Any) -> Path:
    path.write_text("".join((event if isinstance(event, str) else json.dumps(event)) + "\n" for event in events))
    return path


def test_dsjson(tmp_path: Path) -> None:
    other = EVENT | {"c": EVENT["c"] | {"GUser": {"id": "eve"}}, "a": [3, 1, 2], "p": [0.15, 0.8, 0.05]}
    late = EVENT | {"_label_cost": 0.25, "Timestamp": "2017-08-29T12:06:57Z"}
    log = locb.Log.read(write_events(tmp_path / "log.json", EVENT, other, late))
    assert log.columns is not None
    assert log.columns["user"] == "GUser.id"
    assert [log.user_ids[user] for user in log.users] == ["rnc", "rnc", "eve"]
    assert log.chosen.tolist() == [1, 1, 2]
    assert log.rewards.tolist() == [-0.25, 1.0, 1.0]
    assert log.propensities.tolist() == [0.8166667, 0.8166667, 0.15]
    assert len(log.features) == 3
    assert log.contexts(0)[1].tolist() == locb.features({"TAction.topic": "HerbGarden"}, 16).tolist()
    assert log.n_arms.tolist() == [3, 3, 3]


def test_dsjson_with_bad_lines(tmp_path: Path) -> None:
    events = [
        EVENT,
        "{broken",
        EVENT | {"a": [4], "p": [0.5]},
        EVENT | {"p": [0.0, 0.5, 0.5]},
        EVENT | {"c": {"GUser": {"id": "x"}}},
        EVENT | {"c": {"_multi": EVENT["c"]["_multi"]}},
    ]
    with pytest.warns(locb.LogWarning) as caught:
        log = locb.Log.read(write_events(tmp_path / "log.dsjson", *events))
    assert len(log) == 1
    assert sum(rows.count for rows in log.skipped) == 5
    text = "\n".join(str(warning.message) for warning in caught)
    for line, reason in ((2, "not a dsjson event"), (3, "not among the actions"), (4, "from 1e-09"), (6, "GUser.id")):
        assert reason in text
        assert f"line {line}" in text


def test_dsjson_ids_and_users_from_shared_features(tmp_path: Path) -> None:
    contexts = [
        {"device": "phone", "_multi": [{"_tag": "a", "price": 1}, {"_tag": "b", "price": 2}]},
        {"device": "desktop", "_multi": [{"_tag": "b", "price": 2}]},
    ]
    events = [EVENT | {"c": context, "a": [1], "p": [0.5]} for context in contexts]
    log = locb.Log.read(write_events(tmp_path / "log.jsonl", *events))
    assert list(log.user_ids) == ['{"device":"desktop"}', '{"device":"phone"}']
    assert log.arm_ids == ["a", "b"]
    assert len(log.features) == 2
    assert len(locb.Log.read(tmp_path / "log.jsonl", user="device", dim=4).features[0]) == 4


HEADER = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user-item_affinity_0"


def write_open_bandit(folder: Path) -> Path:
    folder.mkdir()
    rows = [f"{n},2019-11-24 00:00:{n:02d}.5+00:00,{n % 3},{1 + n % 2},{n % 2},0.25,u{n % 2},v,0.0" for n in range(8)]
    (folder / "all.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    items = ["0,0,-0.5,a,b", "1,1,0.5,a,c", "2,2,0.1,d,b", "3,3,0.2,d,b"]
    (folder / "item_context.csv").write_text(
        "\n".join([",item_id,item_feature_0,item_feature_1,item_feature_2", *items])
    )
    return folder


def test_open_bandit(tmp_path: Path) -> None:
    folder = write_open_bandit(tmp_path / "obd")
    log = locb.Log.read(folder)
    assert len(log) == 8
    assert list(log.user_ids) == ["u0/v", "u1/v"]
    assert log.arm_ids == ["0", "1", "2", "3"]
    assert log.dim == 6  # one number, four labels, and a constant
    assert log.rewards.tolist() == [0, 1] * 4
    assert (log.propensities == 0.25).all()
    assert log.is_uniform
    assert any("rows of all three positions are used" in note for note in log.notes)
    second = locb.Log.read(folder / "all.csv", position=2)
    assert second.rewards.tolist() == [1] * 4
    (folder / "item_context.csv").unlink()
    assert locb.Log.read(folder).dim == 3
    text = (folder / "all.csv").read_text()
    (folder / "all.csv").write_text(text.replace(",0.25,", ",25,"), encoding="utf-8")
    with pytest.raises(ValueError, match="the log has no usable row"):
        locb.Log.read(folder)
    (folder / "all.csv").write_text(text.replace(",0.25,", ",25,", 6), encoding="utf-8")
    with pytest.raises(ValueError, match="6 of 8 rows cannot be used, which is more than half"):
        locb.Log.read(folder)
    with pytest.warns(locb.LogWarning):
        assert len(locb.Log.read(folder, allow_skipped=True)) == 2


def test_yahoo(tmp_path: Path) -> None:
    folder = files.yahoo(tmp_path / "R6A")
    lines = files.yahoo_lines()
    log = locb.Log.read(folder, n_clusters=6)
    assert len(log) == len(lines)
    assert log.n_users == 6
    assert log.rewards.sum() == sum(line.split()[2] == "1" for line in lines)
    order = np.argsort([int(line.split()[0]) for line in lines], kind="stable")
    shown = [lines[index].split()[1] for index in order]
    assert [log.arm_ids[arm] for arm in log.arms_of(log.chosen)] == shown
    assert log.n_arms.tolist() == [lines[index].count("|") - 1 for index in order]
    assert log.is_uniform
