"""Files of tables: separators, files without a header line, and text encodings."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from datasets import files

NUMBERS = {"user": 1, "item": 2, "rating": 3, "header": False}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))


def write(path: Path, separator: str, *, header: bool = True) -> Path:
    rows = [[f"{user:03}", str(movie), f"{star:g}", "9647"] for user, movie, star in files.stars()]
    names = [["who", "what", "stars", "time"]] if header else []
    path.write_text("".join(separator.join(row) + "\n" for row in [*names, *rows]))
    return path


def load(path: Path, **arguments: Any) -> locb.Interactions:
    chosen: dict[str, Any] = {"user": "who", "item": "what", "rating": "stars", "n_users": files.USERS, "n_arms": 3}
    chosen |= {"dim": 4, "offer": "one-liked", "features_from": "all"}
    return locb.datasets.table(path, **{**chosen, **arguments})


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "::"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "dat", "txt"])
def test_separator_is_detected(suffix: str, separator: str, header: bool, tmp_path: Path) -> None:
    expected = load(write(tmp_path / "plain.csv", ","))
    assert expected.about["records"] == len(files.stars())
    columns = {} if header else NUMBERS
    path = write(tmp_path / f"likes.{suffix}", separator, header=header)
    detected, explicit = load(path, **columns), load(path, separator=separator, **columns)
    for env in (detected, explicit):
        assert np.array_equal(env.theta, expected.theta)
        assert env.user_names == expected.user_names  # as text: 001, 002, …


def test_gzipped_file_without_header(tmp_path: Path) -> None:
    path = write(tmp_path / "ratings.dat", "::", header=False)
    (tmp_path / "ratings.dat.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert np.array_equal(load(tmp_path / "ratings.dat.gz", **NUMBERS).theta, load(path, **NUMBERS).theta)


def test_columns_by_number_are_counted_from_1(tmp_path: Path) -> None:
    path = write(tmp_path / "ratings.dat", "::", header=False)
    by_number = load(path, **NUMBERS)
    as_text = load(path, user="1", item="2", rating="3", header=False)
    assert np.array_equal(by_number.theta, as_text.theta)
    assert by_number.about["records"] == len(files.stars())  # the first line is a record
    for number in (0, 5):
        with pytest.raises(ValueError, match=f"has no column '{number}'; it has '1', '2', '3', '4'"):
            load(path, **{**NUMBERS, "rating": number})


def test_other_suffix_and_separator_are_readable_with_an_explicit_separator(tmp_path: Path) -> None:
    expected = load(write(tmp_path / "plain.csv", ","))
    path = write(tmp_path / "u.data", "\t", header=False)
    with pytest.raises(ValueError, match=r"must end in .*\.dat.*, not '\.data'; for other text files, set separator"):
        load(path, **NUMBERS)
    assert np.array_equal(load(path, separator="\t", **NUMBERS).theta, expected.theta)
    path = write(tmp_path / "caret.csv", "^")
    with pytest.raises(
        ValueError, match=r"has no column 'who', 'what', 'stars'; it has 'who\^what\^stars.* set separator"
    ):
        load(path)
    assert np.array_equal(load(path, separator="^").theta, expected.theta)


def test_characters_of_other_separators_inside_values(tmp_path: Path) -> None:
    """Lists of labels and decimal commas in other columns do not change the detected separator."""
    rows = [(f"u{user}", f"i{movie}", f"{star:g}", "0|1|1|0|1", "1;2") for user, movie, star in files.stars()]
    path = tmp_path / "ratings.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    env = load(path, **NUMBERS)
    assert (env.about["items"], sorted(env.user_names)) == (files.MOVIES, [f"u{n}" for n in range(1, files.USERS + 1)])
    path.write_text("".join(";".join([*row[:3], "3,5", "4,5"]) + "\n" for row in rows))
    assert load(path, **NUMBERS).about == env.about
    path.write_text("who,what,stars,tags,pairs\n" + "".join(",".join(row) + "\n" for row in rows))
    assert load(path).about == env.about


def test_quoted_separators_in_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "likes.csv"
    lines = "".join(f'"user; {user}";"item, {movie}";{star}\n' for user, movie, star in files.stars())
    path.write_text("who;what;stars\n" + lines)
    assert sorted(load(path).user_names) == sorted({f"user; {user}" for user, _, _ in files.stars()})


def test_latin_1_text(tmp_path: Path) -> None:
    rows = [(f"José {user}", movie, star) for user, movie, star in files.stars()]
    path = tmp_path / "ratings.dat"
    path.write_bytes("".join(f"{user}::{movie}::{star}\n" for user, movie, star in rows).encode("latin-1"))
    assert sorted(load(path, **NUMBERS).user_names) == sorted({user for user, _, _ in rows})


def test_item_table_without_header_has_the_item_in_its_first_column(tmp_path: Path) -> None:
    folder = files.movielens_dat(tmp_path / "ml")
    without = load(folder / "ratings.dat", **NUMBERS)
    env = load(folder / "ratings.dat", item_features=folder / "movies.dat", **NUMBERS)
    assert not np.allclose(env.item_features, without.item_features)
    titles = {str(movie): (title, "|".join(genres)) for movie, title, genres in files.titles()}
    named = tmp_path / "items.csv"
    quoted = (f'{movie},"{t.replace(chr(34), chr(34) * 2)}",{g}' for movie, (t, g) in titles.items())
    named.write_text("\n".join(["what,title,genres", *quoted]))
    same = load(write(tmp_path / "likes.csv", ","), item_features=named)
    assert np.allclose(np.abs(same.item_features), np.abs(env.item_features))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("likes.csv", {"separator": ""}, "separator must have at least one character"),
        ("likes.parquet", {"separator": ";"}, r"separator is an option of text files, not of \.parquet files; omit it"),
        ("likes.jsonl", {"header": False}, r"header is an option of text files, not of \.jsonl files; omit it"),
    ],
)
def test_invalid_options(name: str, arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    write(tmp_path / name, ",")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / name, **arguments)


def test_file_without_header_that_is_read_with_header(tmp_path: Path) -> None:
    path = write(tmp_path / "ratings.dat", "::", header=False)
    with pytest.raises(ValueError, match=r"has no column 'who', 'what', 'stars'; it has .*set header to False"):
        load(path)
    path = write(tmp_path / "likes.csv", ",")
    with pytest.raises(ValueError, match="column '3' must have finite numbers, but row 1 has 'stars'"):
        load(path, **NUMBERS)


def test_options_are_part_of_the_cache_key(tmp_path: Path) -> None:
    """The same file gives other data with other options, and the same data with the same options."""
    path = tmp_path / "likes.csv"
    variants: list[dict[str, Any]] = [
        NUMBERS,
        NUMBERS | {"rating": 4, "separator": ";"},
        NUMBERS | {"like_above": 2.0},
        NUMBERS | {"like_above": "q50"},
    ]
    path.write_text("".join(f"{u};{m};{s};{5.5 - s}\n" for u, m, s in files.stars()))
    first = [load(path, **variant).theta for variant in variants]
    assert len(list((tmp_path / "cache").iterdir())) == len(variants)
    assert len({theta.tobytes() for theta in first}) == len(variants)
    for variant, theta in zip(variants, first, strict=True):
        assert np.array_equal(load(path, **variant).theta, theta)
    assert len(list((tmp_path / "cache").iterdir())) == len(variants)
    load(path, separator=";", **NUMBERS)
    assert len(list((tmp_path / "cache").iterdir())) == len(variants) + 1
