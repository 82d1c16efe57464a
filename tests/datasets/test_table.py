"""Custom tables: formats, features, and errors."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from datasets import files


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def likes() -> pl.DataFrame:
    rows = files.stars()
    genre = {movie: "|".join(genres) for movie, _, genres in files.titles()}
    return pl.DataFrame(
        {
            "who": [f"user {user}" for user, _, _ in rows],
            "what": [movie for _, movie, _ in rows],
            "stars": [star for _, _, star in rows],
            "liked": [int(star > 3) for _, _, star in rows],
            "genre": [genre[movie] for _, movie, _ in rows],
            "price": [movie / 7 for _, movie, _ in rows],
        }
    )


def load(path: Path, **arguments: Any) -> locb.Interactions:
    chosen: dict[str, Any] = {"user": "who", "item": "what", "rating": "stars", "n_users": files.USERS, "n_arms": 3}
    chosen |= {"dim": 4, "offer": "one-liked", "features_from": "all"}
    return locb.datasets.table(path, **{**chosen, **arguments})


def test_all_formats_give_the_same_environment(tmp_path: Path) -> None:
    frame = likes()
    frame.write_csv(tmp_path / "likes.csv")
    frame.write_csv(tmp_path / "likes.tsv", separator="\t")
    frame.write_parquet(tmp_path / "likes.parquet")
    frame.write_ndjson(tmp_path / "likes.jsonl")
    (tmp_path / "likes.csv.gz").write_bytes(gzip.compress((tmp_path / "likes.csv").read_bytes()))
    first = load(tmp_path / "likes.csv")
    assert first.about["records"] == len(files.stars())
    for name in ("likes.tsv", "likes.parquet", "likes.jsonl", "likes.csv.gz"):
        assert np.allclose(load(tmp_path / name).theta, first.theta), name
    by_reward = load(tmp_path / "likes.csv", rating=None, reward="liked")
    assert np.allclose(by_reward.theta, first.theta)


def test_features_of_the_table_or_of_a_second_table(tmp_path: Path) -> None:
    frame = likes()
    frame.write_csv(tmp_path / "likes.csv")
    frame.select("what", "genre", "price").unique(maintain_order=True).write_parquet(tmp_path / "items.parquet")
    without = load(tmp_path / "likes.csv")
    same_table = load(tmp_path / "likes.csv", features=["genre", "price"])
    second_table = load(tmp_path / "likes.csv", item_features=tmp_path / "items.parquet")
    assert np.allclose(same_table.item_features, second_table.item_features)
    assert not np.allclose(same_table.item_features, without.item_features)


def test_rows_with_nulls_are_skipped(tmp_path: Path) -> None:
    frame = likes()
    incomplete = pl.concat([frame, frame.head(3).with_columns(stars=None, who=pl.lit("x"))], how="vertical_relaxed")
    incomplete.write_csv(tmp_path / "likes.csv")
    with pytest.warns(UserWarning, match="table: skipped 3 rows without user, item or value"):
        env = load(tmp_path / "likes.csv")
    assert env.about["records"] == frame.height


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": "missing"}, "has no column 'missing'; it has 'who', 'what', 'stars', 'liked', 'genre', 'price'"),
        ({"features": ["genre", "what"]}, "features must not contain 'what', the column of items"),
        ({"features": ["colour"]}, "has no column 'colour'"),
        ({"rating": None}, "set exactly one of rating .*: neither is set"),
        ({"reward": "liked"}, "set exactly one of rating .*: both are set"),
        (
            {"rating": None, "reward": "stars"},
            r"column 'stars' must have 0 or 1, but row \d+ has [\d.]+; for ratings, use rating \(rating=…\) instead of",
        ),
        ({"rating": "who"}, "column 'who' must have finite numbers, but row 1 has 'user 1'"),
        ({"dim": 1}, "dim must be an integer of at least 2, not 1"),
        ({"item_features": "nowhere.csv"}, "Table does not exist or is not a file"),
        ({"features": ["price"], "item_features": "x.csv"}, "features and item_features are both set"),
    ],
)
def test_invalid_columns(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    likes().write_csv(tmp_path / "likes.csv")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load(tmp_path / "likes.csv", **arguments)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("likes.xlsx", "x", "the file name must end in .csv"),
        ("likes.csv", "", "is empty"),
        ("likes.csv", "who,what,stars\n", "has no rows"),
        ("likes.csv", "who,what,stars\n,,\n", "must have at least one row with values for 'who', 'what' and 'stars'"),
        ("likes.parquet", "not parquet at all", "cannot read .* as .parquet"),
        ("likes.jsonl", '{"who": 1, "what": 2, "stars": 3}\n{"who": \n', r"likes\.jsonl, line 2: "),
    ],
)
def test_invalid_tables(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="Table does not exist or is not a file"):
        load(tmp_path / "nowhere.csv")


def test_ids_are_text(tmp_path: Path) -> None:
    frame = likes().with_columns(who=pl.col("who").str.replace("user ", "00"))
    frame.write_csv(tmp_path / "likes.csv")
    env = load(tmp_path / "likes.csv")
    assert sorted(env.user_names) == sorted(f"00{user}" for user in range(1, files.USERS + 1))
    both = pl.concat([frame, frame.with_columns(who=pl.col("who").str.slice(1))])  # 007 and 07 are two users
    both.write_csv(tmp_path / "both.csv")
    assert load(tmp_path / "both.csv").about["users"] == 2 * files.USERS


def test_item_table_with_text_ids_and_missing_numbers(tmp_path: Path) -> None:
    frame = likes()
    frame.write_parquet(tmp_path / "likes.parquet")
    prices = frame.select("what", "price").unique("what", maintain_order=True)
    items = prices.with_columns(
        pl.col("what").cast(pl.String),
        price=pl.when(pl.int_range(pl.len()) == 0)
        .then(float("nan"))
        .when(pl.int_range(pl.len()) == 1)
        .then(float("inf"))
        .otherwise(pl.col("price")),
    )
    items.write_parquet(tmp_path / "items.parquet")
    env = load(tmp_path / "likes.parquet", item_features=tmp_path / "items.parquet")
    assert np.isfinite(env.item_features).all()
    items.with_columns(what=pl.lit("x")).head(1).write_parquet(tmp_path / "others.parquet")
    with pytest.raises(ValueError, match="items has a value in 'price': column 'what' must contain the ids of these"):
        load(tmp_path / "likes.parquet", item_features=tmp_path / "others.parquet")
    items.select("what").write_parquet(tmp_path / "bare.parquet")
    with pytest.raises(ValueError, match="has no column other than 'what'; add columns that describe the items"):
        load(tmp_path / "likes.parquet", item_features=tmp_path / "bare.parquet")
    frame.with_columns(who=pl.concat_list("who")).write_parquet(tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match="column 'who' must have numbers or text, not List"):
        load(tmp_path / "lists.parquet")


def test_contradictory_ratings_give_zero_features(tmp_path: Path) -> None:
    rows = [(user, item, star) for user in ("a", "b", "c") for item in (1, 2, 3) for star in (1, 5)]
    pl.DataFrame(rows, schema=["who", "what", "stars"], orient="row").write_csv(tmp_path / "likes.csv")
    with pytest.raises(ValueError, match=r"no user is eligible; .*\(number of users with no zero-reward item: 3"):
        load(tmp_path / "likes.csv", n_users=3, n_arms=2, zeros="rated")
    env = load(tmp_path / "likes.csv", n_users=3, n_arms=2, zeros="shown")
    assert (env.item_features[:, :-1] == 0).all()


def test_features_of_few_items_give_a_warning(tmp_path: Path) -> None:
    frame = likes()
    frame.write_csv(tmp_path / "likes.csv")
    items = frame.select("what", "genre", "price").unique("what", maintain_order=True)
    few = items.with_columns(pl.when(pl.int_range(pl.len()) < 3).then("price").alias("price"))
    few.write_csv(tmp_path / "items.csv")
    message = r"column 'price' has a value for 3 of 12 items \(25\.0%\)"
    for _ in range(2):  # the second time from the cache
        with pytest.warns(UserWarning, match=message) as caught:
            load(tmp_path / "likes.csv", item_features=tmp_path / "items.csv")
        assert not any("column 'genre'" in str(warning.message) for warning in caught)
    frame.select("what", "genre").unique("what", maintain_order=True).head(2).write_csv(tmp_path / "two.csv")
    with pytest.warns(UserWarning, match=r"column 'genre' has a value for 2 of 12 items \(16\.7%\)"):
        load(tmp_path / "likes.csv", item_features=tmp_path / "two.csv")


def test_features_that_vary_within_an_item_give_a_warning(tmp_path: Path) -> None:
    frame = likes().with_columns(weekday=pl.int_range(pl.len()) % 7)
    frame.write_csv(tmp_path / "likes.csv")
    varying = frame.group_by("what").agg(pl.col("weekday").n_unique()).filter(pl.col("weekday") > 1).height
    share = f"{varying / files.MOVIES:.1%}"
    message = (
        rf"column 'weekday' has more than one value for {varying} of 12 items \({share}\); the first value of each"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        load(tmp_path / "likes.csv", features=["weekday", "genre"])
    assert not any("column 'genre'" in str(warning.message) for warning in caught)


def test_missing_value_of_a_row_is_taken_from_another_row_of_the_item(tmp_path: Path) -> None:
    frame = likes()
    frame.write_csv(tmp_path / "likes.csv")
    first = pl.int_range(pl.len()).over("what") == 0
    frame.with_columns(price=pl.when(~first).then("price")).write_csv(tmp_path / "gaps.csv")
    complete, gaps = load(tmp_path / "likes.csv", features=["price"]), load(tmp_path / "gaps.csv", features=["price"])
    assert np.allclose(complete.item_features, gaps.item_features)


def test_features_come_from_records_that_are_not_used_in_rounds(tmp_path: Path) -> None:
    """By default, the pairs of the half of the records from which the features come are never arms."""
    rows = [f"{user},{item},{1 + (user * item) % 5}" for user in range(20) for item in range(30)]
    (tmp_path / "likes.csv").write_text("who,what,stars\n" + "\n".join(rows))
    columns = {"user": "who", "item": "what", "rating": "stars", "n_users": 15, "n_arms": 3, "offer": "one-liked"}
    env = locb.datasets.table(tmp_path / "likes.csv", **columns)
    everything = locb.datasets.table(tmp_path / "likes.csv", **columns, features_from="all")
    assert (env.about["features_from"], everything.about["features_from"]) == ("other-half", "all")
    assert not np.allclose(env.theta, everything.theta)
