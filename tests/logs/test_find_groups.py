"""Groups of users with similar preferences: accuracy, certificates, the three methods, and users with few rows."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse.csgraph import connected_components

import locb
from locb.logs.groups.gamma_choice import GammaScore, choose_gamma
from locb.logs.groups.stability import measure_stability
from logs.group_oracle import Scenario, draw_scenario, ellipsoid, standardize, true_width, user_rows

SEEDS = range(5)


@cache
def scenario(seed: int) -> Scenario:
    return draw_scenario(seed)


@cache
def groups_of(seed: int, method: str = "eloc", gamma: float | None = None) -> locb.UserGroups:
    drawn = scenario(seed)
    return locb.find_groups(drawn.frame, features=drawn.features, method=method, gamma=gamma, replicates=0)


def members_of(found: locb.UserGroups) -> list[Any]:
    return [found.members(group)["user"].to_numpy() for group in range(found.groups.height)]


@pytest.mark.parametrize("seed", SEEDS)
def test_f1_of_users_with_100_rows(seed: int) -> None:
    drawn, known = scenario(seed), np.flatnonzero(scenario(seed).counts >= 100)
    truth = [kept for members in drawn.truth if (kept := np.intersect1d(members, known)).size]
    found = [kept for members in members_of(groups_of(seed)) if (kept := np.intersect1d(members, known)).size]
    assert locb.match_clusters(found, truth).f1 >= 0.95


@pytest.mark.parametrize(("method", "gamma"), [("eloc", None), ("locb", 1.6), ("off-club", None)])
def test_certificates_are_at_least_the_true_width(method: str, gamma: float | None) -> None:
    informative = 0
    for seed in SEEDS:
        drawn = draw_scenario(seed, n_users=24, rows=48_000, raw_dim=2, n_clusters=3)
        found = locb.find_groups(
            drawn.frame, features=drawn.vector, method=method, gamma=gamma, replicates=0, norm_bound=1.0
        )
        for members, row in zip(members_of(found), found.groups.iter_rows(named=True), strict=True):
            assert row["certificate"] >= true_width(drawn.theta, members)
            informative += row["certificate"] < 2.0
            core = found.members(row["group"]).sort("radius")["user"].head(max(2, round(len(members) / 2)))
            assert row["core_certificate"] >= true_width(drawn.theta, core)
            if method == "locb":
                assert row["certificate"] <= 1.6
    assert informative >= (0 if method == "off-club" else 5)


def test_radii_and_components_equal_slow_ones() -> None:
    drawn = draw_scenario(3, n_users=40, rows=40_000, raw_dim=2)
    counts = []
    for alpha in (0.05, 0.1, 0.15, 0.2, 0.35):
        found = locb.find_groups(
            drawn.frame,
            features=drawn.vector,
            method="off-club",
            alpha=alpha,
            replicates=0,
            norm_bound=1.0,
            gamma=0.2,
        )
        order = found.users["user"].to_list()
        rows = [ellipsoid(*user_rows(drawn.frame, drawn.vector, user), 40, 0.5, 0.1, 1.0) for user in order]
        theta, radii = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        np.testing.assert_allclose(found.theta, theta, atol=1e-10)
        np.testing.assert_allclose(found.users["radius"], radii, rtol=1e-10)
        joined = np.linalg.norm(theta[:, None] - theta[None], axis=2) <= alpha * (radii[:, None] + radii[None])
        count, labels = connected_components(joined)
        expected = {frozenset(np.array(order)[labels == label].tolist()) for label in range(count)}
        alone = found.users.filter(pl.col("status") == "alone")["user"]
        single = {frozenset([user]) for user in alone}
        assert {frozenset(members.tolist()) for members in members_of(found)} | single == expected
        assert (found.groups["users"] > 1).all()
        counts.append(count)
    assert len(set(counts)) >= 3


def test_members_of_locb_are_within_half_of_gamma_of_a_seed() -> None:
    drawn = draw_scenario(3, n_users=40, rows=80_000, raw_dim=2)
    found = locb.find_groups(drawn.frame, features=drawn.vector, method="locb", gamma=1.5, replicates=0)
    radii, theta = found.users["radius"].to_numpy(), found.theta
    group = found.users["group"].fill_null(-1).to_numpy()
    assert found.groups.height >= 2
    for number in range(found.groups.height):
        members = np.flatnonzero(group == number)
        seed = members[radii[members].argmin()]
        assert (np.linalg.norm(theta[members] - theta[seed], axis=1) + radii[members] <= 0.75 + 1e-12).all()
    unknown = found.users.filter(pl.col("status") == "not enough data to tell")
    assert (unknown["radius"] > 0.75).all()
    with pytest.raises(ValueError, match="gamma must be above .* no user has a confidence radius"):
        locb.find_groups(drawn.frame, features=drawn.vector, method="locb", gamma=0.1)


def test_users_with_few_rows_are_not_assigned() -> None:
    drawn = scenario(0)
    columns = {name: values for name, values in drawn.frame.items() if name not in drawn.vector}
    new = {name: np.append(values, [values[0]] * 30) for name, values in columns.items()}
    new["user"][-30:] = np.arange(1000, 1030)  # 30 users with one row each
    found = locb.find_groups(new, features=drawn.features, replicates=0)
    status = found.users.filter(pl.col("user") >= 1000)["status"]
    assert set(status) == {"not enough data to tell"}
    known = found.users.filter((pl.col("user") < 1000) & (pl.col("rows") >= 100))
    assert (known["status"] == "in a group").mean() > 0.95
    total = found.memberships.group_by("user").agg(pl.col("probability").sum())["probability"]
    assert total.max() <= 1.0 + 1e-9
    assert (known["probability"] >= 0.5).all()


def test_similar_users_and_likes() -> None:
    rng = np.random.default_rng(2)
    user, shown = rng.integers(60, size=12_000), rng.integers(3, size=12_000)
    reward = np.where(rng.random(12_000) < np.where(user % 3 == shown, 0.8, 0.1), 20.0, 5.0)
    found = locb.find_groups({"user": user, "arm": np.array(["tea", "cake", "news"])[shown], "reward": reward})
    assert found.groups["users"].to_list() == [20, 20, 20]
    assert (found.groups["stability"] > 0.9).all()
    for group in range(3):
        first = found.likes.filter(pl.col("group") == group).row(0, named=True)
        kind = int(found.members(group)["user"][0]) % 3
        assert first["feature"] == ["tea", "cake", "news"][kind]
        assert first["effect"] == pytest.approx(17.0, abs=0.7)
    similar = found.similar_users(7, limit=5)
    assert [other % 3 for other in similar["user"]] == [1] * 5
    assert similar["distance"].is_sorted()
    with pytest.raises(ValueError, match="user 99 is not in the log"):
        found.similar_users(99)
    assert repr(found).startswith("UserGroups(groups: 3, users: 60, rows: 12,000, in a group: 60 (100.0%), ")
    assert "locb.UserGroups" in found._repr_html_()


def visits(rows: int) -> dict[str, Any]:
    """Return a log of 30 users, with a number and two columns of text, of which one follows from the other."""
    rng = np.random.default_rng(4)
    user, discount, channel = rng.integers(30, size=rows), rng.integers(4, size=rows) / 10, rng.integers(3, size=rows)
    reward = rng.random(rows) < 0.2 + 0.3 * (user % 3 == channel) + discount / 2
    frame = {"user": user, "reward": reward.astype(float), "discount": discount}
    return frame | {
        "channel": np.array(["mail", "app", "web"])[channel],
        "kind": np.array(["ad", "own", "own"])[channel],
    }


@pytest.mark.parametrize("features", [["discount", "channel"], ["channel", "kind"]])
def test_radii_with_text_fall_with_the_number_of_rows(features: list[str]) -> None:
    """The levels of text and the constant are collinear. Radii and certificates are those of observed contexts."""
    medians, rows = [], visits(1_500)
    for repeats in (1, 10, 100):
        frame = {name: np.tile(values, repeats) for name, values in rows.items()}
        found = locb.find_groups(frame, features=features, replicates=0, gamma=0.3, norm_bound=1.0)
        medians.append(found.users["radius"].median())
    assert medians[0] > 2 * medians[1] > 4 * medians[2]
    assert found.groups["certificate"].max() < 1.0


def test_collinear_features_equal_slow_estimates_and_radii() -> None:
    """The slow ones use all features, and the radius that of the directions that occur in the log."""
    frame, names = visits(3_000), ("app", "mail", "web")
    options: dict[str, Any] = {"features": ["discount", "channel"], "replicates": 0, "gamma": 0.3, "norm_bound": 1.0}
    own = locb.find_groups(frame, method="off-club", **options)
    levels = [(frame["channel"] == name).astype(float) for name in names]
    x = standardize(np.column_stack([frame["discount"], *levels]))
    _, singular, directions = np.linalg.svd(x, full_matrices=False)
    span = directions[singular > 1e-6].T
    assert span.shape == (5, 4)
    for position, user in enumerate(own.users["user"]):
        mine = frame["user"] == user
        theta = np.linalg.solve(np.eye(5) + x[mine].T @ x[mine], x[mine].T @ frame["reward"][mine])
        _, radius = ellipsoid(x[mine] @ span, frame["reward"][mine], 30, 0.5, 0.1, 1.0)
        assert own.users["radius"][position] == pytest.approx(radius, rel=1e-9)
        np.testing.assert_allclose(own.theta[position], theta, atol=1e-9)


def test_certificates_with_text_are_at_least_the_true_width() -> None:
    """All users are one group, so that the true width is the distance between users who like other channels."""
    frame, names = visits(60_000), ("mail", "app", "web")
    levels = np.column_stack([frame["channel"] == name for name in names])
    x = standardize(np.column_stack([frame["discount"], levels]))
    theta = np.array([np.linalg.lstsq(x, 0.2 + 0.3 * level + frame["discount"] / 2)[0] for level in levels.T])
    options: dict[str, Any] = {"method": "off-club", "alpha": 9.0, "replicates": 0, "norm_bound": 1.0}
    found = locb.find_groups(frame, features=["discount", "channel"], **options)
    assert found.groups["users"].to_list() == [30]
    assert true_width(theta, [0, 1, 2]) > 0.3
    assert true_width(theta, [0, 1, 2]) <= found.groups["certificate"][0] < 1.5


def test_likes_are_effects_in_units_of_the_reward() -> None:
    """A number has the effect of one standard deviation, text the difference from the mean of all rows."""
    rng = np.random.default_rng(1)
    user, discount, channel = rng.integers(20, size=9_000), rng.random(9_000) * 30, rng.integers(3, size=9_000)
    effect = np.array([6.0, 0.0, 0.0])[channel]
    frame = {"user": user, "discount": discount, "channel": np.array(["app", "mail", "web"])[channel]}
    found = locb.find_groups(frame | {"reward": 10 + discount / 2 + effect}, features=["discount", "channel"])
    likes = {row["feature"]: row for row in found.likes.filter(pl.col("group") == 0).iter_rows(named=True)}
    mean = effect.mean()
    expected = {"discount": discount.std() / 2, "channel=app": 6 - mean, "channel=mail": -mean, "channel=web": -mean}
    expected["constant"] = (10 + discount / 2 + effect).mean()
    assert {name: row["effect"] for name, row in likes.items()} == pytest.approx(expected, abs=0.1)
    assert likes["discount"]["step"] == pytest.approx(discount.std())
    assert likes["channel=app"]["step"] is None
    assert likes["constant"]["step"] is None


def test_units_of_a_number_do_not_change_the_groups() -> None:
    frame = visits(3_000)
    share, percent = (
        locb.find_groups(frame | {"discount": factor * frame["discount"]}, features=["discount"], replicates=0)
        for factor in (1.0, 100.0)
    )
    assert share.likes["feature"].unique().sort().to_list() == ["constant", "discount"]
    assert percent.likes["feature"].to_list() == share.likes["feature"].to_list()
    np.testing.assert_allclose(percent.theta, share.theta, atol=1e-9)
    assert percent.settings["gamma"] == share.settings["gamma"]
    assert percent.likes["step"].max() == pytest.approx(100 * share.likes["step"].max())


def test_result_is_reproducible_and_does_not_depend_on_batches() -> None:
    drawn = scenario(1)
    other = locb.find_groups(drawn.frame, features=drawn.features, replicates=0, batch_rows=999)
    assert other.users.equals(groups_of(1).users)
    assert other.likes.equals(groups_of(1).likes)


def test_gamma_is_the_largest_within_one_standard_error() -> None:
    scores = [GammaScore(0.1, 3, 0.9, 5.0, 0.0), GammaScore(0.2, 3, 0.9, 4.95, 0.1), GammaScore(0.4, 2, 0.9, 4.0, 0.2)]
    assert choose_gamma(scores) == 0.2
    found = groups_of(0)
    best = found.gammas["evidence"].max()
    near = found.gammas.filter(pl.col("evidence") >= best - pl.col("error"))
    assert found.settings["gamma"] == near["gamma"].max()


def test_stability_of_found_and_of_lost_groups() -> None:
    labels, users = np.repeat([0, 1, -1], 50), np.arange(150)
    same = measure_stability(labels, 2, lambda drawn: labels[drawn], users, 5, 0)
    np.testing.assert_array_equal(same, [1.0, 1.0])
    merged = measure_stability(labels, 2, lambda drawn: np.minimum(labels[drawn], 0), users, 5, 0)
    assert ((merged > 0.4) & (merged < 0.6)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "kmeans"}, "method must be one of 'eloc', 'locb', 'off-club', not 'kmeans'"),
        ({"method": "locb"}, "gamma is required for method='locb'"),
        ({"gamma": 0.0}, "gamma must be above 0, not 0.0"),
        ({"max_groups": 0}, "max_groups must be from 1 to 1000, not 0"),
        ({"min_probability": 1.0}, "min_probability must be strictly between 0 and 1, not 1.0"),
        ({"reward": "stars"}, "reward: the table has no column 'stars'"),
        ({"features": ["text"]}, "features: column 'text' has 70 distinct values, but at most 64 are allowed; omit"),
        ({"dim": 3, "features": []}, "the table has no column with a usual name"),
    ],
)
def test_errors(options: dict[str, Any], message: str) -> None:
    frame = {"user": range(70), "reward": [1.0] * 70, "x": [0.5] * 70, "text": [f"t{number}" for number in range(70)]}
    with pytest.raises(ValueError, match=re.escape(message)):
        locb.find_groups(frame, **({"features": ["x"]} | options))


def revenue_log(rows: int) -> dict[str, Any]:
    """Return a log in which even and odd users like other items. Few rewards are large."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(60, size=rows), rng.choice(5, size=rows, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    mean = np.where(user % 2 == item % 2, 5.0, 2.0)
    revenue = np.where(rng.random(rows) < 0.4, rng.exponential(mean), 0.0)
    return {"user": user, "item": np.array(list("abcde"))[item], "reward": revenue}


