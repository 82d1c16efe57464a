"""What a report holds over rounds: the numbers of the runs, in as many points as a page can take."""

from dataclasses import replace

import numpy as np
import pytest

import locb
from locb.evaluation.results import (
    MAX_MAP_USERS,
    ClusterHistory,
    Comparison,
    PolicyResult,
    UserMap,
    ci_half_width,
    sample_users,
)
from locb.report import curves
from locb.report.charts import curve_chart, map_chart
from locb.report.pages.cluster_timeline import forming_shown


def comparison(earned: list[list[float]], checkpoints: list[int]) -> Comparison:
    blank = np.zeros(len(earned))
    regret = np.cumsum(np.ones((len(earned), len(checkpoints))), axis=1) * (1 + np.arange(len(earned)))[:, None]
    entry = PolicyResult(
        "a", 1.0, regret, blank, blank.astype(np.int64), blank, blank, cumulative_reward=np.array(earned)
    )
    settings = {"policies": ["a"], "alphas": [1.0], "rounds": checkpoints[-1], "repeats": len(earned)}
    return Comparison(settings, np.array(checkpoints), [entry], None, list(range(len(earned))))


def test_the_reward_is_that_of_the_rounds_before() -> None:
    at = [1, 10, 20, 40, 60, 80, 100]
    result = comparison([[1, 4, 9, 29, 39, 59, 79]], at)
    means = curves.recent_reward(result, result.results[0])
    # Windows are of 5 rounds, so they go back to the checkpoint before; the first of one round counts, 5 / 5 = 1.
    assert means.tolist() == [[1.0, 3 / 9, 0.5, 1.0, 0.5, 1.0, 1.0]]
    long = comparison([list(range(1, 201))], list(range(10, 2001, 10)))
    means = curves.recent_reward(long, long.results[0])
    assert np.isnan(means[0, :1]).all()  # 10 of 2,000 rounds say nothing
    assert means[0, 1:] == pytest.approx(0.1)


def test_a_page_has_mean_band_and_repeats() -> None:
    result = comparison([[1.0, 2.0], [2.0, 4.0], [3.0, 3.0]], [1, 2])
    shown = curves.curves_shown(result)
    assert shown.keys() == {"regret", "reward"}
    (line,) = shown["regret"]["lines"]
    assert line["repeats"] == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    assert line["mean"] == [2.0, 4.0]
    assert line["high"][1] == pytest.approx(4.0 + ci_half_width([2.0, 4.0, 6.0]), rel=1e-5)
    assert line["low"] == [0.0, 0.0]  # regret is never below zero
    alone = comparison([[1.0, 2.0]], [1, 2])
    assert "low" not in curves.curves_shown(alone)["regret"]["lines"][0]


def test_a_page_that_would_be_too_large_has_fewer_points(monkeypatch: pytest.MonkeyPatch) -> None:
    result = comparison([list(range(100))] * 2, list(range(1, 101)))
    assert len(curves.curves_shown(result)["regret"]["rounds"]) == 100
    monkeypatch.setattr(curves, "LARGEST", 400)
    shown = curves.curves_shown(result)["regret"]
    assert shown["rounds"][-1] == 100
    assert len(shown["rounds"]) == len(shown["lines"][0]["mean"]) == 34


def test_numbers_have_six_digits() -> None:
    assert curves.plain([1 / 3, float("nan"), [1234567.0, 2.0]]) == [0.333333, None, [1234570.0, 2.0]]


def forming(n_users: int) -> Comparison:
    result = comparison([[1.0, 2.0]], [1, 2])
    truth = [list(range(n_users // 2)), list(range(n_users // 2, n_users))]
    everyone = np.arange(n_users)
    sets = [[everyone], [everyone[: n_users // 2], everyone[: n_users // 2 - 1]]]
    drawn = sample_users(n_users)
    kept = [[members[np.isin(members, drawn)] for members in found] for found in sets]
    grown = ClusterHistory(np.array([[1, 2]]), np.array([[0.6, 0.5]]), kept)
    theta = np.arange(3.0 * n_users).reshape(n_users, 3)
    entries = [replace(result.results[0], cluster_history=grown), result.results[0]]
    return replace(
        result, results=entries, user_map=UserMap("a", theta, truth, []), cluster_checkpoints=np.array([1, 2])
    )


def test_the_map_tells_who_is_where_at_each_moment() -> None:
    shown = forming_shown(forming(6))
    assert shown is not None
    assert shown["how"] == "All 6 users"
    assert shown["true"] == [0, 0, 0, 1, 1, 1]
    assert shown["entries"][1] is None
    assert shown["entries"][0] == {
        "group": [[0] * 6, [0, 0, 0, -1, -1, -1]],
        "sets": [[1] * 6, [2, 2, 1, 0, 0, 0]],
    }
    assert forming_shown(replace(forming(6), user_map=None)) is None


def test_of_many_users_some_are_drawn_always_the_same() -> None:
    shown = forming_shown(forming(2_000))
    assert shown is not None
    assert shown["how"] == "500 of 2,000 users, drawn by chance"
    assert shown["users"] == sample_users(2_000).tolist()
    assert {len(shown[name]) for name in ("users", "x", "y", "true")} == {MAX_MAP_USERS}
    assert {len(row) for row in shown["entries"][0]["group"]} == {MAX_MAP_USERS}
    assert max(max(row) for row in shown["entries"][0]["sets"]) == 2
    assert len(set(np.array(shown["users"]) // 100)) == 20  # from everywhere


def test_charts_to_be_filled_hold_no_data() -> None:
    spec = curve_chart(curves.CURVES[0], ["a", "b"]).to_dict()
    assert spec["data"] == {"name": "curves"}
    assert "datasets" not in spec
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["a", "b"]
    spec = map_chart(3).to_dict()
    assert spec["data"] == {"name": "users"}
    assert spec["encoding"]["color"]["scale"]["domain"] == ["1", "2", "3", "none"]
    assert map_chart(40).to_dict()["encoding"]["color"]["legend"] is None


def test_a_run_gives_what_it_played() -> None:
    world = {"n_users": 12, "n_clusters": 2, "n_arms": 3}
    result = locb.compare(["club"], rounds=400, repeats=2, world=world, jobs=1)
    (entry,) = result.results
    kept = curves.curves_json(result, entry)
    assert np.allclose(kept["regret"], entry.regret, rtol=1e-5)
    assert kept["clusters"] == entry.cluster_history.count.tolist()
    before = np.flatnonzero(result.checkpoints <= 380)[-1]
    last = (entry.cumulative_reward[:, -1] - entry.cumulative_reward[:, before]) / (400 - result.checkpoints[before])
    assert [row[-1] for row in kept["reward"]] == pytest.approx(last.tolist(), rel=1e-5)
