"""Checks of the event log after a fault.

Every acknowledged event is in the log and was learned once, and a replay of the log gives the state of the policy.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.loadtest import Report
from locb.policies.base import file_format
from locb.policies.base.capabilities import explainer
from locb.policies.base.policy import ServablePolicy
from locb.recommender.events import CORRECTION
from locb.service.config import ServiceConfig
from locb.service.core.audit import MAX_DAMAGE, repeat_decisions
from locb.service.core.model import load_or_create_model
from locb.service.core.startup.snapshots import Snapshots
from locb.service.packed_responses import stored_arm, unpack
from locb.service.store.log import EventLog

# Names of the counts in the result of check that must be 0.
VIOLATIONS = (
    "decisions missing",
    "decisions that differ",
    "rewards missing",
    "rewards that differ",
    "learned twice",
    "choices that differ",
    "scores that differ",
    "arrays that differ",
    "snapshots missing",
    "damaged events",
)


@dataclass
class Acknowledged:
    """Decisions (with their arms) and rewards that the service has acknowledged."""

    arms: dict[str, str] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)

    def add(self, report: Report) -> None:
        """Add the decisions and rewards that the clients of one load test received responses for."""
        self.arms |= {name: arm for name, _, arm in report.decisions}
        self.rewards |= dict(report.rewards)


def check(folder: Path, store: str | None, acknowledged: Acknowledged) -> dict[str, int]:
    """Compare the event log with the acknowledged events, and return the numbers of events and of violations.

    The service must have been stopped with SIGTERM before, because the check reads its final snapshot.

    Parameters
    ----------
    folder : Path
        Data folder of the service.
    store : str or None
        Address of the PostgreSQL database; None for SQLite.
    acknowledged : Acknowledged
        Events that the service has acknowledged.
    """
    log = EventLog(folder, store)
    try:
        arms, rewards, repeated = _read(log)
        counts = {
            "decisions": len(arms),
            "observations": _count_observations(log),
            "acknowledged decisions": len(acknowledged.arms),
            "acknowledged rewards": len(acknowledged.rewards),
            "decisions missing": len(acknowledged.arms.keys() - arms.keys()),
            "decisions that differ": _count_differing(acknowledged.arms, arms),
            "rewards missing": len(acknowledged.rewards.keys() - rewards.keys()),
            "rewards that differ": _count_differing(acknowledged.rewards, rewards),
        }
        differences = compare_with_replay(log, folder)
        differences["learned twice"] += repeated
        return counts | differences
    finally:
        log.close()


def violations(counts: dict[str, int]) -> list[str]:
    """Return a message for each element of VIOLATIONS whose count is not 0."""
    return [f"{counts[name]} {name}" for name in VIOLATIONS if counts[name]]


def _read(log: EventLog) -> tuple[dict[str, str], dict[str, float], int]:
    """Return the arms and the rewards by decision id, and the number of decisions that occur more than once."""
    arms: dict[str, str] = {}
    rewards: dict[str, float] = {}
    repeated = 0
    for chunk in log.decisions_with_rewards():
        for row in chunk:
            name = row.id.decode()
            repeated += name in arms
            arms[name] = stored_arm(row.request, row.response)
            reward = row.default if row.reward is None else row.reward
            if reward is not None:
                rewards[name] = reward
    return arms, rewards, repeated


def _count_differing(acknowledged: dict[str, Any], logged: dict[str, Any]) -> int:
    return sum(logged.get(name, value) != value for name, value in acknowledged.items())


def _count_observations(log: EventLog) -> int:
    return sum(row.kind < CORRECTION for chunk in log.observations(0) for row in chunk)


def compare_with_replay(log: EventLog, folder: Path) -> dict[str, int]:
    """Return the numbers of differences between the final snapshot of the service and a replay of the whole log."""
    model, store_id = load_or_create_model(ServiceConfig(folder), log)
    rebuilt_at, last = log.settings()["rebuilt_at"] or 0, log.last_seq()
    scores = _Scores()
    replayed, mismatches = repeat_decisions(log, model, rebuilt_at, scores.compare)
    snapshot = Snapshots(folder / "snapshots", store_id, interval=0).load_newest(rebuilt_at, last)
    counts = {"learned twice": 0, "choices that differ": len(mismatches), "arrays that differ": 0}
    counts["scores that differ"] = scores.differing
    counts["damaged events"] = len(log.check_all(MAX_DAMAGE))
    if snapshot is None or snapshot[1] != last:
        return counts | {"snapshots missing": 1}
    served, expected = _saved_arrays(snapshot[0]), _saved_arrays(replayed)
    counts["learned twice"] = abs(int(served["served"].sum()) - _count_observations(log))
    counts["arrays that differ"] = sum(
        name not in served or name not in expected or served[name].tobytes() != expected[name].tobytes()
        for name in served.keys() | expected.keys()
    )
    return counts | {"snapshots missing": 0}


class _Scores:
    """Comparison of the scores in the stored responses with those of a replay.

    An observation that the service has learned twice in memory only, and has lost by a restart before the end, changes
    the scores of the decisions in between.
    """

    def __init__(self) -> None:
        self.differing = 0  # decisions

    def compare(self, policy: ServablePolicy, row: Any, contexts: Floats) -> None:
        """Compare the scores of the chosen arm."""
        (explanation,) = explainer(policy)([row.user_index], [contexts])
        if explanation.estimate is not None and explanation.bonus is not None:
            response = unpack(row.response)
            replayed = explanation.estimate[row.chosen], explanation.bonus[row.chosen]
            stored = (response.estimates or [np.nan])[0], response.bonuses[0]
            self.differing += not np.allclose(stored, replayed, rtol=1e-6, atol=1e-9)


def _saved_arrays(policy: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays and the header that ``policy.save`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        header, arrays = file_format.read(Path(folder) / "policy")
    return arrays | {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)}