def test_groups_are_found_in_revenue_with_a_few_large_rewards() -> None:
    """The range of the rewards is 30 times the difference between the groups."""
    rows = revenue_log(18_000)
    found = locb.find_groups(rows, replicates=0)
    assert sorted(sorted({name % 2 for name in members}) for members in members_of(found)) == [[0], [1]]
    assert found.groups["users"].sum() >= 57
    again = locb.find_groups(rows | {"reward": 1000 * rows["reward"] + 7}, replicates=0)
    assert again.users["group"].to_list() == found.users["group"].to_list()


def test_uneven_noise_does_not_split_groups() -> None:
    """Each group buys two of eight items, for amounts that vary, so that noise is largest for what a group likes."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(200, size=30_000), rng.integers(8, size=30_000)
    bought = rng.random(30_000) < np.where(user % 2 == item // 2, 0.4, 0.05)
    amount = np.array([25, 32, 15, 29, 39, 13, 18, 45])[item] * rng.lognormal(0.0, 0.3, size=30_000)
    log = {"user": user, "item": np.array(list("abcdefgh"))[item], "reward": np.where(bought, amount, 0.0)}
    found = locb.find_groups(log, replicates=3)
    assert sorted(sorted({name % 2 for name in members}) for members in members_of(found)) == [[0], [1]]
    assert any("groups were merged into 2" in note for note in found.notes)
    assert 0.5 < found.groups["stability"].min() < 1.0


def test_a_user_without_others_in_the_group_is_alone() -> None:
    rows = revenue_log(18_000)
    other = (rows["user"] == 7) & (rows["item"] == "e")
    rows |= {"reward": np.where(other, rows["reward"] + 40.0, rows["reward"])}
    found = locb.find_groups(rows, replicates=2, robust=False)
    assert found.users.filter(pl.col("user") == 7).select("status", "group").row(0) == ("alone", None)
    assert found.groups["users"].min() > 1
    assert "alone: 1 (1.7%)" in repr(found)


def test_users_who_are_all_alike_are_one_group() -> None:
    rng = np.random.default_rng(0)
    rows = {"user": rng.integers(60, size=3_000), "item": rng.integers(5, size=3_000), "reward": rng.random(3_000)}
    assert locb.find_groups(rows, replicates=0).groups["users"].to_list() == [60]


def test_a_log_without_groups_has_a_note() -> None:
    found = locb.find_groups(revenue_log(1_200), replicates=0, min_probability=0.9999)
    assert found.groups.height == 0
    assert any("no groups were found" in note for note in found.notes)


def test_tables_as_pandas_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns are passed as lists, without pyarrow; Polars takes the place of pandas."""
    found = groups_of(0)
    monkeypatch.setitem(sys.modules, "pandas", pl)
    for table in ("users", "groups", "memberships", "likes", "gammas"):
        expected = getattr(found, table)
        converted = found.to_pandas(table)
        assert (converted.columns, converted.rows()) == (expected.columns, expected.rows())
    assert found.to_pandas().columns == found.users.columns
    with pytest.raises(ValueError, match="table must be one of users, groups, memberships, likes, gammas, not 'theta'"):
        found.to_pandas("theta")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="data frames need the package pandas: run pip install pandas"):
        found.to_pandas()
