"""What the terminal shows of a service and a user: every figure, in words, whatever the width."""

import io
import json
from typing import Any

import pytest
from rich.console import Console, RenderableType

from locb.report.terminal.layout import lines_of
from locb.report.terminal.plot import Line, plot
from locb.report.terminal.service_view import Seen, Trouble, service_view
from locb.report.terminal.user_view import Person, user_view

NOW = 1_000_000.0


def told(shown: RenderableType, width: int = 200) -> str:
    """As it is printed without colours, with what was wrapped joined again."""
    console = Console(width=width, file=io.StringIO(), no_color=True, highlight=False)
    console.print(shown)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return " ".join(text.split())


def now(**other: Any) -> dict[str, Any]:
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
            "seed": f"[bold] {place}",
            "size": 90 - place,
            "returned": place < 2,
            "progress": 1.0 if place < 2 else 0.634,
            "certificate": 1.312,
            "certificate_exact": True,
            "rewards": 400,
            "mean_reward": 0.61,
            "top_features": [{"feature": "genre=drama", "weight": 0.62}, {"feature": "length", "weight": -0.31}],
        }
        for place in range(count)
    ]
    return {"total": 30, "returned": 2, "forming": 28, "clusters": listed}


def seen(**other: Any) -> Seen:
    usual = {"url": "http://host:1", "time": NOW, "now": now(), "history": history(), "groups": groups()}
    return Seen(**(usual | {"baseline_told": "the hour before"} | other))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("plain", [False, True])
def test_every_figure_of_a_service_is_there(width: int, plain: bool) -> None:
    text = told(service_view(seen(), width, plain=plain), width)
    for figure in (
        "locb 9.9, policy locb, http://host:1",
        "All is well. Up for 1 h 1 min.",
        "12.3 decisions and 11.8 rewards a second",
        "12,345 decisions, 11,900 rewards; 37 decisions wait for their rewards",
        "0.612 on average in the last hour (4,211 rewards, 95% interval 0.598 to 0.626)",
        "+0.052 against 0.560 in the hour before (95% interval +0.031 to +0.073)",
        "812 users, 640 of them with a reward learned",
        "2 returned, 28 forming; 74% of the last hour's decisions rest on one",
        "sqlite, 24,245 events, 14.2 MB; 3 requests wait for the disk",
        "12 min old, 4,245 events came after it",
        "[bold] 7",
        "genre=drama +0.62, length −0.31",
        "forming 63%",
        "1.31",
    ):
        assert figure in text, figure
    assert any("\u2800" <= character <= "\u28ff" for character in text) != plain


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("height", [23, 30, 50])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    shown = service_view(seen(), width, height)
    assert lines_of(shown, width) <= height
    assert lines_of(shown, width) > height - 8, "there was room for more"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"now": None}, "Asking …"),
        ({"trouble": Trouble("It cannot be reached.", NOW - 90)}, "It cannot be reached. Since"),
        (
            {"trouble": Trouble("It cannot be reached.", NOW - 90)},
            "(1 min 30 s). Asking again. What follows was seen at",
        ),
        ({"trouble": Trouble("No.", NOW, lasts=True), "now": None}, "(0 s)."),
        ({"now": now(decisions=0)}, "No data yet: nothing has been decided."),
        (
            {"now": now(status="unavailable", detail="disk full")},
            "The store fails: disk full. Decisions and rewards are",
        ),
        ({"now": now(backfilling=True)}, "The past of the log is still being read"),
        ({"now": now(rebuilding=True)}, "The policy is being made anew, since a user was erased."),
        ({"now": now(snapshot=None)}, "Snapshot none yet"),
        ({"history": history(total={"rewards": 0, "mean": None, "low": None, "high": None})}, "none in the last hour"),
        ({"history": history(baseline={"mean": None})}, "cannot be told: no reward in the hour before"),
        ({"history": history(change=None)}, "cannot be told: too few rewards beside the hour before"),
        ({"history": history(change={"mean": 0.01, "low": -0.1, "high": 0.1})}, "which may be chance"),
    ],
)
def test_a_bad_state_has_its_sentence(other: dict[str, Any], sentence: str) -> None:
    assert sentence in told(service_view(seen(**other), 200))


def test_what_is_not_known_is_not_made_up() -> None:
    blank = groups(1)
    blank["clusters"][0] |= {
        "seed": None,
        "progress": None,
        "returned": False,
        "certificate": None,
        "mean_reward": None,
    }
    blank["clusters"][0]["top_features"] = []
    text = told(service_view(seen(now=now(cluster_based_share=None), groups=blank, history=None), 80))
    assert "–: 90 users, forming" in text
    assert "%" not in text
    assert "likes" not in text
    assert "Reward" not in text


