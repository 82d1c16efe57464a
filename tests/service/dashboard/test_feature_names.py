"""Feature names of a user refer to the entries of the hashed vector."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

import locb
from locb.service.dashboard import feature_names, views
from serving import arms, serving

DIM = 12
FILM = {"genre": "drama", "length": 1.5, "new": True}


def test_names_of_recent_requests(tmp_path: Path) -> None:
    with serving(tmp_path / "state", dim=DIM) as (client, _):
        for number, reward in enumerate((1.0, 0.5, 1.0)):
            request = {"user": "ann", "decision_id": f"d{number}", "arms": arms(FILM, {"genre": "crime"})}
            client.post("/v1/recommend", json=request).raise_for_status()
            client.post("/v1/reward", json={"decision_id": f"d{number}", "reward": reward}).raise_for_status()
        user = client.get("/v1/users/ann").json()
    theta, indices = np.array(user["theta"]), user["feature_indices"]
    assert set(indices) == {"genre=drama", "genre=crime", "length", "new=true"}
    for name, index in indices.items():
        key, _, value = name.partition("=")
        vector = locb.features({key: {"true": True}.get(value, value) or 1.0}, DIM)
        expected = (vector[1:] @ theta[1:]) / np.abs(vector[1:]).sum()
        np.testing.assert_allclose(np.sign(index) * theta[abs(index)], expected, atol=1e-12)


def test_many_names_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "BYTES_READ", 100)
    with serving(tmp_path / "state", dim=DIM) as (client, service):
        for number in range(10):
            request = {"user": "ann", "arms": arms({f"name {number}.{feature}": 1.0 for feature in range(40)})}
            client.post("/v1/recommend", json=request).raise_for_status()
        last = [len(request) + len(response) for request, response in service.log.recent_requests(10, 1 << 30)]
        assert len(last) == 10
        assert len(service.log.recent_requests(10, sum(last[:3]))) == 4
        assert len(service.log.recent_requests(10, sum(last[:3]) - 1)) == 3
        names = client.get("/v1/users/ann").json()["feature_indices"]
    assert set(names) == {f"name 9.{feature}" for feature in range(40)}


def test_names_are_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_names, "NAMES_READ", 50)
    requests = [
        (msgspec.msgpack.encode({"user": "ann", "arms": [{"id": "a", "features": {f"{number}.{k}": 1.0}}
                                                         for k in range(40)]}), b"")
        for number in range(3)
    ]  # fmt: skip
    names = feature_names.FeatureNames.read(requests, DIM).top_names(1000)
    assert set(names) == {f"0.{k}" for k in range(40)} | {f"1.{k}" for k in range(10)}
    features = dict.fromkeys(map(str, range(60)), 1.0)
    many = msgspec.msgpack.encode({"user": "ann", "arms": [{"id": "a", "features": features}]})
    assert len(feature_names.FeatureNames.read([(many, b"")], DIM).top_names(1000)) == 50


def test_array_features_have_no_names(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as (client, _):
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1.0, 0.0, 0.0])}).raise_for_status()
        assert client.get("/v1/users/ann").json()["feature_indices"] == {}
