"""The check of a store after a fault: it finds each kind of lost, changed or repeated event."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from serving import arms, serving
from stress.checks import VIOLATIONS, Acknowledged, check, violations

ROUNDS = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def acknowledged(folder: Path) -> Acknowledged:
    """Decisions and rewards of a service that has stopped."""
    rng, received = np.random.default_rng(3), Acknowledged()
    with serving(folder) as (client, _):
        for number in range(ROUNDS):
            request = {"user": f"u{number % 4}", "arms": arms(*rng.normal(size=(3, 3)).tolist())}
            decision = client.post("/v1/recommend", json=request).raise_for_status().json()
            received.arms[decision["decision_id"]] = decision["arm"]
            reward = {"decision_id": decision["decision_id"], "reward": float(rng.random())}
            received.rewards[decision["decision_id"]] = (
                client.post("/v1/reward", json=reward).raise_for_status().json()["reward"]
            )
    return received


def test_consistent_store_has_no_violations(folder: Path, acknowledged: Acknowledged) -> None:
    found = check(folder, None, acknowledged)
    assert violations(found) == []
    names = ("decisions", "observations", "acknowledged decisions", "acknowledged rewards")
    assert [found[name] for name in names] == [ROUNDS] * 4


def change_acknowledged(received: Acknowledged, kind: str) -> None:
    first = next(iter(received.arms))
    if kind == "decisions missing":
        received.arms["lost"] = "a"
    elif kind == "decisions that differ":
        received.arms[first] = "another arm"
    elif kind == "rewards missing":
        received.rewards["lost"] = 1.0
    else:
        received.rewards[first] += 0.5


@pytest.mark.parametrize(
    "kind", ["decisions missing", "decisions that differ", "rewards missing", "rewards that differ"]
)
def test_acknowledged_event_that_is_not_in_the_log(folder: Path, acknowledged: Acknowledged, kind: str) -> None:
    change_acknowledged(acknowledged, kind)
    assert violations(check(folder, None, acknowledged)) == [f"1 {kind}"]


def execute(folder: Path, statement: str) -> None:
    database = sqlite3.connect(folder / "log.db")
    with database:
        assert database.execute(statement).rowcount == 1
    database.close()


LAST_DECISION = "WHERE seq = (SELECT max(seq) FROM locb_decisions)"
LAST_OBSERVATION = "WHERE seq = (SELECT max(seq) FROM locb_observations)"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda folder: execute(folder, f"UPDATE locb_decisions SET chosen = (chosen + 1) % 3 {LAST_DECISION}"),
            "choices that",
        ),
        (lambda folder: execute(folder, f"UPDATE locb_observations SET reward = -9 {LAST_OBSERVATION}"), "arrays that"),
        (lambda folder: execute(folder, f"DELETE FROM locb_observations {LAST_OBSERVATION}"), "damaged events"),
        (lambda folder: shutil.rmtree(folder / "snapshots"), "snapshots missing"),
    ],
    ids=["arm", "reward", "deleted reward", "deleted snapshot"],
)
def test_store_that_does_not_match_its_snapshot(
    folder: Path, acknowledged: Acknowledged, change: Callable[[Path], None], expected: str
) -> None:
    change(folder)
    found = violations(check(folder, None, acknowledged))
    assert any(expected in violation for violation in found), found


def test_reward_that_was_learned_twice(folder: Path, acknowledged: Acknowledged) -> None:
    """The snapshot has a reward more than the log, as after a batch that was applied twice."""
    first = "WHERE seq = (SELECT min(seq) FROM locb_observations)"
    execute(folder, f"DELETE FROM locb_observations {first}")
    found = check(folder, None, acknowledged)
    assert found["learned twice"] == 1
    assert found["arrays that differ"] > 0
    assert found["rewards missing"] == 1


def test_reward_that_was_learned_twice_in_memory_only(folder: Path) -> None:
    """A restart without a snapshot restores the policy, so only the scores of the decisions in between differ."""
    request, received = {"user": "ann", "arms": arms([1.0, 0.0, 0.0])}, Acknowledged()
    with serving(folder) as (client, service):
        for number in range(6):
            decision = client.post("/v1/recommend", json=request).raise_for_status().json()
            received.arms[decision["decision_id"]] = decision["arm"]
            reward = {"decision_id": decision["decision_id"], "reward": 0.5}
            client.post("/v1/reward", json=reward).raise_for_status()
            if number == 2:
                service.policy.update(0, np.array([1.0, 0.0, 0.0]), 0.5)
    shutil.rmtree(folder / "snapshots")
    with serving(folder):
        pass
    assert violations(check(folder, None, received)) == ["3 scores that differ"]


def test_every_violation_is_reported() -> None:
    counts = dict.fromkeys(VIOLATIONS, 0)
    assert violations(counts) == []
    for name in VIOLATIONS:
        assert violations(counts | {name: 3}) == [f"3 {name}"]
