"""Logs that are read in batches, with arrays in temporary files and computed in blocks, against plain computations."""

from __future__ import annotations

import dataclasses
import mmap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.datasets.column_values import TimeParser
from locb.datasets.item_descriptions import describe_items
from locb.datasets.source_files import Source
from locb.logs import row_arrays
from locb.logs.bootstrap import random_stream, sum_by_group
from locb.logs.readers import offers, table_logs, table_parts
from locb.logs.replay import _sample_users
from locb.logs.row_arrays import RowBuffer, argsort_ascending, by_block, find, number_distinct, take

ROWS = 1500


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every array large, so that it is read in batches, stored in a file and computed in blocks."""
    for module, name, value in (
        (row_arrays, "BLOCK", 100),
        (row_arrays, "MAX_IN_MEMORY", 300),
        (table_logs, "BATCH", 77),
        (offers, "FLUSH", 50),
        (offers, "MAX_KNOWN", 50_000),
    ):
        monkeypatch.setattr(module, name, value)


def table(is_dirty: bool) -> pl.DataFrame:
    """Return a log in which each row offers 2 to 4 of 8 items. A dirty one has rows that cannot be used, and text."""
    rng = np.random.default_rng(3)
    lists = [rng.permutation(8)[: rng.integers(2, 5)] for _ in range(ROWS)]
    chosen = [int(rng.choice(items)) for items in lists]
    features = rng.normal(size=8).round(2)
    columns: dict[str, Any] = {
        "user": [f"u{user}" for user in rng.integers(90, size=ROWS)],
        "arms": ["|".join(f"i{item}" for item in items) for items in lists],
        "arm": [f"i{item}" for item in chosen],
        "reward": [2.5 * (rng.random() < 0.2 + 0.08 * item) for item in chosen],
        "propensity": [1.0 / len(items) for items in lists],
        "time": 1.7e9 + rng.permutation(ROWS),
        "price": features[chosen],
        "kind": [f"kind {item % 3}" if item != 4 else None for item in chosen],
    }
    if not is_dirty:
        return pl.DataFrame(columns)
    columns["reward"] = [f"{value:.2f} €".replace(".", ",") for value in columns["reward"]]
    columns["time"] = [
        f"2024-01-{1 + row % 28:02d} 10:00" if row % 3 else f"{1 + row % 28:02d}.01.2024" for row in range(ROWS)
    ]
    for name, step, value in (
        ("user", 97, None),
        ("arm", 53, "other"),
        ("reward", 89, "abc"),
        ("reward", 71, ""),
        ("time", 83, "tomorrow"),
        ("arms", 79, "a|a"),
        ("arms", 73, "["),
        ("propensity", 67, 1.5),
    ):
        values = list(columns[name])
        values[step::step] = [value] * len(values[step::step])
        columns[name] = values
    return pl.DataFrame(columns, strict=False)


def facts(log: locb.Log) -> dict[str, Any]:
    """Return everything that a log contains, without the numbers of equal lists of arms."""
    arrays = {name: np.asarray(getattr(log, name)).tolist() for name in ("users", "chosen", "features")}
    arrays |= {name: np.asarray(getattr(log, name)).tobytes() for name in ("rewards", "propensities", "times")}
    arrays["arms"] = [log.arms_of(np.zeros(len(log), int) + last).tolist() for last in (0, 1)]
    other = (log.user_ids, log.arm_ids, log.skipped, log.notes, log.columns, repr(log), log.is_uniform)
    return arrays | {"other": other, "n_arms": log.n_arms.tolist(), "rows": log.rows_of(log.chosen).tolist()}


def read(source: Any, **options: Any) -> locb.Log:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", locb.LogWarning)
        return locb.Log.read(source, **options)


OPTIONS: dict[str, dict[str, Any]] = {
    "lists": {},
    "described": {"features": ["price", "kind"]},
    "missing rewards": {"missing_reward": 0},
    "uniform": {"propensity": "uniform", "user": ["user", "kind"]},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("is_dirty", [False, True], ids=["clean", "dirty"])
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_batches_give_the_same_log_as_one_batch(
    kind: str, is_dirty: bool, options: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    frame = table(is_dirty)
    expected = facts(read(frame, **options))
    request.getfixturevalue("small_blocks")
    if kind == "frame":
        assert facts(read(frame, **options)) == expected
        return
    for number, part in enumerate((frame[: ROWS // 3], frame[ROWS // 3 :])):
        part.write_csv(tmp_path / f"{number}.csv") if kind == "csv" else part.write_parquet(
            tmp_path / f"{number}.parquet"
        )
    found = facts(read(tmp_path, **options))
    examples = expected["other"][2], found["other"][2]
    assert [(rows.reason, rows.count) for rows in examples[0]] == [(rows.reason, rows.count) for rows in examples[1]]
    assert found | {"other": None} == expected | {"other": None}


def test_text_is_read_like_a_loaded_file(tmp_path: Path, small_blocks: None) -> None:
    """Without a header, in another encoding, or with a long separator, a file is loaded at once."""
    frame = table(False).select("user", "arm", "reward", "propensity")
    expected = facts(read(frame))["other"]
    text = frame.write_csv()
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "long.dat").write_text(text.replace(",", "::"))
    (tmp_path / "latin.csv").write_bytes(text.replace("u1", "ü1").encode("latin-1"))
    assert facts(read(tmp_path / "plain.csv"))["other"] == expected
    assert facts(read(tmp_path / "long.dat"))["other"] == expected
    assert any(user.startswith("ü1") for user in read(tmp_path / "latin.csv").user_ids)


def favour_last(user: str, arms: list[Any], contexts: Any) -> Any:
    return np.array([0.0] * (len(arms) - 2) + [0.25, 0.75])


@pytest.mark.parametrize("has_users", [True, False])
def test_blocks_give_the_same_evaluation_bit_for_bit(has_users: bool, request: pytest.FixtureRequest) -> None:
    log = dataclasses.replace(read(table(False), features=["price"]), has_users=has_users)
    policies = {"first": "first", "random": "random", "last": favour_last, "linucb-one": "linucb-one"}

    def evaluate() -> list[Any]:
        return [repr(result) for result in locb.evaluate(log, policies, replays=5).results]

    def tune() -> str:
        return repr(locb.tune(log, ["first", "random", "linucb-one"], grid={"alpha": [0.5]})) if has_users else ""

    expected = evaluate(), tune()
    request.getfixturevalue("small_blocks")
    assert (evaluate(), tune()) == expected


def test_arrays_of_a_large_log_are_in_files(small_blocks: None) -> None:
    log = read(table(False))
    for name in ("users", "offer", "chosen", "rewards", "propensities", "times"):
        array = getattr(log, name)
        assert len(array) == ROWS
        while isinstance(array, np.ndarray):
            array = array.base
        assert isinstance(array, mmap.mmap), name
    part = log.select(slice(10, 20))
    assert part.rewards.tolist() == log.rewards[10:20].tolist()


def test_row_arrays_equal_plain_numpy(small_blocks: None) -> None:
    rng = np.random.default_rng(0)
    values, rows, mask = rng.random(950), rng.integers(950, size=777), rng.random(950) < 0.3
    assert np.array_equal(take(values, rows), values[rows])
    assert np.array_equal(take(values, mask), values[mask])
    assert np.array_equal(take(values, slice(3, 9)), values[3:9])
    with pytest.raises(IndexError, match="a mask of 950 rows"):
        take(values, mask[:400])
    assert np.array_equal(find(950, lambda span: mask[span]), np.flatnonzero(mask))
    assert np.array_equal(by_block(np.float64, 950, lambda span: values[span] ** 2), values**2)
    names, ranks = np.unique(rows, return_inverse=True)
    found, count = number_distinct(rows)
    assert np.array_equal(found, ranks)
    assert count == len(names)
    weights = rng.normal(size=777) * 10.0 ** rng.integers(-9, 9, size=777)
    assert np.array_equal(
        sum_by_group(ranks % 5, 5, weights)[:, 0], np.bincount(ranks % 5, weights=weights), equal_nan=True
    )
    assert argsort_ascending(np.sort(values)) is None
    assert np.array_equal(argsort_ascending(values), np.argsort(values, kind="stable"))
    assert RowBuffer(np.int32).build().tolist() == []


def test_full_disk_is_an_error_with_advice(small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullFile:
        def write(self, data: Any) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(row_arrays, "TemporaryFile", lambda prefix: FullFile())
    with pytest.raises(OSError, match="No space left on device; set TMPDIR to a folder"):
        read(table(False))


def test_sampled_users_equal_a_plain_draw(small_blocks: None) -> None:
    log = read(table(False))
    rng, plain = random_stream(4, "replay"), random_stream(4, "replay")
    rows, users = _sample_users(log, number_distinct(log.users), rng)
    decisions = [np.flatnonzero(log.users == user) for user in np.unique(log.users)]
    drawn = plain.integers(len(decisions), size=len(decisions))
    pairs = [(row, draw) for draw, user in enumerate(drawn.tolist()) for row in decisions[user].tolist()]
    assert list(zip(rows.tolist(), users.tolist(), strict=True)) == sorted(pairs)
    rows, _ = _sample_users(log, None, rng)
    assert rows.tolist() == np.sort(plain.integers(len(log), size=len(log))).tolist()


@pytest.mark.parametrize(
    "numbers",
    [
        [1.0, 2.0],
        [0.9e11, 1.2e11],
        [0.8e11, 1.1e11],
        [1.7e12],
        [1.7e12, 5.0, 2e18],
        [1.7e15, np.nan, np.inf],
        [2e18],
        [],
    ],
)
def test_unit_of_times_follows_from_the_median(numbers: list[float]) -> None:
    finite = np.abs([number for number in numbers if np.isfinite(number)])
    typical = np.median(finite) if finite.size else 0.0
    unit = 1e9 if typical > 1e17 else 1e6 if typical > 1e14 else 1e3 if typical > 1e11 else 1.0
    for column in (pl.Series(numbers, dtype=pl.Float64), pl.Series(map(str, numbers), dtype=pl.String)):
        assert TimeParser.detect(column.to_frame("time").lazy(), "time").unit == unit


def test_descriptions_of_arms_are_the_same_from_two_values_per_arm() -> None:
    rng = np.random.default_rng(1)
    item = rng.integers(20, size=400)
    frame = pl.DataFrame({"item": item, "price": item + 0.5 * (item == 3) * rng.integers(9, size=400)})
    frame = frame.with_columns(pl.Series("kind", [None if i % 5 == 0 else f"k{i % 4}" for i in item.tolist()]))
    names = pl.Series([str(name) for name in range(20)])
    parts = [table_logs._Descriptions("item", name) for name in ("price", "kind")]
    for start in range(0, 400, 30):
        for part in parts:
            part.add(frame[start : start + 30])
    reduced = pl.concat([part.values for part in parts], how="diagonal")
    (found, notes), (expected, expected_notes) = (
        describe_items(rows, "item", ["price", "kind"], names) for rows in (reduced, frame)
    )
    assert notes == expected_notes
    assert np.array_equal(found.todense(), expected.todense())
    assert reduced.height <= 2 * 2 * 20


@pytest.mark.parametrize("piece", [1, 40, 300, 10**6])
def test_types_of_pieces_of_a_file_are_those_of_the_whole_file(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_parts, "PIECE", piece)
    values = ("7", "0.5", "", "true", '"1"', '"a\nb"', '"c,""d"""', "nan", "1e5", "9" * 20, " 1", "2024-01-01")
    rng = np.random.default_rng(2)
    path = tmp_path / "log.csv"
    for _ in range(60):
        choices = [rng.choice(values, size=rng.integers(1, 4)) for _ in range(4)]
        lines = [",".join(rng.choice(some) for some in choices) for _ in range(rng.integers(1, 30))]
        path.write_bytes(str(rng.choice(["\n", "\r\n"])).join(["a,b,c,d", *lines, ""]).encode())
        expected = pl.read_csv(path.read_bytes(), infer_schema_length=None, schema_overrides={"a": pl.String}).schema
        found = table_parts._infer_schema(Source(path), ["a", "b", "c"], ["a"], ",")
        if found is None:  # the file is loaded
            assert "9" * 20 in path.read_text()
            continue
        assert pl.Schema(found) == pl.Schema(dict(expected) | {"d": pl.String})
