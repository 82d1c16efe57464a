"""The work of a read request is in proportion to its response, and is divided into short parts of the event loop."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import locb
from locb.evaluation.clusters import SimilarUser
from locb.policies.base.nearest_users import NearestUsers
from locb.service.core import service as service_module
from locb.service.core.service import Service
from locb.service.dashboard import cluster_table
from service.core.test_policy_capabilities import Minimal
from serving import arms, serving

USERS = [f"user {number}" for number in range(60)]
POLICIES = ["locb", "eloc", "club", "sclub"]


def learn(client: Any, users: list[str], rounds: int = 2) -> None:
    """Create users, and send two kinds of rewards, so that users are similar."""
    for number in range(rounds):
        requests = [{"user": user, "arms": arms([1, 0, 0]), "decision_id": f"{user} {number}"} for user in users]
        client.post("/v1/recommend:batch", json={"requests": requests})
        rewards = [
            {"decision_id": f"{user} {number}", "reward": (index % 7 + number) / 8} for index, user in enumerate(users)
        ]
        client.post("/v1/reward:batch", json={"rewards": rewards})


@pytest.fixture(scope="module", params=POLICIES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Service]]:
    parameters = {"n_seeds": 5} if request.param in ("locb", "eloc") else {}
    with serving(tmp_path_factory.mktemp("state"), policy=request.param, parameters=parameters) as (client, service):
        learn(client, USERS)
        yield client, service


@pytest.fixture
def resolved(served: tuple[Any, Service], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """User indices whose names were looked up."""
    found: list[int] = []
    users = served[1].engine.users
    name_of = users.name_of

    def count(index: int) -> str | None:
        found.append(index)
        return name_of(index)

    monkeypatch.setattr(users, "name_of", count)
    return found


class Reads:
    """The number of users of each call of ``user_batch``, and the iteration of the event loop that it belongs to."""

    def __init__(self, policy: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.iteration, self.calls = 0, []
        user_batch = policy.user_batch

        def count(instance: Any, users: Any) -> Any:
            self.calls.append((self.iteration, len(users)))
            asyncio.get_running_loop().call_soon(self._next_iteration)
            return user_batch(instance, users)

        monkeypatch.setattr(policy, "user_batch", count)

    def _next_iteration(self) -> None:
        self.iteration += 1


@pytest.mark.parametrize("limit", [0, 1, 5])
def test_similar_users_resolve_as_many_names_as_requested(
    served: Any, resolved: list[int], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, service = served
    index = service.require_index(USERS[3])
    available = len(service.policy.similar_users(index, 1000))
    kept: list[int] = []
    found = NearestUsers.found

    def count(nearest: NearestUsers) -> Any:
        kept.append(len(found(nearest)))
        return found(nearest)

    monkeypatch.setattr(NearestUsers, "found", count)
    similar = client.get(f"/v1/users/{USERS[3]}/similar?limit={limit}").json()["similar"]
    assert len(similar) == min(limit, available)
    assert len(resolved) == len(similar)
    assert kept == [len(similar)]


def test_list_of_clusters_resolves_one_name_per_cluster(served: Any, resolved: list[int]) -> None:
    client, service = served
    members = sum(len(cluster) for cluster in service.policy.clusters())
    resolved.clear()
    clusters = client.get("/v1/clusters").json()["clusters"]
    assert len(resolved) <= len(clusters) < members
    assert sum(cluster["size"] for cluster in clusters) == members


def test_a_cluster_resolves_the_names_of_its_members_only(served: Any, resolved: list[int]) -> None:
    client, _ = served
    clusters = [cluster for cluster in client.get("/v1/clusters").json()["clusters"] if cluster["seed"] is not None]
    assert clusters
    for cluster in clusters:
        resolved.clear()
        detail = client.get(f"/v1/clusters/{cluster['seed']}").json()
        assert len(detail["members"]) == detail["size"] == cluster["size"]
        assert len(resolved) <= detail["size"] + 1


def test_users_are_read_in_slices_between_which_requests_are_served(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An iteration of the event loop reads at most one slice, and the slices do not change the responses."""
    client, service = served
    paths = [f"/v1/users/{USERS[3]}/similar?limit=20", "/v1/clusters"]
    seeds = [cluster["seed"] for cluster in client.get("/v1/clusters").json()["clusters"]]
    paths += [f"/v1/clusters/{seed}" for seed in seeds if seed is not None][:2]
    whole = [client.get(path).json() for path in paths]
    index = service.require_index(USERS[3])
    expected = [(service.engine.users.name_of(user), distance) for user, distance, _ in
                service.policy.similar_users(index, 20)]  # fmt: skip
    assert [(other["user"], other["distance"]) for other in whole[0]["similar"]] == expected
    monkeypatch.setattr(type(service.policy), "user_batch_size", 7)
    monkeypatch.setattr(service_module, "CERTIFIED_FLOATS", 1)
    monkeypatch.setattr(cluster_table, "ENCODED_AT_ONCE", 2)
    for path, response in zip(paths, whole, strict=True):
        # An event invalidates the state that a previous request has read. It is not learned: no reward follows.
        client.post("/v1/recommend", json={"user": USERS[0], "arms": arms([1, 0, 0])}).raise_for_status()
        with monkeypatch.context() as patch:
            reads = Reads(type(service.policy), patch)
            assert client.get(path).json() == response
        iterations, sizes = [call[0] for call in reads.calls], [call[1] for call in reads.calls]
        assert sum(sizes) >= len(USERS)
        assert len(set(iterations)) == len(iterations)
        assert max(sizes) <= 7 + 1  # the slices of similar users include the user


def test_erased_users_are_replaced_by_the_next_similar_users(tmp_path: Path) -> None:
    """Indices without a user do not count towards the limit."""
    with serving(tmp_path, policy="locb", parameters={"n_seeds": 2}) as (client, _):
        learn(client, USERS[:12])
        before = [other["user"] for other in client.get(f"/v1/users/{USERS[0]}/similar?limit=11").json()["similar"]]
        assert len(before) == 11
        for user in before[:3]:
            assert client.delete(f"/v1/users/{user}").status_code == 200
        after = [other["user"] for other in client.get(f"/v1/users/{USERS[0]}/similar?limit=5").json()["similar"]]
        assert len(after) == 5
        assert not set(after) & set(before[:3])


class Custom(Minimal):
    """A custom policy with its own search for similar users, which records the limits."""

    limits: list[int]

    def similar_users(self, user: int, limit: int = 10) -> list[SimilarUser]:
        type(self).limits.append(limit)
        return [SimilarUser(other, 1.0, 1.0) for other in range(self.n_users) if other != user][:limit]


def test_a_custom_policy_gets_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "custom", Custom)
    Custom.limits = []
    with serving(tmp_path, policy="custom") as (client, _):
        learn(client, USERS[:9], rounds=1)
        Custom.limits.clear()
        for limit in (0, 4):
            similar = client.get(f"/v1/users/{USERS[0]}/similar?limit={limit}").json()["similar"]
            assert len(similar) == limit
        assert Custom.limits == [0, 4]
        assert client.delete(f"/v1/users/{USERS[1]}").status_code == 200
        similar = client.get(f"/v1/users/{USERS[0]}/similar?limit=4").json()["similar"]
        assert [other["user"] for other in similar] == USERS[2:6]