@pytest.mark.parametrize(("certificate", "words"), [(2.0, "2.00"), (2.01, None), (None, None)])
def test_a_certificate_beyond_two_says_nothing(certificate: float | None, words: str | None) -> None:
    one = groups(1)
    one["clusters"][0] |= {"certificate": certificate}
    text = told(service_view(seen(groups=one), 120))
    assert ("2.0" in text) == (words is not None)
    assert words is None or words in text


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
LENDERS = [
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
            "sources": LENDERS,
        }
    },
}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_user_is_explained(width: int) -> None:
    waiting = DECISION | {"reward_status": "pending", "reward": None, "response": {"explanation": None}}
    late = DECISION | {"reward_status": "default", "reward": 0.0}
    person = Person("ann", USER, [{"user": "cat", "distance": 0.123, "radius": 0.1}], [DECISION, waiting, late])
    text = told(user_view(seen(), person, width), width)
    for figure in (
        "from 40 rewards",
        "0.550 on average",
        "that of bob (12 users, returned); one (forming)",
        "cat (0.12 away)",
        "1 +0.40 +0.30 to +0.50",
        "2 −0.30 −0.50 to −0.10",
        "film [1] earned 1 1 −0.42, 0 +0.10, intercept +0.25; bonus +0.08",
        "rests on a cluster around bob (12 users, 345 rewards), 80%; their own rewards (1 user, 9 rewards), 20%",
        "waits for its reward not explained by this policy",
        "no reward came, learned as 0",
    ):
        assert figure in text, figure


def test_features_are_told_by_the_names_that_requests_give() -> None:
    user = USER | {"feature_indices": {"genre=drama": 1, "length": -2}}
    text = told(user_view(seen(), Person("ann", user, [], [DECISION]), 120), 120)
    assert "genre=drama +0.40 +0.30 to +0.50" in text
    assert "length +0.30 +0.10 to +0.50" in text
    assert "constant +0.10 +0.00 to +0.20" in text
    assert "What they like, as far as it is known feature" in text
    many = user | {"feature_indices": {f"word {place}": place % 3 for place in range(20)}}
    assert "the 8 largest of 21 features" in told(user_view(seen(), Person("ann", many, [], []), 120), 120)


def test_nobody_of_that_name() -> None:
    assert "There is no user of this name here" in told(user_view(seen(), Person("zoe", None), 80), 80)
    assert "Asking …" in told(user_view(seen(now=None), None, 80), 80)


def dots(text: str) -> int:
    return sum((ord(character) - 0x2800).bit_count() for character in text if "\u2800" <= character <= "\u28ff")


def test_a_line_goes_where_its_points_are() -> None:
    flat = plot([Line([0, 1], [2.0, 2.0])], 40, 5, y_told="{:.1f}".format, x_told="{:.0f}".format).plain.splitlines()
    drawn = [dots(row) > 0 for row in flat]
    assert drawn == [False, False, True, False, False, False]
    assert flat[0].startswith("2.1 ┤")
    assert flat[4].startswith("1.9 ┤")
    steep = plot([Line([0, 1, 2], [0.0, 0.0, 9.0])], 40, 5, y_told="{:.0f}".format, x_told="{:.0f}".format).plain
    assert dots(steep) >= 20 + 34  # every dot of the height is passed, and every one of the width
    assert steep.splitlines()[-1].split() == ["0", "2"]


def test_points_far_apart_are_not_joined() -> None:
    joined = Line([0, 1, 2, 9, 10], [1.0, 1.0, 1.0, 1.0, 1.0])
    apart = Line(joined.xs, joined.ys, gap=3.0)
    counts = [
        dots(plot([line], 60, 4, y_told="{:.0f}".format, x_told="{:.0f}".format).plain) for line in (joined, apart)
    ]
    assert counts[1] < 0.5 * counts[0]


def test_names_of_lines_do_not_meet() -> None:
    lines = [Line([0, 1], [0.0, end], name=name) for name, end in (("one", 1.0), ("two", 0.99), ("three", 0.0))]
    rows = plot(lines, 60, 6, y_told="{:.1f}".format, x_told="{:.0f}".format).plain.splitlines()
    assert [row.split()[-1] for row in rows if row.split()[-1].isalpha()] == ["one", "two", "three"]


def test_intervals_are_shaded_and_their_edges_set_the_scale() -> None:
    line = Line([0, 1, 2], [0.5, 0.5, 0.5], [0.0, 0.4, 0.5], [1.0, 0.6, 0.5])
    rows = plot([line], 60, 9, y_told="{:.1f}".format, x_told="{:.0f}".format).plain.splitlines()
    shaded = [row.count("░") for row in rows[:9]]
    assert rows[0].startswith("1.0 ┤░")
    assert shaded[0] < shaded[3] > 0
    assert json.dumps(shaded) == json.dumps(shaded[::-1])
