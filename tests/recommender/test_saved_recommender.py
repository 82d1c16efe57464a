"""Saved recommenders continue exactly, and damaged files are rejected."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import locb

ARMS: dict[str, Any] = {"a": {"genre": "drama", "new": True}, "b": [0.5, 0.0, -1.0, 0.25], "ä": {}}


def trained(policy: str, **parameters: Any) -> locb.Recommender:
    recommender = locb.Recommender(policy, features=4, arms=ARMS, max_decisions=20, **parameters)
    for number in range(40):
        decision = recommender.recommend(f"user {number % 5}", decision_id=str(number))
        if number % 3:
            recommender.reward(decision.decision_id, float(decision.arm == "b"))
    return recommender


@pytest.mark.parametrize("policy", ["eloc", "locb", "club", "linucb-ind", "lints-ind"])
def test_loaded_recommender_continues(policy: str, tmp_path: Path) -> None:
    seeds = {"n_seeds": 7} if policy in ("eloc", "locb") else {}
    recommender = trained(policy, **seeds)
    recommender.save(tmp_path / "saved")
    loaded = locb.Recommender.load(tmp_path / "saved")
    assert repr(loaded) == repr(recommender)
    assert (loaded.users, loaded.arms, loaded.groups()) == (recommender.users, recommender.arms, recommender.groups())
    assert loaded.recommend("user 4", decision_id="39") == recommender.recommend("user 4", decision_id="39")
    for change in ("39", "38"):  # the first has no reward yet, the second has one
        errors = []
        for each in (recommender, loaded):
            try:
                each.reward(change, 0.25)
            except ValueError as error:
                errors.append(str(error))
        assert len(errors) == (0 if change == "39" else 2)
        assert len(set(errors)) <= 1
    for number in range(20):
        options = {"decision_id": f"new {number}", "count": None}
        found = [each.recommend(f"user {number}", **options) for each in (recommender, loaded)]
        assert found[0] == found[1]
        for each in (recommender, loaded):
            each.reward(f"new {number}", 0.5)
    for each, name in ((recommender, "x"), (loaded, "y")):
        each.save(tmp_path / name)
    contents = [zipfile.ZipFile(tmp_path / name) for name in "xy"]
    for entry in contents[0].namelist():
        if entry != "header.json":  # which contains the times of the decisions
            assert contents[0].read(entry) == contents[1].read(entry)


def test_without_users_and_decisions(tmp_path: Path) -> None:
    locb.Recommender("locb", features=3, gamma=0.3).save(tmp_path / "saved")
    loaded = locb.Recommender.load(tmp_path / "saved")
    assert repr(loaded) == "Recommender('locb', 0 users, 0 arms, 0 decisions)"
    assert loaded.recommend("ann", {"x": [1.0, 0.0, 0.0]}).arm == "x"


def change_header(path: Path, **fields: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(content["header.json"])
    header = {name: value for name, value in (header | fields).items() if value is not ...}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (content | {"header.json": json.dumps(header).encode()}).items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "locb policy"}, "is not a saved recommender: the format in its header is not 'locb recommender'"),
        ({"version": 2}, r"was saved by a newer locb \(format 2\); this version reads format 1: upgrade locb"),
        ({"policy_version": 1}, "has format 1 of saved policies"),
        ({"users": ["ann"]}, "is damaged"),
        ({"users": ...}, "is damaged: KeyError"),
        ({"decisions": [{}]}, "is damaged"),
        ({"decisions": 3}, "is damaged"),
        ({"model": {}}, "is damaged"),
        ({"arms": [["x", [1.0]]]}, "is damaged|features must be 4 numbers"),
        ({"policy": {"policy": "Nothing", "parameters": {}}}, "has a policy of the unknown class 'Nothing'"),
    ],
)
def test_invalid_files(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    trained("linucb-ind").save(tmp_path / "saved")
    change_header(tmp_path / "saved", **fields)
    with pytest.raises(ValueError, match=message):
        locb.Recommender.load(tmp_path / "saved")


def test_files_of_policies_are_not_recommenders(tmp_path: Path) -> None:
    locb.LinUCB(n_users=1, dim=2).save(tmp_path / "policy")
    trained("linucb-ind").save(tmp_path / "recommender")
    with pytest.raises(ValueError, match="is not a saved recommender"):
        locb.Recommender.load(tmp_path / "policy")
    with pytest.raises(ValueError, match="is not a saved policy"):
        locb.load(tmp_path / "recommender")
