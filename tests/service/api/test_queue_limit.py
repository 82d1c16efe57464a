"""A full queue: a batch is queued as a whole or not at all."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from locb.service.config import describe_key
from locb.service.core.service import Service
from locb.service.schemas import MAX_BATCH
from serving import arms, serving, stalled, wait_for

ARMS = arms([1, 0, 0], [0, 1, 0])
LIMIT = 1000  # commands in the queue
FREE = 2  # commands that still fit while the test runs


def recommend_requests(ids: list[str]) -> list[Any]:
    return [{"user": "ann", "arms": ARMS, "decision_id": decision_id} for decision_id in ids]


def rewards(ids: list[str], reward: float = 1.0) -> list[Any]:
    return [{"decision_id": decision_id, "reward": reward} for decision_id in ids]


@contextmanager
def nearly_full_queue(client: httpx.Client, service: Service, path: str, body: Any) -> Iterator[ThreadPoolExecutor]:
    """Fill the queue until ``FREE`` commands fit; at the end, check that the commands that filled it succeed."""
    with ThreadPoolExecutor() as pool:
        with stalled(service):
            filling = pool.submit(client.post, path, json=body)
            wait_for(lambda: service.committer.queue_length == LIMIT - FREE, 60)
            yield pool
        assert filling.result().status_code == 200
        assert not any("problem" in result for result in filling.result().json()["results"])


def check_refused(response: httpx.Response, size: int, waiting: int) -> None:
    assert response.status_code == 503, response.text
    assert int(response.headers["retry-after"]) > 0
    problem = response.json()
    assert problem["type"] == "urn:locb:problem:too-many-requests"
    assert problem["detail"] == (
        f"the queue of the store is full: decisions and rewards in the queue: {waiting}; {size} more would exceed the "
        f"maximum of {LIMIT} (--max-queue); nothing was queued; retry later"
    )


@pytest.mark.parametrize("size", [FREE - 1, FREE, FREE + 1])
def test_recommend_batch_at_the_limit(tmp_path: Path, size: int) -> None:
    ids = [f"new {number}" for number in range(size)]
    filler = {"requests": recommend_requests([f"d{number}" for number in range(LIMIT - FREE)])}
    with serving(tmp_path, max_queue=LIMIT) as (client, service):
        with nearly_full_queue(client, service, "/v1/recommend:batch", filler) as pool:
            sent = pool.submit(client.post, "/v1/recommend:batch", json={"requests": recommend_requests(ids)})
            if size > FREE:
                check_refused(sent.result(), size, LIMIT - FREE)
                assert service.committer.queue_length == LIMIT - FREE
            else:
                wait_for(lambda: service.committer.queue_length == LIMIT - FREE + size, 60)
        results = client.post("/v1/reward:batch", json={"rewards": rewards(ids)}).json()["results"]
        if size > FREE:  # none of the decisions exists
            assert [result["problem"]["status"] for result in results] == [404] * size
        else:
            assert [result["decision"]["decision_id"] for result in sent.result().json()["results"]] == ids
            assert [result["reward"]["decision_id"] for result in results] == ids


@pytest.mark.parametrize("size", [FREE - 1, FREE, FREE + 1])
def test_reward_batch_at_the_limit(tmp_path: Path, size: int) -> None:
    ids = [f"d{number}" for number in range(LIMIT)]
    filler = {"rewards": rewards(["d999"] * (LIMIT - FREE))}
    with serving(tmp_path, max_queue=LIMIT) as (client, service):
        assert client.post("/v1/recommend:batch", json={"requests": recommend_requests(ids)}).status_code == 200
        with nearly_full_queue(client, service, "/v1/reward:batch", filler) as pool:
            sent = pool.submit(client.post, "/v1/reward:batch", json={"rewards": rewards(ids[:size])})
            if size > FREE:
                check_refused(sent.result(), size, LIMIT - FREE)
                assert service.committer.queue_length == LIMIT - FREE
            else:
                wait_for(lambda: service.committer.queue_length == LIMIT - FREE + size, 60)
        results = client.post("/v1/reward:batch", json={"rewards": rewards(ids[:size], 0.5)}).json()["results"]
        if size > FREE:  # none of the rewards was learned, so another value is accepted
            assert [result["reward"]["reward"] for result in results] == [0.5] * size
        else:
            assert [result["reward"]["reward"] for result in sent.result().json()["results"]] == [1.0] * size
            assert [result["problem"]["status"] for result in results] == [409] * size


def test_full_queue(tmp_path: Path) -> None:
    filler = {"requests": recommend_requests([f"d{number}" for number in range(LIMIT - FREE)])}
    invalid = [{"user": "ann", "arms": arms([1, 0])}]
    with serving(tmp_path, max_queue=LIMIT) as (client, service):
        with nearly_full_queue(client, service, "/v1/recommend:batch", filler) as pool:
            last = pool.submit(client.post, "/v1/reward:batch", json={"rewards": rewards(["d0", "unknown"])})
            wait_for(lambda: service.committer.queue_length == LIMIT, 60)
            for path, body in (
                ("/v1/recommend", recommend_requests(["one"])[0]),
                ("/v1/reward", rewards(["d0"])[0]),
                ("/v1/recommend:batch", {"requests": [*invalid, *recommend_requests(["one"])]}),
                ("/v1/reward:batch", {"rewards": rewards(["d0"])}),
            ):
                check_refused(client.post(path, json=body), 1, LIMIT)
            # Invalid requests of a batch are not queued.
            (result,) = client.post("/v1/recommend:batch", json={"requests": invalid}).json()["results"]
            assert result["problem"]["status"] == 422
            assert client.get("/v1/health").json()["queued_requests"] == LIMIT
        assert ["problem" in result for result in last.result().json()["results"]] == [False, True]


def test_a_batch_of_the_maximum_size_fits_into_every_queue() -> None:
    assert describe_key("max_queue").minimum == MAX_BATCH
