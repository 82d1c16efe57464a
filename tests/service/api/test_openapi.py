"""The OpenAPI description is valid, and responses to generated requests match it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemathesis

from locb.service.api.auth import Tokens
from locb.service.api.routes import ROUTES
from locb.service.api.scopes import SCOPES
from locb.service.core.audit import repeat_decisions
from serving import arms, play, same_state, serving

TOKEN = "token with all scopes"
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "4"))  # per route and phase; `make stress` sets more
# Schemas cannot express that ids are unique, or that excluded ids are ids of arms. An invalid request of a batch gives
# a problem in the results.
SETTINGS = """
[checks]
positive_data_acceptance.enabled = false

[[operations]]
include-path = "/v1/recommend:batch"
checks.negative_data_rejection.enabled = false
"""


@pytest.mark.parametrize(("policy", "with_tokens"), [("locb", False), ("linucb-ind", True)])
def test_responses_match_the_description(tmp_path: Path, policy: str, with_tokens: bool) -> None:
    tokens = Tokens({TOKEN: frozenset(SCOPES)}) if with_tokens else None
    command = [sys.executable, "-m", "schemathesis.cli", "run", "--no-color"]
    command += ["--max-examples", str(EXAMPLES), "--generation-deterministic"]
    command += ["--request-timeout", "600"]  # an export starts a process, which takes long on a busy machine
    command += ["--header", f"Authorization: Bearer {TOKEN}"] if with_tokens else []
    command += ["--phases", "coverage,fuzzing"] if with_tokens else []
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    with serving(tmp_path / "state", tokens, policy=policy) as (client, service):
        done = subprocess.run(
            [*command, f"{client.base_url}/openapi.json"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
        assert re.findall(r"^  Tested: (\d+)$", done.stdout, re.MULTILINE) == [str(len(ROUTES))]
        ((generated, passed),) = re.findall(r"^  (\d+) generated, (\d+) passed", done.stdout, re.MULTILINE)
        assert int(generated) == int(passed) > EXAMPLES * len(ROUTES)
        assert service.engine.seq > 10, "no decision was made"
        policy_again, wrong = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert wrong == []
        assert same_state(policy_again, service.policy)


# The bodies of requests that succeed. Routes that are not listed need none.
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/recommend": {"user": "u1", "arms": arms([1, 0, 0], [0, 1, 0]), "decision_id": "d1"},
    "POST /v1/recommend:batch": {
        "requests": [{"user": "u1", "arms": arms([1, 0, 0])}, {"user": "u1", "arms": arms([1])}]
    },
    "POST /v1/reward": {"decision_id": "d1", "reward": 1.0},
    "POST /v1/reward:batch": {"rewards": [{"decision_id": name, "reward": 1.0} for name in ("d1", "unknown")]},
    "POST /v1/preview": {"user": "u1", "arms": arms([1, 0, 0], [0, 1, 0])},
    "POST /personalizer/v1.0/rank": {"actions": [{"id": "a", "features": [{"x": 1}]}], "eventId": "e1"},
    "POST /personalizer/v1.0/events/{event}/reward": {"value": 1.0},
    "POST /v1/ping": {},
}


@pytest.mark.parametrize("policy", ["locb", "eloc"])
def test_successful_response_of_every_route_matches_the_description(tmp_path: Path, policy: str) -> None:
    """Generated requests rarely name an existing user, seed or event."""
    with serving(tmp_path, policy=policy, parameters={"n_seeds": 3}) as (client, _):
        play(client, np.random.default_rng(0), [f"u{i}" for i in range(6)], 30)
        seed = client.get("/v1/clusters").json()["clusters"][0]["seed"]
        schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
        for route in sorted(ROUTES, key=lambda route: route.method == "DELETE"):
            path = route.path.format(user="u1", seed=seed, event="e1")
            response = client.request(route.method, path, json=BODIES.get(f"{route.method} {route.path}"))
            assert response.status_code == route.status, f"{route.method} {route.path}: {response.text}"
            schema[route.path][route.method].validate_response(response)


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with serving(tmp_path_factory.mktemp("state"), Tokens({TOKEN: frozenset(SCOPES)}), dim=7) as (client, _):
        response: dict[str, Any] = client.get("/openapi.json").json()
        return response


def test_description_is_valid(description: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(description).validate()
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == {f"{route.method} {route.path}" for route in ROUTES}
    assert len({operation["operationId"] for operation in operations.values()}) == len(ROUTES)
    for route in ROUTES:
        assert operations[f"{route.method} {route.path}"]["summary"] == route.summary != ""
    for operation in operations.values():
        assert ("X-Request-Id", "header") in {(each["name"], each["in"]) for each in operation["parameters"]}
        assert len(operation["responses"]) >= 2
        assert all("X-Request-Id" in response["headers"] for response in operation["responses"].values())


def test_description_depends_on_the_service(description: dict[str, Any], tmp_path: Path) -> None:
    features = description["components"]["schemas"]["Arm"]["properties"]["features"]["anyOf"][0]
    assert (features["minItems"], features["maxItems"]) == (7, 7)
    recommend = description["paths"]["/v1/recommend"]["post"]
    assert recommend["security"] == [{"bearer": []}, {"key": []}]
    with serving(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        assert [operation["security"] for path in paths.values() for operation in path.values()] == [[]] * len(ROUTES)
