"""Requests made up from the service's own description, and whether its answers are as it says."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from locb.service.api.auth import SCOPES, Tokens
from locb.service.core.replay import recheck
from serving import same_state, serving

TOKEN = "a token for all the scopes"
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "4"))  # a route and phase; `make stress` asks for more
# Schemas cannot say that ids differ from each other, or that what is excluded is among the arms. In a batch each
# question stands for itself: one that does not fit is a problem among answers.
SETTINGS = """
[checks]
positive_data_acceptance.enabled = false

[[operations]]
include-path = "/v1/recommend:batch"
checks.negative_data_rejection.enabled = false
"""


@pytest.mark.parametrize(("policy", "with_tokens"), [("locb", False), ("linucb-ind", True)])
def test_no_request_is_answered_otherwise_than_described(tmp_path: Path, policy: str, with_tokens: bool) -> None:
    tokens = Tokens({TOKEN: frozenset(SCOPES)}) if with_tokens else None
    command = [sys.executable, "-m", "schemathesis.cli", "run", "--no-color"]
    command += ["--max-examples", str(EXAMPLES), "--generation-deterministic"]
    command += ["--header", f"Authorization: Bearer {TOKEN}"] if with_tokens else []
    command += ["--phases", "coverage,fuzzing"] if with_tokens else []
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    with serving(tmp_path / "state", tokens, policy=policy) as (client, service):
        done = subprocess.run(
            [*command, f"{client.base_url}/openapi.json"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
        assert service.engine.seq > 10, "nothing was decided"
        policy_again, wrong = recheck(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert wrong == []
        assert same_state(policy_again, service.policy)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with serving(tmp_path_factory.mktemp("state"), Tokens({TOKEN: frozenset(SCOPES)}), dim=7) as (client, _):
        told: dict[str, Any] = client.get("/openapi.json").json()
        return told


def test_the_description_is_openapi(described: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(described).validate()
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    assert Counter(operation["operationId"] for operation in operations).most_common(1)[0][1] == 1
    assert all(operation["summary"] for operation in operations)


def test_it_tells_what_this_service_takes(described: dict[str, Any], tmp_path: Path) -> None:
    features = described["components"]["schemas"]["Arm"]["properties"]["features"]["anyOf"][0]
    assert (features["minItems"], features["maxItems"]) == (7, 7)
    asked = described["paths"]["/v1/recommend"]["post"]
    assert asked["security"] == [{"bearer": []}, {"key": []}]
    with serving(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        assert not any(operation["security"] for path in paths.values() for operation in path.values())
