"""Likes: the threshold of ratings, its share, and the refusal of default thresholds that do not separate ratings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from datasets import files


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def plays(folder: Path) -> Path:
    """Write 200 play counts 1, 2, …, 200 of 10 users and 20 items: 98.5% are above 3."""
    rows = [f"u{count % 10},i{count % 20 + count // 10 % 20 // 10},{count}" for count in range(1, 201)]
    path = folder / "plays.csv"
    path.write_text("who,what,count\n" + "\n".join(rows))
    return path


def load(path: Path, **arguments: Any) -> locb.Interactions:
    chosen: dict[str, Any] = {"user": "who", "item": "what", "rating": "count", "n_users": 10, "n_arms": 2, "dim": 3}
    chosen |= {"offer": "one-liked", "zeros": "shown", "features_from": "all"}
    return locb.datasets.table(path, **{**chosen, **arguments})


def test_default_threshold_is_refused_if_nearly_all_ratings_are_likes(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="like_above must be set") as refused:
        load(plays(tmp_path))
    message = str(refused.value)
    assert "plays.csv" in message
    assert "98.5% of 200 ratings (from 1 to 200) are above the default threshold, 3" in message
    assert "'q75' (150: 25.0% likes)" in message


def test_default_threshold_is_refused_if_nearly_no_rating_is_a_like(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("who,what,count\n" + "\n".join(f"u{n % 10},i{n % 7},{n / 300}" for n in range(300)))
    with pytest.raises(ValueError, match=r"0\.0% of 300 ratings \(from 0 to 0\.996667\) are above the default"):
        load(path)


@pytest.mark.parametrize(("likes", "accepted"), [(1, True), (0, False), (95, True), (96, False)])
def test_limits_of_the_share_of_likes(likes: int, accepted: bool, tmp_path: Path) -> None:
    """The default threshold is accepted for shares from 1% to 95%."""
    path = tmp_path / "ratings.csv"
    rows = [f"u{n % 4},i{n % 5},{5 if n < likes else 1}" for n in range(100)]
    path.write_text("who,what,count\n" + "\n".join(rows))
    if accepted:
        assert load(path, n_users=1).about["share_of_likes"] == likes / 100
    else:
        with pytest.raises(ValueError, match="like_above must be set"):
            load(path, n_users=1)


def test_explicit_threshold_is_used_and_reported(tmp_path: Path) -> None:
    path = plays(tmp_path)
    about = load(path, like_above=120).about
    assert (about["like_above"], about["share_of_likes"]) == (120.0, 80 / 200)
    # The default value is accepted if it is given explicitly.
    about = load(path, like_above=3, zeros="any").about
    assert (about["like_above"], about["share_of_likes"]) == (3.0, 197 / 200)
    # The entry of the explicit threshold in the cache is not used for the default threshold.
    with pytest.raises(ValueError, match="like_above must be set"):
        load(path, zeros="any")


@pytest.mark.parametrize(("quantile", "threshold"), [("q75", 150.0), ("q50", 100.0), ("Q90", 180.0), ("q2.5", 5.0)])
def test_quantile_selects_the_threshold(quantile: str, threshold: float, tmp_path: Path) -> None:
    path = plays(tmp_path)
    by_quantile = load(path, like_above=quantile, zeros="any")
    assert by_quantile.about["like_above"] == threshold
    assert by_quantile.about["share_of_likes"] == (200 - threshold) / 200
    by_value = load(path, like_above=threshold, zeros="any")
    assert np.array_equal(by_quantile.theta, by_value.theta)


def test_quantile_with_ties(tmp_path: Path) -> None:
    """Above the 75% quantile are not more than 25% of the ratings, also if many ratings are equal."""
    path = tmp_path / "ratings.csv"
    ratings = [1] * 60 + [2] * 30 + [3] * 10
    path.write_text("who,what,count\n" + "\n".join(f"u{n % 10},i{n % 7},{r}" for n, r in enumerate(ratings)))
    about = load(path, like_above="q75", zeros="any").about
    assert (about["like_above"], about["share_of_likes"]) == (2.0, 0.1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("many", "like_above must be a number or a quantile such as 'q75', not 'many'"),
        ("q0", "like_above must be a quantile above 0 and below 100, such as 'q75', not 'q0'"),
        ("q100", "like_above must be a quantile above 0 and below 100, such as 'q75', not 'q100'"),
        ("qx", "like_above must be a number or a quantile such as 'q75', not 'qx'"),
        (float("nan"), "like_above must be a number or a quantile such as 'q75', not nan"),
        (True, "like_above must be a number or a quantile such as 'q75', not True"),
        (200, r"like_above must be below 200, the largest rating in .*plays\.csv, not 200"),
    ],
)
def test_invalid_thresholds(value: Any, message: str, tmp_path: Path) -> None:
    path = plays(tmp_path)
    with pytest.raises(ValueError, match=message):
        load(path, like_above=value)


def test_quantile_that_is_the_largest_rating(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("who,what,count\n" + "\n".join(f"u{n % 10},i{n % 7},{5 if n % 3 else 1}" for n in range(90)))
    with pytest.raises(ValueError, match=r"must be below 5, the largest rating in .*, but the quantile 'q75' is 5"):
        load(path, like_above="q75")


def test_threshold_requires_ratings(tmp_path: Path) -> None:
    path = tmp_path / "likes.csv"
    path.write_text("who,what,liked\na,x,1\na,y,0\nb,x,0\nb,y,1\n")
    with pytest.raises(ValueError, match="like_above requires rating, a column of ratings"):
        load(path, rating=None, reward="liked", like_above=0.5)
    about = load(path, rating=None, reward="liked", n_users=2).about
    assert (about["like_above"], about["share_of_likes"]) == (None, 0.5)


@pytest.mark.parametrize("name", ["movielens", "yelp"])
def test_published_ratings(name: str, tmp_path: Path) -> None:
    make = {"movielens": files.movielens_csv, "yelp": files.yelp}[name]
    folder, read = make(tmp_path / name), getattr(locb.datasets, name)
    sizes = {"n_users": 4, "n_arms": 3, "dim": 4, "features_from": "all"}
    default = read(folder, **sizes)
    explicit = read(folder, like_above=3.0, **sizes)
    assert default.about["like_above"] == explicit.about["like_above"] == 3.0
    assert default.about["share_of_likes"] == explicit.about["share_of_likes"]
    lower, quantile = read(folder, like_above=2.0, **sizes), read(folder, like_above="q80", **sizes)
    assert lower.about["share_of_likes"] > default.about["share_of_likes"] > quantile.about["share_of_likes"] > 0
    assert quantile.about["share_of_likes"] <= 0.2
