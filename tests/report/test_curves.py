"""Curves of a comparison, and their data on a page."""

from dataclasses import replace

import numpy as np
import pytest

import locb
from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.results import MAX_MAP_USERS, ClusterHistory, Comparison, PolicyResult, UserMap, sample_users
from locb.report import curves
from locb.report.charts.line_charts import curve_chart
from locb.report.charts.report_maps import map_chart
from locb.report.pages.cluster_timeline import cluster_timeline_data


def comparison(earned: list[list[float]], checkpoints: list[int]) -> Comparison:
    blank = np.zeros(len(earned))
    regret = np.cumsum(np.ones((len(earned), len(checkpoints))), axis=1) * (1 + np.arange(len(earned)))[:, None]
    entry = PolicyResult(
        "a", 1.0, regret, blank, blank.astype(np.int64), blank, blank, cumulative_reward=np.array(earned)
    )
    settings = {"policies": ["a"], "alphas": [1.0], "rounds": checkpoints[-1], "repeats": len(earned)}
    return Comparison(settings, np.array(checkpoints), [entry], None, list(range(len(earned))))


def test_recent_reward_averages_the_last_rounds() -> None:
    at = [1, 10, 20, 40, 60, 80, 100]
    result = comparison([[1, 4, 9, 29, 39, 59, 79]], at)
    means = curves.recent_reward(result, result.results[0])
    # Windows have 5 rounds and start at the previous checkpoint; the first checkpoint is kept, because 5 / 5 = 1.
    assert means.tolist() == [[1.0, 3 / 9, 0.5, 1.0, 0.5, 1.0, 1.0]]
    long = comparison([list(range(1, 201))], list(range(10, 2001, 10)))
    means = curves.recent_reward(long, long.results[0])
    assert np.isnan(means[0, :1]).all()  # a mean over 10 of 2,000 rounds is not informative
    assert means[0, 1:] == pytest.approx(0.1)


def test_page_data_has_mean_band_and_repeats() -> None:
    result = comparison([[1.0, 2.0], [2.0, 4.0], [3.0, 3.0]], [1, 2])
    data = curves.curves_page_data(result)
    assert data.keys() == {"regret", "reward"}
    (line,) = data["regret"]["lines"]
    assert line["repeats"] == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    assert line["mean"] == [2.0, 4.0]
    assert line["high"][1] == pytest.approx(4.0 + ci_half_width([2.0, 4.0, 6.0]), rel=1e-5)
    assert line["low"] == [0.0, 0.0]  # bands are clipped at zero
    alone = comparison([[1.0, 2.0]], [1, 2])
    assert "low" not in curves.curves_page_data(alone)["regret"]["lines"][0]


def test_large_page_has_fewer_points(monkeypatch: pytest.MonkeyPatch) -> None:
    result = comparison([list(range(100))] * 2, list(range(1, 101)))
    assert len(curves.curves_page_data(result)["regret"]["rounds"]) == 100
    monkeypatch.setattr(curves, "MAX_PAGE_NUMBERS", 400)
    data = curves.curves_page_data(result)["regret"]
    assert data["rounds"][-1] == 100
    assert len(data["rounds"]) == len(data["lines"][0]["mean"]) == 34


def test_numbers_are_rounded_to_six_digits() -> None:
    assert curves.round_numbers([1 / 3, float("nan"), [1234567.0, 2.0]]) == [0.333333, None, [1234570.0, 2.0]]


def with_clusters(n_users: int) -> Comparison:
    result = comparison([[1.0, 2.0]], [1, 2])
    truth = [list(range(n_users // 2)), list(range(n_users // 2, n_users))]
    everyone = np.arange(n_users)
    clusters = [[everyone], [everyone[: n_users // 2], everyone[: n_users // 2 - 1]]]
    sample = sample_users(n_users)
    kept = [[members[np.isin(members, sample)] for members in found] for found in clusters]
    history = ClusterHistory(np.array([[1, 2]]), np.array([[0.6, 0.5]]), kept)
    theta = np.arange(3.0 * n_users).reshape(n_users, 3)
    entries = [replace(result.results[0], cluster_history=history), result.results[0]]
    return replace(
        result, results=entries, user_map=UserMap("a", theta, truth, []), cluster_checkpoints=np.array([1, 2])
    )


def test_cluster_timeline() -> None:
    data = cluster_timeline_data(with_clusters(6))
    assert data is not None
    assert data["sample"] == "All 6 users"
    assert data["true_cluster"] == [0, 0, 0, 1, 1, 1]
    assert data["entries"][1] is None
    assert data["entries"][0] == {
        "cluster": [[0] * 6, [0, 0, 0, -1, -1, -1]],
        "cluster_count": [[1] * 6, [2, 2, 1, 0, 0, 0]],
    }
    assert cluster_timeline_data(replace(with_clusters(6), user_map=None)) is None


def test_large_maps_show_a_fixed_sample() -> None:
    data = cluster_timeline_data(with_clusters(2_000))
    assert data is not None
    assert data["sample"] == "Random sample of 500 of 2,000 users"
    assert data["users"] == sample_users(2_000).tolist()
    assert {len(data[name]) for name in ("users", "x", "y", "true_cluster")} == {MAX_MAP_USERS}
    assert {len(row) for row in data["entries"][0]["cluster"]} == {MAX_MAP_USERS}
    assert max(max(row) for row in data["entries"][0]["cluster_count"]) == 2
    assert len(set(np.array(data["users"]) // 100)) == 20  # the sample is spread over all users


def test_page_charts_have_named_empty_datasets() -> None:
    spec = curve_chart(curves.CURVES[0], ["a", "b"]).to_dict()
    assert spec["data"] == {"name": "curves"}
    assert "datasets" not in spec
    assert spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["a", "b"]
    spec = map_chart(3).to_dict()
    assert spec["data"] == {"name": "users"}
    assert spec["encoding"]["color"]["scale"]["domain"] == ["1", "2", "3", "none"]
    assert map_chart(40).to_dict()["encoding"]["color"]["legend"] is None


def test_curves_of_a_real_comparison() -> None:
    environment = {"n_users": 12, "n_clusters": 2, "n_arms": 3}
    result = locb.compare(["club"], rounds=400, repeats=2, environment=environment, jobs=1)
    (entry,) = result.results
    curve_json = curves.curves_to_json(result, entry)
    assert np.allclose(curve_json["regret"], entry.regret, rtol=1e-5)
    assert curve_json["clusters"] == entry.cluster_history.count.tolist()
    before = np.flatnonzero(result.checkpoints <= 380)[-1]
    last = (entry.cumulative_reward[:, -1] - entry.cumulative_reward[:, before]) / (400 - result.checkpoints[before])
    assert [row[-1] for row in curve_json["reward"]] == pytest.approx(last.tolist(), rel=1e-5)
