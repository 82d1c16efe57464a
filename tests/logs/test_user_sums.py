"""Sums of each user from one pass over a log: exact for any size of batches, and equal to slow sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.mixture import GaussianMixture

import locb
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.groups.moments import add_rows
from locb.logs.arm_features import identity_features
from locb.logs.groups.mixture import (
    compute_evidence,
    fit_population,
    group_evidence,
    line_positions,
    separation,
    within_variance,
)
from locb.logs.groups.row_source import open_rows
from locb.logs.groups.stability import draw_noise, ridge_solutions
from locb.logs.groups.sum_pass import sum_by_user
from locb.logs.groups.user_sums import UserSums
from logs.group_oracle import draw_scenario, log_evidence, user_rows

FEATURES = ["price", "length"]


def shop(count: int = 500) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    frame: dict[str, Any] = {"user": [f"u{user}" for user in rng.integers(30, size=count)]}
    frame |= {"reward": (1000 + 20 * rng.random(count)).round(2), "price": (50 + 9 * rng.random(count)).round(1)}
    return frame | {"length": rng.integers(1, 9, size=count), "kind": rng.choice(["a", "b", "c"], size=count)}


def sums_of(source: Any, batch_rows: int = 100, **options: Any) -> UserSums:
    return sum_by_user(open_rows(source, "auto", {"features": FEATURES} | options), batch_rows=batch_rows)


@pytest.mark.parametrize("kind", ["csv", "parquet", "ndjson", "two files", "frame", "lazy", "mapping"])
def test_equal_to_slow_sums(tmp_path: Path, kind: str) -> None:
    frame = shop()
    table = pl.DataFrame(frame)
    source: Any = {"frame": table, "lazy": table.lazy()}.get(kind, frame)
    if kind == "csv":
        table.write_csv(source := tmp_path / "log.csv", separator=";")
    elif kind == "parquet":
        table.write_parquet(source := tmp_path / "log.parquet", row_group_size=64)
    elif kind == "ndjson":
        table.write_ndjson(source := tmp_path / "log.jsonl")
    elif kind == "two files":
        table.head(123).write_parquet(tmp_path / "a.parquet")
        table.tail(377).write_parquet(tmp_path / "b.parquet")
        source = tmp_path
    sums = sums_of(source)
    x = np.stack([np.asarray(frame[name], float) for name in FEATURES], axis=1)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    low, high = frame["reward"].min(), frame["reward"].max()
    assert sums.ids.to_list() == list(dict.fromkeys(frame["user"]))
    assert sums.is_standardized
    for index, user in enumerate(sums.ids):
        own, rewards = user_rows(frame, FEATURES, user)
        standard = np.hstack([(own - mean) / deviation / 2.0, np.full((len(own), 1), np.sqrt(0.5))])
        mapped = (rewards - low) / (high - low)
        row = sums.block(slice(index, index + 1))[0]
        np.testing.assert_allclose(row[:3], standard.T @ mapped, atol=1e-9)
        np.testing.assert_allclose(unpack_symmetric(row[3:], 3), standard.T @ standard, atol=1e-9)
        np.testing.assert_allclose(sums.squares[index], mapped @ mapped, atol=1e-9)
        np.testing.assert_allclose(sums.rewards[index], rewards.sum())
        assert sums.counts[index] == len(own)
    assert sums.sigma == pytest.approx(0.5)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_size_of_batches_does_not_change_a_bit(tmp_path: Path, suffix: str) -> None:
    table = pl.DataFrame(shop(300))
    path = tmp_path / f"log.{suffix}"
    table.write_csv(path) if suffix == "csv" else table.write_parquet(path, row_group_size=70)
    found = [sums_of(path, rows, features=[*FEATURES, "kind"]) for rows in (1, 17, 100, 10**6)]
    for sums in found[1:]:
        assert sums.ids.to_list() == found[0].ids.to_list()
        assert sums.rows.tobytes() == found[0].rows.tobytes()
        assert sums.squares.tobytes() == found[0].squares.tobytes()


def shop_with_outliers() -> dict[str, Any]:
    """Return a log of 2,000 visits, of which 600 have rewards around 20 and 4 of these rewards are 50 times larger."""
    rng = np.random.default_rng(8)
    reward = np.where(np.arange(2_000) % 10 < 3, rng.normal(20.0, 3.0, size=2_000), 0.0)
    reward[[11, 510, 901, 1910]] *= 50.0
    return {"user": rng.integers(30, size=2_000), "price": rng.random(2_000), "reward": reward}


def test_outliers_are_limited_and_other_rewards_are_not() -> None:
    frame = shop_with_outliers()
    rewards, others = frame["reward"], frame["reward"][frame["reward"] != 0]
    limit = 2 * np.quantile(others, 0.975)  # the median is 0
    sums = sum_by_user(open_rows(frame, "auto", {"features": ["price"]}), robust=True)
    assert sums.limits is not None
    assert sums.limits.high == pytest.approx(limit, rel=0.01)
    assert sums.limits.rows == (rewards > limit).sum() == 4
    squares = (rewards - rewards.mean()) ** 2
    assert sums.limits.share == pytest.approx(squares[rewards > limit].sum() / squares.sum(), rel=1e-3)
    expected = sums_of(frame | {"reward": rewards.clip(None, sums.limits.high)}, features=["price"])
    assert sums.rows.tobytes() == expected.rows.tobytes()
    assert sums.squares.tobytes() == expected.squares.tobytes()
    np.testing.assert_allclose(sums.rewards, sums_of(frame, features=["price"]).rewards)  # means have no limits
    assert "4 of 2,000 rows (0.20%) have rewards above" in sums.limits.describe()
    clicks = np.where(np.arange(2_000) < 3, 1.0, 0.0)  # three rows have all of the variance
    revenue = np.random.default_rng(1).exponential(size=2_000)
    for usual in (clicks, clicks * 500, revenue, rewards.clip(None, 60.0), np.ones(2_000)):
        same = sum_by_user(open_rows(frame | {"reward": usual}, "auto", {"features": ["price"]}), robust=True)
        assert same.limits is None


def test_limits_do_not_depend_on_batches_and_count_skipped_rows_once() -> None:
    frame = shop_with_outliers()
    frame["price"] = [None, *frame["price"][1:].tolist()]
    found = []
    for rows in (7, 10**6):
        source = open_rows(frame, "auto", {"features": ["price"]})
        found.append(sum_by_user(source, batch_rows=rows, robust=True))
        assert [skipped.count for skipped in source.skipped] == [1]
    assert found[0].limits == found[1].limits is not None
    assert found[0].rows.tobytes() == found[1].rows.tobytes()


def test_noise_of_sums_is_that_of_rows() -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    gram = x.T @ x
    rows = np.tile(np.append(np.zeros(3), gram[np.triu_indices(3)]), (40_000, 1))
    noise = draw_noise(rows, 3, 0.3, np.random.default_rng(1))
    np.testing.assert_allclose(noise.T @ noise / len(noise), 0.3 * gram, atol=0.05)
    np.testing.assert_allclose(ridge_solutions(rows, noise)[-1], np.linalg.solve(np.eye(3) + gram, noise[-1]))


def test_evidence_equals_the_density_of_the_rewards() -> None:
    drawn = draw_scenario(9, n_users=5, rows=100, n_clusters=1)
    sums = sum_by_user(open_rows(drawn.frame, "auto", {"features": drawn.vector}))
    rows, noise, variance = sums.block(slice(None)), 0.2, within_variance(0.5, sums.dim)
    population = fit_population(rows, noise, sums.dim)
    evidence = compute_evidence(rows, population, variance, sums.dim)
    centres = np.random.default_rng(1).normal(size=(3, sums.dim))
    found = group_evidence(evidence, centres)
    covariance = np.linalg.inv(unpack_symmetric(population.prior[0, sums.dim :], sums.dim))
    for index, user in enumerate(sums.ids):
        x, r = user_rows(drawn.frame, drawn.vector, user)
        for group, centre in enumerate(centres):
            expected = log_evidence(x, r, centre, variance * np.eye(sums.dim), noise)
            assert found[index, group] == pytest.approx(expected, abs=1e-8)
        expected = log_evidence(x, r, population.prior[1, : sums.dim], covariance, noise)
        assert found[index, -1] == pytest.approx(expected, abs=1e-8)


def test_separation_equals_mixtures_of_normal_distributions() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.normal(np.repeat([0.2, 0.8], 40), 0.15)
    rows = np.column_stack([9 * rewards, np.full(80, 9.0)])  # nine rows with the feature 1 and this mean reward
    single, double = (
        GaussianMixture(count, covariance_type="tied", reg_covar=0.0, tol=1e-9, max_iter=1000, random_state=0)
        .fit(rewards[:, None])
        .score(rewards[:, None])
        for count in (1, 2)
    )
    expected = 80 * (double - single) - 2 * np.log(80)
    assert separation(*line_positions(rows, np.array([0.8]), np.array([0.2]))) == pytest.approx(expected, abs=0.05)
    assert expected > 0 > separation(*line_positions(rows[:40], np.array([0.3]), np.array([0.1])))


def test_positions_on_a_line_equal_slow_ones() -> None:
    rng = np.random.default_rng(2)
    x, first, second = rng.normal(size=(9, 3)), rng.normal(size=3), rng.normal(size=3)
    gram, line = x.T @ x, first - second
    for centre, expected in ((first, 0.5), (second, -0.5), (0.75 * first + 0.25 * second, 0.25)):
        rows = np.append(gram @ centre, gram[np.triu_indices(3)])[None]
        position, precision = line_positions(rows, first, second)
        np.testing.assert_allclose([position[0], precision[0]], [expected, line @ gram @ line])


def test_features_of_norm_one_are_used_as_they_are() -> None:
    frame = {"user": [1, 1, 2], "reward": [0.0, 1.0, 1.0], "x": [[0.6, 0.8], [1.0, 0.0], [0.0, -1.0]]}
    sums = sums_of(frame, features=["x"])
    assert not sums.is_standardized
    assert sums.names == ["x[0]", "x[1]"]
    np.testing.assert_allclose(sums.block(slice(None)), [[1.0, 0.0, 1.36, 0.48, 0.64], [0.0, -1.0, 0.0, 0.0, 1.0]])


def test_arms_of_a_table_and_of_a_log() -> None:
    frame = {"user": ["a", "a", "b"], "arm": ["x", "y", "y"], "reward": [3.0, 5.0, 9.0]}
    table = sum_by_user(open_rows(frame, "auto", {}))
    log = sum_by_user(open_rows(locb.Log.read(frame), "auto", {}))
    for sums in (table, log):
        assert sums.names == ["x", "y"]
        assert sums.offsets.tolist() == [3.0, 3.0]  # the lowest reward
        np.testing.assert_allclose(sums.block(slice(None)), [[0, 1 / 3, 1, 0, 1], [0, 1, 0, 0, 1]], atol=1e-12)


def test_rows_without_a_chosen_arm_are_skipped() -> None:
    frame = {"user": ["a", "a", "b"], "arm": ["film", None, "book"], "reward": [3.0, 40.0, 9.0]}
    for options in ({}, {"features": ["arm"]}):
        source = open_rows(frame, "auto", options)
        sums = sum_by_user(source)
        assert sums.rewards.tolist() == [3.0, 9.0]
        (skipped,) = source.skipped
        what = "the feature" if options else "the chosen arm"
        assert str(skipped) == f"skipped 1 row: {what} (arm) is missing (for example row 2)"


def test_arms_beyond_the_catalogue_are_hashed() -> None:
    frame = {"user": [1] * 100, "arm": [f"item {number}" for number in range(100)], "reward": [1.0] * 100}
    sums = sum_by_user(open_rows(frame, "auto", {}))
    assert len(sums.names) == 64
    assert sums.dim == np.linalg.matrix_rank(identity_features(sorted(frame["arm"])))  # others are unused
    assert not sums.offsets.any()


def test_unusable_rows_are_counted(tmp_path: Path) -> None:
    text = "user;reward;price\na;1,5;2\n;1;2\nb;viel;2\nb;;2\nb;0,5;x\nb;0,25;3\n"
    (tmp_path / "log.csv").write_text(text)
    source = open_rows(tmp_path / "log.csv", "auto", {"features": ["price"]})
    sums = sum_by_user(source, batch_rows=2)
    assert sums.rewards.tolist() == [1.5, 0.25]
    assert [str(rows) for rows in source.skipped] == [
        "skipped 1 row: the user (user) is missing (for example row 2)",
        "skipped 1 row: the reward (reward) is not a number (for example row 3: 'viel')",
        "skipped 1 row: the reward (reward) is missing (for example row 4)",
        "skipped 1 row: the feature (price) is missing or not a number (for example row 5: 'x')",
    ]
    filled = sum_by_user(open_rows(tmp_path / "log.csv", "auto", {"features": ["price"], "missing_reward": 0}))
    assert filled.counts.tolist() == [1.0, 2.0]


def test_ids_are_kept() -> None:
    frame = {"shop": ["a", "a", "b"], "customer": [1.0, 2.0, 1.5], "x": [1.0, 0.0, 1.0], "reward": [0.0, 1.0, 1.0]}
    sums = sums_of(frame, user=["shop", "customer"], features=["x"])
    assert sums.ids.to_list() == ["a/1", "a/2", "b/1.5"]
    assert sums_of(frame | {"user": [7, 7, 9]}, features=["x"]).ids.to_list() == [7, 9]


def test_kernel_is_compiled_once() -> None:
    before = {*add_rows.signatures}
    for reward in ([0.0, 1.0], ["0.5", "1"], ["5 €", "9 €"], [None, 1.0]):
        sums_of({"user": ["a", "b"], "x": [0.1, 0.2], "reward": reward}, features=["x"])
    assert len({*add_rows.signatures} | before) == 1  # arrays from Polars are read-only or not


def test_memory_limit() -> None:
    frame = {"user": np.arange(5000), "reward": np.ones(5000), "x": np.ones(5000)}
    with pytest.raises(
        ValueError, match=r"max_memory must be at least 0\.000224 \(GiB\) for 5,000 users and 1 features"
    ):
        sum_by_user(open_rows(frame, "auto", {"features": ["x"]}), max_memory=1e-4)
