"""Routes of users and clusters."""

from pathlib import Path

import numpy as np

from serving import arms, in_path, play, serving

ODD = ["a/b", "%2F", "ä ö", "similar", "..", "x" * 256, "\N{PILE OF POO}", "nul\0byte"]


def test_user_ids_are_arbitrary_strings(tmp_path: Path) -> None:
    with serving(tmp_path) as (client, _):
        for user in ODD:
            client.post("/v1/recommend", json={"user": user, "arms": arms([1, 0, 0])})
            response = client.get(f"/v1/users/{in_path(user)}")
            assert response.status_code == 200, user
            assert response.json()["user"] == user
            assert client.get(f"/v1/users/{in_path(user)}/similar").json()["user"] == user
    with serving(tmp_path) as (client, _):
        for user in ODD:
            assert client.get(f"/v1/users/{in_path(user)}").json()["user"] == user
            assert client.delete(f"/v1/users/{in_path(user)}").json()["erased_decisions"] == 1


def test_users_and_clusters_are_those_of_the_policy(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    users = [f"u{i}" for i in range(8)]
    with serving(tmp_path, policy="locb", parameters={"n_seeds": 3, "gamma": 0.5}) as (client, service):
        play(client, rng, users, 120)
        user = client.get("/v1/users/u3").json()
        index = service.require_index("u3")
        assert user["theta"] == service.policy.theta[index].tolist()
        assert user["served"] == service.policy.served[index]
        assert user["radius"] == service.policy.radii[index]
        similar = client.get("/v1/users/u3/similar?limit=3").json()["similar"]
        expected = service.policy.similar_users(index, 3)
        assert [service.require_index(other["user"]) for other in similar] == [other.user for other in expected]
        assert len({other["user"] for other in similar} - {"u3"}) == 3
        summaries = client.get("/v1/clusters").json()["clusters"]
        assert len(summaries) == 3
        for summary, cluster in zip(summaries, service.policy.clusters(), strict=True):
            assert summary["size"] == len(cluster)
            detail = client.get(f"/v1/clusters/{summary['seed']}").json()
            assert {service.require_index(user) for user in detail["members"]} == set(cluster.members.tolist())
            assert detail["certificate"] == service.policy.certificate(cluster)
            assert detail["certificate_exact"]
        assert client.get("/v1/clusters/unknown").json()["type"] == "urn:locb:problem:unknown-user"
        no_seed = next(name for name in users if name not in {summary["seed"] for summary in summaries})
        assert client.get(f"/v1/clusters/{no_seed}").json()["type"] == "urn:locb:problem:unknown-cluster"
        refused = client.get("/v1/users/u3/similar?limit=-1")
        assert (refused.status_code, refused.json()["fields"]) == (422, ["limit"])


def test_all_routes_ignore_unassigned_indices(tmp_path: Path) -> None:
    with serving(tmp_path, policy="locb") as (client, _):
        for user in ("ann", "cat", "dog"):
            decision = client.post("/v1/recommend", json={"user": user, "arms": arms([1, 0, 0])}).json()
            client.post("/v1/reward", json={"decision_id": decision["decision_id"], "reward": 1.0})
        for user in ("cat", "dog"):
            assert client.delete(f"/v1/users/{user}").status_code == 200
        for remaining in (["ann"], ["ann", "eve"]):
            decision = client.post("/v1/recommend", json={"user": remaining[-1], "arms": arms([1, 0, 0])}).json()
            assert client.get("/v1/health").json()["users"] == len(remaining)
            expected = [{"seed": user, "size": len(remaining), "returned": False} for user in remaining]
            assert decision["clusters"] == expected
            listed = [cluster | {"sure_share": None, "same_as": None} for cluster in expected]
            assert client.get("/v1/clusters").json()["clusters"] == listed
            of_user = [cluster | {"probability": None, "same_as": None} for cluster in expected]
            assert client.get("/v1/users/ann").json()["clusters"] == of_user
            assert decision["explanation"]["sources"][0]["users"] == len(remaining)
            assert client.get("/v1/clusters/ann").json()["members"] == remaining
            assert client.get("/v1/clusters/ann").json()["size"] == len(remaining)
