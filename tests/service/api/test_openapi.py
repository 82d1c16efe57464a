"""The OpenAPI description is valid, and responses to generated requests match it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from locb.service.api.auth import Tokens
from locb.service.api.token_file import SCOPES
from locb.service.core.audit import repeat_decisions
from serving import same_state, serving

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
    command += ["--header", f"Authorization: Bearer {TOKEN}"] if with_tokens else []
    command += ["--phases", "coverage,fuzzing"] if with_tokens else []
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    with serving(tmp_path / "state", tokens, policy=policy) as (client, service):
        done = subprocess.run(
            [*command, f"{client.base_url}/openapi.json"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
        assert service.engine.seq > 10, "no decision was made"
        policy_again, wrong = repeat_decisions(service.log, service.model, service.log.settings()["rebuilt_at"])
        assert wrong == []
        assert same_state(policy_again, service.policy)


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with serving(tmp_path_factory.mktemp("state"), Tokens({TOKEN: frozenset(SCOPES)}), dim=7) as (client, _):
        response: dict[str, Any] = client.get("/openapi.json").json()
        return response


def test_description_is_valid(description: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(description).validate()
    operations = [operation for path in description["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert all(operation["summary"] for operation in operations)


def test_description_depends_on_the_service(description: dict[str, Any], tmp_path: Path) -> None:
    features = description["components"]["schemas"]["Arm"]["properties"]["features"]["anyOf"][0]
    assert (features["minItems"], features["maxItems"]) == (7, 7)
    recommend = description["paths"]["/v1/recommend"]["post"]
    assert recommend["security"] == [{"bearer": []}, {"key": []}]
    with serving(tmp_path) as (client, _):
        paths = client.get("/openapi.json").json()["paths"]
        assert not any(operation["security"] for path in paths.values() for operation in path.values())
