"""Feature names of a user refer to the entries of the hashed vector."""

from pathlib import Path

import numpy as np

import locb
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


def test_array_features_have_no_names(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as (client, _):
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1.0, 0.0, 0.0])}).raise_for_status()
        assert client.get("/v1/users/ann").json()["feature_indices"] == {}
