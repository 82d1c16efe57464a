"""Terminal views of a service and a user at any width."""

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from locb.client.monitor import ConnectionProblem, ServiceSnapshot, UserData
from locb.report.terminal.layout import count_lines
from locb.report.terminal.service_view import render_service
from locb.report.terminal.user_view import render_user

NOW = 1_000_000.0


def printed(view: RenderableType, width: int = 200) -> str:
    """Return the text without colours, with wrapped lines joined."""
    console = Console(width=width, file=io.StringIO(), no_color=True, highlight=False)
    console.print(view)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split())


def status(**other: Any) -> dict[str, Any]:
    usual = {
        "time": NOW,
        "policy": "locb",
        "version": "9.9",
        "started_at": NOW - 3700.0,
        "status": "ok",
        "detail": None,
        "users": 812,
        "rewarded_users": 640,
        "decisions": 12_345,
        "rewards": 11_900,
        "pending_rewards": 37,
        "decisions_per_second": 12.34,
        "rewards_per_second": 11.8,
        "cluster_based_share": 0.743,
        "clusters": {"returned": 2, "forming": 28},
        "backfilling": False,
        "rebuilding": False,
        "reward_scale_problem": None,
        "store": {"kind": "sqlite", "position": 24_245, "bytes": 14_200_000, "queued_requests": 3, "error": None},
        "snapshot": {"position": 20_000, "time": NOW - 720.0, "events_since": 4_245},
    }
    return usual | other


def history(**other: Any) -> dict[str, Any]:
    points = [
        {
            "time": NOW - 3600 + 10 * i,
            "decisions": 5,
            "cluster_based": 4,
            "rewards": 5,
            "mean": i / 100,
            "low": 0.0,
            "high": 1.0,
        }
        for i in range(60)
    ]
    usual = {
        "span": "hour",
        "step_seconds": 10,
        "points": points,
        "total": {"from": 0, "to": NOW, "rewards": 4_211, "mean": 0.6123, "low": 0.598, "high": 0.626},
        "baseline": {"from": 0, "to": 0, "rewards": 90, "mean": 0.56, "low": 0.5, "high": 0.6},
        "change": {"mean": 0.0523, "low": 0.031, "high": 0.073},
    }
    return usual | other


def groups(count: int = 30) -> dict[str, Any]:
    listed = [
        {
            "seed": f"[bold] {index}",
            "size": 90 - index,
            "returned": index < 2,
            "progress": 1.0 if index < 2 else 0.634,
            "certificate": 1.312,
            "certificate_exact": True,
            "rewards": 400,
            "mean_reward": 0.61,
            "top_features": [{"feature": "genre=drama", "weight": 0.62}, {"feature": "length", "weight": -0.31}],
        }
        for index in range(count)
    ]
    return {"total": 30, "returned": 2, "forming": 28, "max_distance": 2.0, "clusters": listed}


def snapshot(**other: Any) -> ServiceSnapshot:
    usual = {"url": "http://host:1", "time": NOW, "status": status(), "history": history(), "groups": groups()}
    return ServiceSnapshot(**(usual | other))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("plain", [False, True])
