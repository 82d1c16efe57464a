"""What a page asks for, against what the service itself knows."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from locb.common.feature_hashing import features
from locb.service.core.service import Service
from locb.service.dashboard import certificate_cache, views
from serving import arms, is_safe, serving, state, wait_for

DIM = 6
LOCB = {"policy": "locb", "dim": DIM, "parameters": {"n_seeds": 4, "gamma": 0.8}}
KINDS = ["drama", "crime", "comedy"]
CHANGING = (
    "time",
    "started_at",
    "store",
    "snapshot",
    "projection",
    "total",
    "decisions_per_second",
    "rewards_per_second",
)
TTLS = ("STATUS_TTL", "HISTORY_TTL", "STATE_TTL", "FEATURE_NAMES_TTL", "STORE_SIZE_TTL", "TTL_PER_SECOND")
PATHS = ("/v1/status", "/v1/history", "/v1/map", "/v1/groups")


def play(client: Any, rounds: int, users: int = 12, seed: int = 0) -> list[dict[str, Any]]:
    """Decisions with features by name, some of them rewarded: half of the users like drama, half crime."""
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(rounds):
        lengths = rng.random(len(KINDS)).round(2).tolist()
        listed = [{"id": k, "features": {"kind": k, "length": x}} for k, x in zip(KINDS, lengths, strict=True)]
        asked.append({"user": f"u{rng.integers(users)}", "arms": listed})
    told = client.post("/v1/recommend:batch", json={"requests": asked}).json()["results"]
    made = [{**one["decision"], "user": request["user"]} for one, request in zip(told, asked, strict=True)]
    rewards = [
        {"decision_id": one["decision_id"], "reward": float(one["arm"] == KINDS[int(one["user"][1:]) % 2])}
        for one in made
        if rng.random() < 0.9
    ]
    client.post("/v1/reward:batch", json={"rewards": rewards})
    return made


@pytest.fixture(scope="module", autouse=True)
def fresh() -> Iterator[None]:
    """Nothing is kept, but for tests that are about that."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(certificate_cache, "MAX_AGE", 0.0)
        for name in TTLS:
            patched.setattr(views, name, 0.0)
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, fresh: None) -> Iterator[tuple[Any, Service]]:
    """One for all tests that look; those in which somebody is erased have their own."""
    with serving(tmp_path_factory.mktemp("state"), **LOCB) as (client, service):
        for seed in range(8):
            play(client, 60, seed=seed)
        yield client, service


def count(service: Service) -> int:
    """How many decisions there are."""
    return sum(len(chunk) for chunk in service.log.decisions())


