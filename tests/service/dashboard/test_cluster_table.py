"""Table of clusters."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboard_data import DIM, GENRES, get, make_state, play, read_observations

from locb.common.feature_hashing import features
from locb.policies.base.user_batch import membership_probabilities
from locb.recommender.user_index import UserIndex
from locb.service.dashboard import certificate_cache, cluster_table, state_view
from serving import serving, wait_for


def test_rows(served: Any) -> None:
    client, service = served
    name_of, policy = service.engine.users.name_of, service.policy
    response = get(client, "/v1/groups")
    clusters = {name_of(cluster.seed): cluster for cluster in policy.clusters()}
    summary = policy.group_summary()
    progress = {name_of(int(seed)): share for seed, share in zip(summary.seeds, summary.progress, strict=True)}
    rows = response["clusters"]
    assert response["total"] == response["returned"] + response["forming"] == len(rows) == len(clusters) == 4
    observations = read_observations(service)
    for row in rows:
        cluster = clusters[row["seed"]]
        assert row["size"] == len(cluster)
        assert row["returned"] == (cluster.returned_at is not None)
        assert row["progress"] == progress[row["seed"]]
        assert row["certificate"] == policy.certificate(cluster)
        assert row["certificate_exact"]
        rewards = [observation.reward for observation in observations if observation.user_index in cluster]
        assert row["rewards"] == len(rewards)
        assert row["mean_reward"] == pytest.approx(np.mean(rewards))
    sizes = [row["size"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)


def test_top_features(served: Any) -> None:
    client, service = served
    clusters = {service.engine.users.name_of(cluster.seed): cluster for cluster in service.policy.clusters()}
    rows = get(client, "/v1/groups")["clusters"]
    for row in rows:
        theta = service.policy.theta[clusters[row["seed"]].members].mean(axis=0)
        for feature in row["top_features"]:
            key, _, value = feature["feature"].partition("=")
            vector = features({key: value or 1.0}, DIM)  # ±1/√2 at the index of the feature, and the intercept
            assert feature["weight"] == pytest.approx(float(vector[1:] @ theta[1:]) * np.sqrt(2.0))
        assert row["top_features"] == sorted(row["top_features"], key=lambda feature: -feature["weight"])
    names = {feature["feature"] for row in rows for feature in row["top_features"]}
    assert names
    assert names <= {*(f"kind={genre}" for genre in GENRES), "length"}


def test_overlap(served: Any) -> None:
    client, service = served
    clusters = {service.engine.users.name_of(cluster.seed): cluster for cluster in service.policy.clusters()}
    response = get(client, "/v1/groups")
    seeds, shares = response["overlap"]["seeds"], response["overlap"]["shares"]
    assert seeds == [row["seed"] for row in response["clusters"]] != []
    for i, first in enumerate(seeds):
        for j, second in enumerate(seeds):
            common = np.intersect1d(clusters[first].members, clusters[second].members).size
            assert shares[i][j] == pytest.approx(common / len(clusters[first]), abs=1e-4)


def test_certificates_are_cached(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = served

    def certificates() -> dict[str, float]:
        return {row["seed"]: row["certificate"] for row in get(client, "/v1/groups")["clusters"]}

    monkeypatch.setattr(certificate_cache, "MAX_AGE", 1000.0)
    first = certificates()
    play(client, 60, seed=77)
    assert certificates() == first
    monkeypatch.setattr(certificate_cache, "MAX_AGE", 0.0)
    later = certificates()
    assert len(first) > 0
    assert all(later[seed] != bound for seed, bound in first.items())
    monkeypatch.setattr(certificate_cache, "MAX_CERTIFIED", 1)
    large = [row for row in get(client, "/v1/groups")["clusters"] if row["size"] > 1]
    assert large
    assert all(row["certificate"] is None and not row["certificate_exact"] for row in large)


def test_probabilities_of_eloc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"n_seeds": 6}
    with serving(tmp_path, policy="eloc", dim=DIM, parameters=parameters) as (client, service):
        wait_for(lambda: get(client, "/v1/status")["sure_users"] == 0)
        for seed in range(12):
            play(client, 60, seed=seed)
        policy, users = service.policy, service.engine.users
        summary, batch = policy.group_summary(), policy.user_batch(users.assigned())
        probabilities = membership_probabilities(summary, batch)
        clusters, seeds = policy.clusters(), summary.seeds.tolist()
        # Position in the summary of each cluster; the last is that of all users. Inactive seeds have no cluster.
        columns = [len(seeds) - 1 if cluster.seed is None else seeds.index(cluster.seed) for cluster in clusters]
        monkeypatch.setattr(state_view, "SURE", float(np.median(probabilities[:, :-1].max(axis=1))))
        sure = probabilities >= state_view.SURE
        sure[:, -1] = False  # the cluster of all users
        assert sure.any(axis=1).sum() > 0
        # The status does not wait for a state that takes long to capture.
        wait_for(lambda: get(client, "/v1/status")["sure_users"] == sure.any(axis=1).sum())
        names = [None if cluster.seed is None else users.name_of(cluster.seed) for cluster in clusters]
        shares = [
            None if cluster.seed is None else sure[cluster.members, k].mean()
            for k, cluster in zip(columns, clusters, strict=True)
        ]
        same_as = summary.same_as[columns].tolist()
        originals = [None if k == of else users.name_of(seeds[of]) for k, of in zip(columns, same_as, strict=True)]
        listed = get(client, "/v1/clusters")["clusters"]
        assert [(row["seed"], row["sure_share"], row["same_as"]) for row in listed] == [
            *zip(names, shares, originals, strict=True)
        ]
        rows = get(client, "/v1/groups", sort="sure")["clusters"]
        assert [row["sure_share"] or 0.0 for row in rows] == sorted((share or 0.0 for share in shares), reverse=True)
        assert {row["seed"]: row["same_as"] for row in rows} == dict(zip(names, originals, strict=True))
        for name, k, cluster in zip(names, columns, clusters, strict=True):
            if name is not None:
                detail = get(client, f"/v1/clusters/{name}")
                assert detail["members"] == [users.name_of(user) for user in cluster.members.tolist()]
                assert detail["probabilities"] == pytest.approx(probabilities[cluster.members, k])
        for user in users.assigned().tolist():
            detail = get(client, f"/v1/users/{users.name_of(user)}")
            inside = [k for k, cluster in enumerate(clusters) if user in cluster]
            assert [(row["seed"], row["same_as"]) for row in detail["clusters"]] == [
                (names[k], originals[k]) for k in inside
            ]
            expected = [probabilities[user, columns[k]] for k in inside]
            assert [row["probability"] for row in detail["clusters"]] == pytest.approx(expected)
            assert detail["no_cluster_probability"] == pytest.approx(1.0 - batch.weights[user].sum())


def test_duplicates_count_as_one_cluster(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, service = served
    before = get(client, "/v1/status")["clusters"]
    summary = type(service.policy).group_summary_steps

    def with_duplicates(policy: Any) -> Any:
        found = yield from summary(policy)
        return found._replace(same_as=np.array([0, 0, *range(2, len(found.names))]))

    monkeypatch.setattr(type(service.policy), "group_summary_steps", with_duplicates)
    wait_for(lambda: sum(get(client, "/v1/status")["clusters"].values()) == sum(before.values()) - 1)
    wait_for(lambda: get(client, "/v1/groups")["returned"] + get(client, "/v1/groups")["forming"] == 3)
    assert len(get(client, "/v1/groups")["clusters"]) == 4


def test_policy_without_probabilities(served: Any) -> None:
    client, _ = served
    assert get(client, "/v1/status")["sure_users"] is None
    rows = get(client, "/v1/groups")["clusters"] + get(client, "/v1/clusters")["clusters"]
    assert {(row["sure_share"], row["same_as"]) for row in rows} == {(None, None)}
    assert get(client, f"/v1/clusters/{rows[0]['seed']}")["probabilities"] is None
    user = get(client, "/v1/users/u3")
    assert user["no_cluster_probability"] is None
    assert {(row["probability"], row["same_as"]) for row in user["clusters"]} == {(None, None)}


def test_order_page_and_search(served: Any) -> None:
    client, _ = served
    table = get(client, "/v1/groups", sort="seed")
    names = [row["seed"] for row in table["clusters"]]
    assert names == sorted(names)
    page = get(client, "/v1/groups", sort="seed", limit=2, offset=1)
    assert page["clusters"] == table["clusters"][1:3]
    assert (page["total"], len(page["overlap"]["seeds"])) == (4, 2)
    found = get(client, "/v1/groups", search=names[0].upper())
    assert {row["seed"] for row in found["clusters"]} == {name for name in names if names[0] in name}
    assert found["total"] < found["returned"] + found["forming"] == 4
    assert get(client, "/v1/groups", search="unknown")["clusters"] == []


@pytest.mark.parametrize(
    ("sort", "order"), [("size", "bacd"), ("reward", "dbac"), ("progress", "cdab"), ("sure", "dcab"), ("seed", "abcd")]
)
def test_each_order(sort: str, order: str) -> None:
    # The users 3, 2, 1 and 0 represent the groups "d", "b", "a" and "c". Equal values are ordered by size.
    state = replace(
        make_state(8, [1, 2, 3], [0, 1, 2, 5], [3, 4], [6]),
        representatives=np.array([1, 2, 0, 3]),
        progress=np.array([0.5, np.nan, 0.9, 0.75]),
        sure_members=np.array([1, 0, 1, 1]),
        reward_totals=np.array([[4, 1.0], [4, 2.0], [0, 0.0], [4, 3.0]]),
    )
    users = UserIndex(8, [(0, "c"), (1, "a"), (2, "b"), (3, "d")])
    for number in range(4, 8):
        users.assign(f"user {number}")
    selection = cluster_table._select(state, users, cluster_table.TableQuery(sort, 10, 0, ""))
    assert "".join(selection.names[k] or "" for k in selection.clusters) == order


@pytest.mark.parametrize(
    "query", [{"sort": "age"}, {"limit": 201}, {"limit": -1}, {"offset": "x"}, {"search": "x" * 257}]
)
def test_invalid_parameters_of_the_table(served: Any, query: dict[str, Any]) -> None:
    client, _ = served
    response = client.get("/v1/groups", params=query)
    assert (response.status_code, response.json()["fields"]) == (422, list(query))