def test_service_view_shows_every_figure(width: int, plain: bool) -> None:
    text = printed(render_service(snapshot(), width, plain=plain), width)
    for figure in (
        "locb 9.9, policy locb, http://host:1",
        "Healthy. Uptime 1 h 1 min.",
        "12.3 decisions and 11.8 rewards per second",
        "12,345 decisions, 11,900 rewards; 37 rewards of the last 24 hours pending",
        "mean 0.612 in the last hour (4,211 rewards, 95% CI 0.598 to 0.626)",
        "+0.052 from 0.560 in the previous hour (95% CI +0.031 to +0.073)",
        "812 users, 640 with a reward",
        "2 final, 28 forming; 74% of decisions in the last hour used a group",
        "sqlite, 24,245 events, 14.2 MB; 3 requests queued for writing",
        "12 min old, 4,245 events since",
        "[bold] 7",
        "genre=drama +0.62, length −0.31",
        "forming 63%",
        "1.31",
    ):
        assert figure in text, figure
    assert any("\u2800" <= character <= "\u28ff" for character in text) != plain


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("height", [23, 30, 50])
def test_service_view_fits_the_terminal(width: int, height: int) -> None:
    view = render_service(snapshot(), width, height)
    assert count_lines(view, width) <= height
    assert count_lines(view, width) > height - 8, "more lines were free"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"status": None}, "Connecting …"),
        ({"problem": ConnectionProblem("Cannot connect.", NOW - 90)}, "Cannot connect. Since"),
        (
            {"problem": ConnectionProblem("Cannot connect.", NOW - 90)},
            "(1 min 30 s). Retrying. The figures below are from",
        ),
        ({"problem": ConnectionProblem("No.", NOW, permanent=True), "status": None}, "(0 s)."),
        ({"status": status(decisions=0)}, "No decisions yet."),
        (
            {"status": status(status="unavailable", detail="disk full")},
            "Store failure: disk full. Decisions and rewards are rejected",
        ),
        ({"status": status(backfilling=True)}, "Reading older events from the log"),
        ({"status": status(rebuilding=True)}, "Rebuilding the policy after the erasure of a user."),
        (
            {"status": status(reward_scale_problem="a reward of 500 is not in -0.5 … 1.5")},
            "about 0 to 1, but a reward of 500 is not in -0.5 … 1.5: start the service with a new store and",
        ),
        ({"status": status(snapshot=None)}, "Snapshot none yet"),
        (
            {"history": history(total={"rewards": 0, "mean": None, "low": None, "high": None})},
            "no rewards in the last hour",
        ),
        ({"history": history(baseline={"mean": None})}, "unknown: no rewards in the previous hour"),
        ({"history": history(span="month", baseline={"mean": None})}, "unknown: no rewards in the previous 30 days"),
        ({"baseline_label": "the period 2d/1d"}, "0.560 in the period 2d/1d"),
        ({"history": history(change=None)}, "unknown: too few rewards to compare with the previous hour"),
        ({"history": history(change={"mean": 0.01, "low": -0.1, "high": 0.1})}, "not significant"),
    ],
)
def test_problems_are_described(other: dict[str, Any], sentence: str) -> None:
    assert sentence in printed(render_service(snapshot(**other), 200))


@pytest.mark.parametrize("width", [60, 120])
def test_sure_members_replace_states(width: int) -> None:
    found = groups()
    for group in found["clusters"]:
        group |= {"progress": None, "returned": False, "sure_share": 0.714, "same_as": None}
    text = printed(render_service(snapshot(status=status(sure_users=512), groups=found), width), width)
    assert (
        "512 of 640 users with a reward belong to a group with a probability of at least 90%; 74% of decisions" in text
    )
    assert "71% sure members" in text
    assert "forming" not in text


def test_unknown_values_are_omitted() -> None:
    blank = groups(1)
    blank["clusters"][0] |= {
        "seed": None,
        "progress": None,
        "returned": False,
        "certificate": None,
        "mean_reward": None,
    }
    blank["clusters"][0]["top_features"] = []
    text = printed(render_service(snapshot(status=status(cluster_based_share=None), groups=blank, history=None), 80))
    assert "–: 90 users, forming" in text
    assert "%" not in text
    assert "preferences" not in text
    assert "Reward" not in text


@pytest.mark.parametrize(
    ("certificate", "max_distance", "shown"),
    [(2.0, 2.0, "2.00"), (2.01, 2.0, None), (None, 2.0, None), (2.01, 100.0, "2.01")],
)
def test_certificate_above_the_maximum_distance_is_not_shown(
    certificate: float | None, max_distance: float, shown: str | None
) -> None:
    single = groups(1) | {"max_distance": max_distance}
    single["clusters"][0] |= {"certificate": certificate}
    text = printed(render_service(snapshot(groups=single), 120))
    assert ("2.0" in text) == (shown is not None)
    assert shown is None or shown in text


