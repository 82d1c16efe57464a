"""What must hold after any fault: nothing acknowledged is missing, nothing is learned twice, the log is the policy."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from locb.loadtest import Report
from locb.policies.base import serialization as storage
from locb.service.config import ServiceConfig
from locb.service.core.audit import repeat_decisions
from locb.service.core.model import load_or_create_model
from locb.service.core.snapshots import Snapshots
from locb.service.store.log import EventLog
from locb.service.store.schema import CORRECTION

# Each must be 0.
WRONG = (
    "decisions missing",
    "decisions told otherwise",
    "rewards missing",
    "rewards told otherwise",
    "learned twice",
    "choices that differ",
    "arrays that differ",
    "snapshots missing",
)


@dataclass
class Acknowledged:
    """What clients were told: decisions with their arms, and rewards."""

    arms: dict[str, str] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """What the clients of one load were told."""
        self.arms |= {name: arm for name, _, arm in report.decisions}
        self.rewards |= dict(report.rewards)


def check(folder: Path, store: str | None, acknowledged: Acknowledged) -> dict[str, int]:
    """Counts of what is in the log and of what is wrong; the service was stopped, and left a snapshot of its end."""
    log = EventLog(folder, store)
    try:
        arms, rewards, twice = _read(log)
        observations = sum(row.kind != CORRECTION for chunk in log.observations(0) for row in chunk)
        counts = {
            "decisions": len(arms),
            "observations": observations,
            "acknowledged decisions": len(acknowledged.arms),
            "acknowledged rewards": len(acknowledged.rewards),
            "decisions missing": len(acknowledged.arms.keys() - arms.keys()),
            "decisions told otherwise": _differing(acknowledged.arms, arms),
            "rewards missing": len(acknowledged.rewards.keys() - rewards.keys()),
            "rewards told otherwise": _differing(acknowledged.rewards, rewards),
        }
        return counts | _compare(log, folder, observations, twice)
    finally:
        log.close()


def wrong(counts: dict[str, int]) -> list[str]:
    """What is wrong, in words."""
    return [f"{counts[name]} {name}" for name in WRONG if counts[name]]


def _read(log: EventLog) -> tuple[dict[str, str], dict[str, float], int]:
    """Arms and rewards by decision, and how often one had more than one reward."""
    arms: dict[str, str] = {}
    rewards: dict[str, float] = {}
    twice = 0
    for chunk in log.decisions_with_rewards():
        for row in chunk:
            name = row.id.decode()
            twice += name in arms
            arms[name] = json.loads(row.response)["arm"]
            reward = row.default if row.reward is None else row.reward
            if reward is not None:
                rewards[name] = reward
    return arms, rewards, twice


def _differing(told: dict[str, Any], kept: dict[str, Any]) -> int:
    return sum(kept.get(name, value) != value for name, value in told.items())


def _compare(log: EventLog, folder: Path, observations: int, twice: int) -> dict[str, int]:
    """The policy that the service left against a replay of the whole log on a new one."""
    model, name = load_or_create_model(ServiceConfig(folder), log)
    since, last = log.settings()["rebuilt_at"] or 0, log.last_seq()
    again, mismatches = repeat_decisions(log, model, since)
    left = Snapshots(folder / "snapshots", name).load_newest(since, last)
    counts = {"learned twice": twice, "choices that differ": len(mismatches), "arrays that differ": 0}
    if left is None or left[1] != last:
        return counts | {"snapshots missing": 1}
    one, other = _saved(left[0]), _saved(again)
    counts["learned twice"] += abs(int(one["served"].sum()) - observations)
    counts["arrays that differ"] = sum(
        array not in one or array not in other or one[array].tobytes() != other[array].tobytes()
        for array in one.keys() | other.keys()
    )
    return counts | {"snapshots missing": 0}


def _saved(policy: Any) -> dict[str, np.ndarray[Any, Any]]:
    """What a file of this policy holds."""
    with tempfile.TemporaryDirectory() as room:
        policy.save(Path(room) / "policy")
        header, arrays = storage.read(Path(room) / "policy")
    return arrays | {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)}
