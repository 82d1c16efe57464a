"""Large requests: limits of names, and parsing in steps between which other requests are served."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from locb.common.feature_hashing import feature_row
from locb.recommender.requests import NAMES_PER_STEP
from locb.service.api import handlers
from locb.service.api.handlers import parse_in_steps
from locb.service.request_parsing import parse_request, parse_stored_request
from locb.service.schemas import MAX_ARM_NAMES, Arm, RecommendRequest
from serving import serving

JSON = {"content-type": "application/json"}
SPACES = ["", " ", "\t", "\r\n", " \n  "]


def body_with_names(count: int, space: str = "") -> str:
    """Return the body of a recommend request with so many names of features and fields."""
    values = ",".join(f'"{number:x}"{space}:{space}1' for number in range(count - 4))
    return f'{{"user":"ann","arms":[{{"id":"a","features":{{{values}}}}}]}}'


@pytest.mark.parametrize("space", SPACES)
def test_number_of_names_is_limited(tmp_path: Path, space: str) -> None:
    with serving(tmp_path, max_feature_names=1000) as (client, service):
        accepted = client.post("/v1/recommend", content=body_with_names(1000, space), headers=JSON)
        assert accepted.status_code == 200, accepted.text
        before = service.engine.seq
        for path in ("/v1/recommend", "/v1/recommend:batch", "/v1/preview", "/v1/ping"):
            refused = client.post(path, content=body_with_names(1001, space), headers=JSON)
            assert refused.status_code == 422
            problem = refused.json()
            assert problem["type"] == "urn:locb:problem:invalid"
            assert "at most 1000 names of features and fields, not 1001" in problem["detail"]
            assert "--max-feature-names" in problem["detail"]
        assert client.post("/personalizer/v1.0/rank", content=body_with_names(1001), headers=JSON).status_code == 400
        assert service.engine.seq == before


def test_names_of_an_arm_are_limited(tmp_path: Path) -> None:
    def arm(name: str, count: int) -> dict[str, Any]:
        return {"id": name, "features": {str(number): 1 for number in range(count)}}

    with serving(tmp_path) as (client, _):
        largest = {"user": "ann", "arms": [arm("a", MAX_ARM_NAMES), arm("b", 2)]}
        too_large = {"user": "ann", "arms": [arm("a", 2), arm("b", MAX_ARM_NAMES + 1)]}
        assert client.post("/v1/recommend", json=largest).status_code == 200
        for path in ("/v1/recommend", "/v1/preview"):
            problem = client.post(path, json=too_large).json()
            assert problem["status"] == 422
            assert (
                problem["detail"] == f"an arm must have at most {MAX_ARM_NAMES} named features, not {MAX_ARM_NAMES + 1}"
            )
            assert problem["fields"] == ["arms[1].features"]
        results = client.post("/v1/recommend:batch", json={"requests": [largest, too_large]}).json()["results"]
        assert [list(result) for result in results] == [["decision"], ["problem"]]
        action = {"id": "a", "features": [arm("a", MAX_ARM_NAMES)["features"]]}  # and the feature action=a
        error = client.post("/personalizer/v1.0/rank", json={"actions": [action]}).json()["error"]
        counted = "including cross features and the feature 'action=ID'"
        found = f"actions[0] must have at most {MAX_ARM_NAMES} features ({counted}), not {MAX_ARM_NAMES + 1}"
        assert error["message"] == f"{found}; send fewer features of the action"


def test_stored_requests_have_no_limit() -> None:
    many = {str(number): 1.0 for number in range(MAX_ARM_NAMES + 1)}
    parsed = parse_request(RecommendRequest("ann", [Arm("a", dict(many))]), 8)
    assert parse_stored_request(parsed.packed, 8).contexts.tolist() == [feature_row(many, 8)]


def test_requests_are_served_between_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is parsed in steps, with the same result, and the event loop runs other tasks after each step."""
    turns: list[int] = []

    async def observe(steps: Generator[None, None, Any], turn: asyncio.Lock) -> Any:
        count = 0

        async def other_task() -> None:
            nonlocal count
            while True:
                count += 1
                await asyncio.sleep(0)

        running = asyncio.create_task(other_task())
        try:
            return await parse_in_steps(steps, turn)
        finally:
            running.cancel()
            turns.append(count)

    monkeypatch.setattr(handlers, "parse_in_steps", observe)
    named = [{"id": str(a), "features": {f"{a}-{f}": 1.0 for f in range(NAMES_PER_STEP)}} for a in range(20)]
    few = [{"id": "x", "features": {"a": 1.0}}]
    with serving(tmp_path, dim=8) as (client, service):
        for arms in (named, few):
            assert client.post("/v1/recommend", json={"user": "ann", "arms": arms}).status_code == 200
        requests = [{"user": "ann", "arms": few}] * 100
        assert client.post("/v1/recommend:batch", json={"requests": requests}).status_code == 200
        stored = parse_stored_request(service.log.recent_requests(102, 1 << 24)[-1][0], 8)
    large, small, batch = turns
    assert large >= 19
    assert small == 0
    assert batch >= 100 // handlers.REQUESTS_PER_STEP
    assert stored.contexts.tolist() == [feature_row(arm["features"], 8) for arm in named]


def test_large_requests_are_parsed_one_at_a_time() -> None:
    order: list[str] = []

    def steps(name: str, count: int) -> Generator[None, None, str]:
        for _ in range(count):
            order.append(name)
            yield
        return name

    async def main() -> None:
        turn = asyncio.Lock()
        requests = [parse_in_steps(steps(name, count), turn) for name, count in (("a", 3), ("b", 3), ("c", 0))]
        assert await asyncio.gather(*requests) == ["a", "b", "c"]

    asyncio.run(main())
    assert "".join(order) == "abaabb"