USER = {
    "user": "ann",
    "served": 40,
    "theta": [0.1, 0.4, -0.3],
    "intervals": [[0.0, 0.2], [0.3, 0.5], [-0.5, -0.1]],
    "feature_indices": {},
    "rewards": 40,
    "mean_reward": 0.55,
    "clusters": [{"seed": "bob", "size": 12, "returned": True}, {"seed": None, "size": None, "returned": False}],
}
SOURCES = [
    {"kind": "cluster", "seed": "bob", "weight": 0.8, "users": 12, "observations": 345},
    {"kind": "user", "seed": "ann", "weight": 0.2, "users": 1, "observations": 9},
]
DECISION = {
    "decision_id": "d",
    "time": NOW - 60,
    "arm": "film [1]",
    "reward": 1.0,
    "reward_status": "received",
    "features": [0.0, 1.0, 0.0],
    "response": {
        "explanation": {
            "contributions": {"0": 0.1, "1": -0.42, "2": 0.0},
            "intercept": 0.25,
            "bonus": 0.08,
            "sources": SOURCES,
        }
    },
}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_user_view_explains_decisions(width: int) -> None:
    pending = DECISION | {"reward_status": "pending", "reward": None, "response": {"explanation": None}}
    defaulted = DECISION | {"reward_status": "default", "reward": 0.0}
    data = UserData("ann", USER, [{"user": "cat", "distance": 0.123, "radius": 0.1}], [DECISION, pending, defaulted])
    text = printed(render_user(snapshot(), data, width), width)
    for figure in (
        "from 40 rewards",
        "mean 0.550",
        "of bob (12 users, final); without a seed user (forming)",
        "cat (distance 0.12)",
        "1 +0.40 +0.30 to +0.50",
        "2 −0.30 −0.50 to −0.10",
        "film [1] reward 1 score: 1 −0.42, 0 +0.10, intercept +0.25, bonus +0.08",
        "based on the group of bob (12 users, 345 rewards), 80%; the user's own rewards (1 user, 9 rewards), 20%",
        "reward pending no explanation: the policy does not explain decisions",
        "no reward received, default 0",
    ):
        assert figure in text, figure


@pytest.mark.parametrize(
    ("kind", "seed", "label"),
    [
        ("neighbourhood", "bob", "the group of bob"),
        ("neighbourhood", None, "similar users"),
        ("component", None, "the group"),
        ("other", None, "other groups"),
        ("custom", None, "the custom"),
    ],
)
def test_evidence_sources_are_named_as_groups(kind: str, seed: str | None, label: str) -> None:
    source = {"kind": kind, "seed": seed, "weight": 1.0, "users": 12, "observations": 345}
    explanation = DECISION["response"]["explanation"] | {"sources": [source]}
    data = UserData("ann", USER, [], [DECISION | {"response": {"explanation": explanation}}])
    assert f"based on {label} (12 users, 345 rewards)" in printed(render_user(snapshot(), data, 80), 80)


def test_probabilities_and_screened_decisions_are_shown() -> None:
    groups = [
        {"seed": "bob", "size": None, "returned": False, "probability": 0.07, "same_as": None},
        {"seed": "cat", "size": None, "returned": False, "probability": 0.92, "same_as": None},
    ]
    explanation = DECISION["response"]["explanation"] | {"screened": True}
    decision = DECISION | {"response": {"explanation": explanation}}
    text = printed(render_user(snapshot(), UserData("ann", USER | {"clusters": groups}, [], [decision]), 120), 120)
    assert "of cat (probability 92%); of bob (probability 7%)" in text
    assert "the safety screen replaced the arm with the highest score" in text


def test_features_have_the_names_of_requests() -> None:
    user = USER | {"feature_indices": {"genre=drama": 1, "length": -2}}
    text = printed(render_user(snapshot(), UserData("ann", user, [], [DECISION]), 120), 120)
    assert "genre=drama +0.40 +0.30 to +0.50" in text
    assert "length +0.30 +0.10 to +0.50" in text
    assert "intercept +0.10 +0.00 to +0.20" in text
    assert "Estimated preferences feature" in text
    larger = user | {"feature_indices": {f"feature {index}": index % 3 for index in range(20)}}
    assert "the 8 largest of 21 weights" in printed(render_user(snapshot(), UserData("ann", larger, [], []), 120), 120)


def test_unknown_user() -> None:
    assert "Unknown user" in printed(render_user(snapshot(), UserData("zoe", None), 80), 80)
    assert "Connecting …" in printed(render_user(snapshot(status=None), None, 80), 80)
