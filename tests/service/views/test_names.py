"""What is told of a user by the names of features is what the hashed vector means."""

from pathlib import Path

import numpy as np

import locb
from serving import arms, serving

DIM = 12
FILM = {"genre": "drama", "length": 1.5, "new": True}


def test_a_user_is_told_by_the_names_that_requests_gave(tmp_path: Path) -> None:
    with serving(tmp_path / "state", dim=DIM) as (client, _):
        for number, reward in enumerate((1.0, 0.5, 1.0)):
            asked = {"user": "ann", "decision_id": f"d{number}", "arms": arms(FILM, {"genre": "crime"})}
            client.post("/v1/recommend", json=asked).raise_for_status()
            client.post("/v1/reward", json={"decision_id": f"d{number}", "reward": reward}).raise_for_status()
        told = client.get("/v1/users/ann").json()
    theta, names = np.array(told["theta"]), told["feature_indices"]
    assert set(names) == {"genre=drama", "genre=crime", "length", "new=true"}
    for name, place in names.items():
        key, _, value = name.partition("=")
        vector = locb.features({key: {"true": True}.get(value, value) or 1.0}, DIM)
        by_hand = (vector[1:] @ theta[1:]) / np.abs(vector[1:]).sum()
        np.testing.assert_allclose(np.sign(place) * theta[abs(place)], by_hand, atol=1e-12)


def test_features_by_number_have_no_names(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as (client, _):
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1.0, 0.0, 0.0])}).raise_for_status()
        assert client.get("/v1/users/ann").json()["feature_indices"] == {}