def get(client: Any, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    is_safe(answer)
    return answer.json()


def test_now(served: Any) -> None:
    client, service = served
    observations = [row for chunk in service.log.observations(0) for row in chunk]
    now = get(client, "/v1/status")
    assert (now["users"], now["rewarded_users"]) == (12, len({row.user_index for row in observations}))
    assert (now["decisions"], now["rewards"]) == (made := count(service), len(observations))
    assert now["pending_rewards"] == made - len(observations) > 0
    assert now["policy"] == "locb"
    assert now["version"] == locb.__version__
    assert now["started_at"] < now["time"] <= time.time()
    assert 0 < now["rewards_per_second"] < now["decisions_per_second"] <= made
    assert 0.9 < now["cluster_based_share"] <= 1.0
    sets = service.policy.clusters()
    returned = sum(one.returned_at is not None for one in sets)
    assert now["clusters"] == {"returned": returned, "forming": 4 - returned}
    assert now["store"]["kind"] == "sqlite"
    assert now["store"]["position"] == service.engine.seq
    assert now["store"]["bytes"] >= 1000 * made
    assert now["store"]["error"] is now["detail"] is now["snapshot"] is None
    assert not now["backfilling"]
    assert not now["rebuilding"]
    service._snapshot()
    service.snapshots.wait()
    play(client, 1)
    snapshot = get(client, "/v1/status")["snapshot"]
    assert snapshot["events_since"] == service.engine.seq - snapshot["position"] > 0
    assert abs(snapshot["time"] - time.time()) < 60


def test_history(served: Any) -> None:
    client, service = served
    rewards = np.array([row.reward for chunk in service.log.observations(0) for row in chunk])
    for span, step in (("hour", 10), ("day", 300), ("month", 10_800), ("all", 86_400)):
        told = get(client, "/v1/history", span=span)
        assert (told["span"], told["step_seconds"]) == (span, step)
        assert sum(point["decisions"] for point in told["points"]) == count(service)
        assert sum(point["rewards"] for point in told["points"]) == len(rewards) == told["total"]["rewards"]
        assert all(point["time"] % step == 0 for point in told["points"])
        assert all(0 <= point["cluster_based"] <= point["decisions"] for point in told["points"])
        assert told["total"]["mean"] == pytest.approx(rewards.mean())
        assert told["total"]["low"] < rewards.mean() < told["total"]["high"]
        assert told["total"]["from"] <= told["points"][0]["time"]
        assert told["baseline"] is told["change"] is None
    told = get(client, "/v1/history", baseline_from=10, baseline_to=1e10)
    assert told["baseline"]["rewards"] == len(rewards)
    assert told["change"] is None  # the baseline is all there is
    told = get(client, "/v1/history", baseline_from=10, baseline_to=20)
    assert (told["baseline"]["rewards"], told["baseline"]["mean"]) == (0, None)
    for query in ({"span": "year"}, {"baseline_from": 5}, {"baseline_from": 5, "baseline_to": 5}, {"baseline_to": "x"}):
        assert client.get("/v1/history", params=query).status_code == 422, query


def test_the_map_stays_as_it_is(served: Any) -> None:
    client, service = served
    first = get(client, "/v1/map")
    assert (first["users"], first["shown"], first["description"]) == (12, 12, "All 12 users")
    points = first["points"]
    assert {len(column) for column in points.values()} == {12}
    assert sorted(points["user"]) == sorted(f"u{i}" for i in range(12))
    for user, x, y, served_so_often, group, sets in zip(*points.values(), strict=True):
        place = service.require_index(user)
        assert served_so_often == service.policy.served[place]
        assert sets == len(service.policy.memberships(place))
        seeds = {one.seed for one in service.policy.memberships(place)}
        listed = [service.require_index(one["seed"]) for one in first["clusters"]]
        sizes = [one["size"] for one in first["clusters"]]
        if group >= 0:
            assert listed[group] in seeds
            assert sizes[group] == min(size for size, seed in zip(sizes, listed, strict=True) if seed in seeds)
        else:
            assert group == (-2 if seeds else -1)
            assert not seeds & set(listed)
        assert abs(x) + abs(y) < 3.0
    again = get(client, "/v1/map", projection=first["projection"])
    assert again == first
    play(client, 60, seed=99)
    later = get(client, "/v1/map", projection=first["projection"])
    assert later["projection"] == first["projection"] == get(client, "/v1/map")["projection"]
    moved = np.array([later["points"]["x"], later["points"]["y"]]) - [points["x"], points["y"]]
    assert 0 < np.abs(moved).max() < 0.5
    other = get(client, "/v1/map", projection="new")
    assert other["projection"] != first["projection"]
    assert get(client, "/v1/map", projection=first["projection"])["projection"] == first["projection"]
    assert get(client, "/v1/map", projection="not known")["projection"] == other["projection"]
    assert 0.3 < other["explained_variance"] <= 1.0


def test_the_plane_is_that_of_most_variance(served: Any) -> None:
    client, service = served
    told = get(client, "/v1/map", projection="new")
    theta = service.policy.theta[[service.require_index(user) for user in told["points"]["user"]]]
    values = np.linalg.svd(theta - theta.mean(axis=0), compute_uv=False) ** 2
    assert told["explained_variance"] == pytest.approx(values[:2].sum() / values.sum())
    plane = np.array([told["points"]["x"], told["points"]["y"]])
    assert np.linalg.norm(plane - plane.mean(axis=1, keepdims=True)) ** 2 == pytest.approx(values[:2].sum(), rel=1e-3)


def test_groups(served: Any) -> None:
    client, service = served
    name, policy = service.engine.users.name_of, service.policy
    told = get(client, "/v1/groups")
    sets = {name(one.seed): one for one in policy.clusters()}
    progress = {
        name(int(seed)): share
        for seed, share in zip(policy.group_summary().seeds, policy.group_summary().progress, strict=True)
    }
    assert told["total"] == told["returned"] + told["forming"] == len(told["clusters"]) == len(sets) == 4
    observations = [row for chunk in service.log.observations(0) for row in chunk]
    for row in told["clusters"]:
        one = sets[row["seed"]]
        assert row["size"] == len(one)
        assert row["returned"] == (one.returned_at is not None)
        assert row["progress"] == progress[row["seed"]]
        assert row["certificate"] == policy.certificate(one)
        assert row["certificate_exact"]
        rewards = [observation.reward for observation in observations if observation.user_index in one]
        assert row["rewards"] == len(rewards)
        assert row["mean_reward"] == pytest.approx(np.mean(rewards))
        theta = policy.theta[one.members].mean(axis=0)
        for like in row["top_features"]:
            key, _, value = like["feature"].partition("=")
            alone = features({key: value or 1.0}, DIM)  # ±1/√2 in the place of the feature, and the constant
            assert like["weight"] == pytest.approx(float(alone[1:] @ theta[1:]) * np.sqrt(2.0))
        assert row["top_features"] == sorted(row["top_features"], key=lambda like: -like["weight"])
    assert {like["feature"] for row in told["clusters"] for like in row["top_features"]} <= {
        *(f"kind={k}" for k in KINDS),
        "length",
    }
    assert any(row["top_features"] for row in told["clusters"])
    sizes = [row["size"] for row in told["clusters"]]
    assert sizes == sorted(sizes, reverse=True)
    seeds, shares = told["overlap"]["seeds"], told["overlap"]["shares"]
    assert seeds == [row["seed"] for row in told["clusters"]]
    for i, one in enumerate(seeds):
        for j, other in enumerate(seeds):
            common = np.intersect1d(sets[one].members, sets[other].members).size
            assert shares[i][j] == pytest.approx(common / len(sets[one]), abs=1e-4)


def test_certificates_take_their_time(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = served
    monkeypatch.setattr(certificate_cache, "MAX_AGE", 1000.0)
    first = {row["seed"]: row["certificate"] for row in get(client, "/v1/groups")["clusters"]}
    play(client, 60, seed=77)
    assert {row["seed"]: row["certificate"] for row in get(client, "/v1/groups")["clusters"]} == first
    monkeypatch.setattr(certificate_cache, "MAX_AGE", 0.0)
    later = {row["seed"]: row["certificate"] for row in get(client, "/v1/groups")["clusters"]}
    assert all(later[seed] != width for seed, width in first.items())
    monkeypatch.setattr(certificate_cache, "MAX_CERTIFIED", 1)
    large = [row for row in get(client, "/v1/groups")["clusters"] if row["size"] > 1]
    assert large
    assert all(row["certificate"] is None and not row["certificate_exact"] for row in large)


def test_parts_of_the_table_of_groups(served: Any) -> None:
    client, _ = served
    whole = get(client, "/v1/groups", sort="seed")
    names = [row["seed"] for row in whole["clusters"]]
    assert names == sorted(names)
    part = get(client, "/v1/groups", sort="seed", limit=2, offset=1)
    assert part["clusters"] == whole["clusters"][1:3]
    assert (part["total"], len(part["overlap"]["seeds"])) == (4, 2)
    found = get(client, "/v1/groups", search=names[0].upper())
    assert {row["seed"] for row in found["clusters"]} == {name for name in names if names[0] in name}
    assert found["total"] < found["returned"] + found["forming"] == 4
    assert get(client, "/v1/groups", search="nobody")["clusters"] == []
    rewards = [row["mean_reward"] for row in get(client, "/v1/groups", sort="reward")["clusters"]]
    assert rewards == sorted(rewards, reverse=True)
    steps = [row["progress"] for row in get(client, "/v1/groups", sort="progress")["clusters"]]
    assert steps == sorted(steps, reverse=True)
    for query in ({"sort": "age"}, {"limit": 201}, {"limit": -1}, {"offset": "x"}, {"search": "x" * 257}):
        assert client.get("/v1/groups", params=query).status_code == 422, query


def test_a_user(served: Any) -> None:
    client, service = served
    place = service.require_index("u3")
    told = get(client, "/v1/users/u3")
    rewards = [row.reward for chunk in service.log.observations(0) for row in chunk if row.user_index == place]
    assert (told["rewards"], told["mean_reward"]) == (len(rewards), pytest.approx(np.mean(rewards)))
    contexts = np.array(
        [
            np.frombuffer(row.context)
            for chunk in service.log.observations(0)
            for row in chunk
            if row.user_index == place
        ]
    )
    reach = 1.96 * 0.5 * np.sqrt(np.diag(np.linalg.inv(np.eye(DIM) + contexts.T @ contexts)))
    expected = np.stack([told["theta"] - reach, told["theta"] + reach], axis=1)
    np.testing.assert_allclose(told["intervals"], expected, atol=1e-4)


def test_the_decisions_of_a_user(tmp_path: Path) -> None:
    with serving(tmp_path, **LOCB, default_reward=0.25, reward_wait=0.02) as (client, service):
        asked = {"user": "ann", "arms": [{"id": k, "features": {"kind": k}} for k in KINDS], "exclude": ["drama"]}
        made = [client.post("/v1/recommend", json=asked | {"decision_id": f"d{i}"}).json() for i in range(3)]
        wait_for(lambda: service.event_stats.rewards == 3 or get(client, "/v1/status")["rewards"] == 3)
        client.post("/v1/reward", json={"decision_id": "d1", "reward": 0.75})
        service.engine.reward_wait = 1000.0
        made.append(client.post("/v1/recommend", json=asked | {"decision_id": "d3"}).json())
        made.append(client.post("/v1/recommend", json=asked | {"decision_id": "d4"}).json())
        client.post("/v1/reward", json={"decision_id": "d4", "reward": 1.0})
        told = get(client, "/v1/users/ann/decisions")
        assert told["user"] == "ann"
        found = [(one["decision_id"], one["reward_status"], one["reward"]) for one in told["decisions"]]
        assert found == [
            ("d4", "received", 1.0),
            ("d3", "pending", None),
            ("d2", "default", 0.25),
            ("d1", "corrected", 0.75),
            ("d0", "default", 0.25),
        ]
        assert [one["response"] for one in told["decisions"]] == made[::-1]
        for one in told["decisions"]:
            assert one["arm"] == one["response"]["arm"] != "drama"
            assert one["features"] == {"kind": one["arm"]}
            assert abs(one["time"] - time.time()) < 60
        assert len(get(client, "/v1/users/ann/decisions", limit=2)["decisions"]) == 2
        assert client.get("/v1/users/nobody/decisions").status_code == 404
        assert client.get("/v1/users/ann/decisions?limit=101").status_code == 422
        user = get(client, "/v1/users/ann")
        assert (user["rewards"], user["mean_reward"]) == (4, pytest.approx((0.25 + 0.75 + 0.25 + 1.0) / 4))
        history = get(client, "/v1/history")
        assert history["total"]["mean"] == pytest.approx((0.25 + 0.75 + 0.25 + 1.0) / 4)


def test_a_preview_decides_nothing(served: Any) -> None:
    client, service = served
    asked = {"user": "u3", "arms": [{"id": k, "features": {"kind": k}} for k in KINDS], "count": 2}
    before = state(service)
    told = client.post("/v1/preview", json=asked).json()
    assert client.post("/v1/preview", json=asked).json() == told
    assert state(service) == before
    decided = client.post("/v1/recommend", json=asked).json()
    decided.pop("decision_id")
    assert told == decided
    assert client.post("/v1/preview", json=asked | {"user": "nobody"}).status_code == 404
    assert client.post("/v1/preview", json=asked | {"decision_id": "d"}).status_code == 422
    assert client.post("/v1/preview", json=asked | {"arms": []}).status_code == 422


def test_users_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (name for name in TTLS if name not in ("STATE_TTL", "TTL_PER_SECOND")):
        monkeypatch.setattr(views, name, 600.0)
    with serving(tmp_path, **LOCB) as (client, service):
        for seed in range(4):
            play(client, 60, seed=seed)
        with monkeypatch.context() as patched:
            patched.setattr(certificate_cache, "MISSING_SECONDS", -1.0)
            assert [row["certificate"] for row in get(client, "/v1/groups")["clusters"]] == [None] * 4
        some_are_shown(client, monkeypatch)
        nothing_names_who_is_erased(client, service)


def some_are_shown(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("locb.service.dashboard.state_view.MAX_SAMPLE", 5)
        told = get(client, "/v1/map")
        assert (told["users"], told["shown"]) == (12, 5)
        assert told["description"] == "Random sample of 5 of 12 users"
        play(client, 60, users=14, seed=5)
        later = get(client, "/v1/map")
        assert later["users"] == 14
        assert len(set(told["points"]["user"]) & set(later["points"]["user"])) >= 3
        play(client, 5, seed=6)
        assert get(client, "/v1/map")["points"]["user"] == later["points"]["user"]


def nothing_names_who_is_erased(client: Any, service: Service) -> None:
    seed = get(client, "/v1/groups")["clusters"][0]["seed"]
    paths = [*PATHS, "/v1/map?projection=new", "/v1/groups?sort=seed", "/v1/users/u3/decisions"]
    assert any(f'"{seed}"' in client.get(path).text for path in paths)
    assert client.delete(f"/v1/users/{seed}").status_code == 200
    wait_for(lambda: not service.backfilling)
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200 or path == f"/v1/users/{seed}/decisions"
        assert f'"{seed}"' not in answer.text, path
    now = get(client, "/v1/status")
    observations = [row for chunk in service.log.observations(0) for row in chunk]
    assert (now["users"], now["rewarded_users"], now["rewards"]) == (13, 13, len(observations))
    assert get(client, "/v1/history")["total"]["mean"] == pytest.approx(np.mean([row.reward for row in observations]))
    assert get(client, "/v1/map")["users"] == 13
    assert all(row["size"] <= 13 for row in get(client, "/v1/groups")["clusters"])


def test_it_is_the_same_after_a_restart(store: Any) -> None:
    with serving(store.folder, store=store.url, **LOCB) as (client, _):
        play(client, 40)
        before = [get(client, path) for path in (*PATHS, "/v1/users/u3", "/v1/users/u3/decisions")]
    with serving(store.folder, store=store.url, **LOCB) as (client, service):
        wait_for(lambda: not service.backfilling)
        after = [get(client, path) for path in (*PATHS, "/v1/users/u3", "/v1/users/u3/decisions")]
        for one, other in zip(before, after, strict=True):
            for changing in CHANGING:
                assert (changing in one) == (changing in other)
                one.pop(changing, None)
                other.pop(changing, None)
        assert json.dumps(before) == json.dumps(after)


@pytest.mark.parametrize("policy", ["locb", "eloc", "club", "sclub", "linucb-one", "linucb-ind", "own"])
def test_any_policy(tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "own", Own)
    with serving(tmp_path, policy=policy) as (client, _):
        for path in PATHS:
            assert get(client, path) is not None, "without anybody"
        for i in range(30):
            told = client.post(
                "/v1/recommend", json={"user": f"u{i % 4}", "arms": arms([1, 0, 0], [0, 0.6, 0.8])}
            ).json()
            client.post("/v1/reward", json={"decision_id": told["decision_id"], "reward": float(i % 3 == 0)})
        now, groups, shown = get(client, "/v1/status"), get(client, "/v1/groups"), get(client, "/v1/map")
        assert now["users"] == now["rewarded_users"] == 4
        assert now["clusters"]["forming"] + now["clusters"]["returned"] == len(groups["clusters"])
        assert {row["seed"] for row in groups["clusters"]} <= {"u0", "u1", "u2", "u3", None}
        for row in groups["clusters"]:
            members = client.get(f"/v1/clusters/{row['seed']}").json() if row["seed"] else None
            assert members is None or (members["size"], members["certificate"]) == (row["size"], row["certificate"])
        if policy.startswith("linucb") or policy == "own":
            assert groups["clusters"] == []
            assert now["cluster_based_share"] == 0.0
            assert set(shown["points"]["cluster"]) <= {-1}
        else:
            assert groups["clusters"]
            assert sum(shown["points"]["cluster_count"]) == sum(row["size"] for row in groups["clusters"])
        assert shown["shown"] == (0 if policy == "own" else 4)
        user = get(client, "/v1/users/u1")
        assert (user["intervals"] is None) == (policy == "own")
        assert user["rewards"] == 8
        assert len(get(client, "/v1/users/u1/decisions")["decisions"]) == 8
        assert client.post("/v1/preview", json={"user": "u1", "arms": arms([1, 0, 0])}).json()["arm"] == "a"


class Own(locb.Policy):
    """Always the first arm; tells nothing."""

    def recommend(self, user: int, contexts: Any) -> int:
        return 0

    def update(self, user: int, context: Any, reward: float) -> None:
        pass

    def add_users(self, count: int) -> None:
        self._n_users += count
