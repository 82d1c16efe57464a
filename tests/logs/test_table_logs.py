"""Logs in tables: files and data frames, detection of columns, formats of values, and rows that cannot be used."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import locb
from locb.datasets.column_values import parse_numbers
from locb.logs.readers import table_logs
from serving import arms, serving

GERMAN = """Kunde;Variant;Umsatz;Date;Propensity
007;A;1.234,50 €;24.12.2025 10:00;0,5
8;B;;25.12.2025 11:30;0,25
9;C;abc;25.12.2025 11:30;0,25
9;A;3;morgen;0,25
;A;3;25.12.2025 11:30;0,25
9;A;0;26.12.2025 11:30;1,25
"""


def table(**changes: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "user": ["ann", "bob", "ann", "cleo"],
        "arm": ["x", "y", "y", "x"],
        "reward": [1, 0, 0.5, 2],
        "propensity": [0.5, 0.5, 0.25, 0.75],
        "time": [4, 3, 2, 1],
    }
    return columns | changes


def test_columns_are_detected_and_rows_sorted_by_time() -> None:
    log = locb.Log.read(table())
    assert log.columns is not None
    assert log.columns["user"] == "user (detected)"
    assert [log.user_ids[user] for user in log.users] == ["cleo", "ann", "bob", "ann"]
    assert log.rewards.tolist() == [2, 0.5, 0, 1]
    assert log.propensities.tolist() == [0.75, 0.25, 0.5, 0.5]
    assert [log.arm_ids[arm] for arm in log.arms_of(log.chosen)] == ["x", "y", "y", "x"]
    assert log.features.tolist() == [[1, 0], [0, 1]]
    assert log.times is not None
    assert log.times.tolist() == [1, 2, 3, 4]


def test_bad_rows_are_counted_with_examples(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(GERMAN, encoding="utf-8")
    with pytest.warns(locb.LogWarning) as caught:
        log = locb.Log.read(tmp_path / "log.csv", user="Kunde", reward="Umsatz", allow_skipped=True)
    assert log.rewards.tolist()[0] == 1234.5
    assert np.isnan(log.rewards[1])
    assert log.user_ids == ["007", "8"]
    assert log.propensities.tolist() == [0.5, 0.25]
    assert log.times is not None
    assert log.times[0] == pytest.approx(1766570400.0)  # 2025-12-24 10:00 UTC
    reasons = {rows.reason.split(" (")[0]: (rows.count, rows.examples) for rows in log.skipped}
    assert reasons == {
        "the user is missing": (1, ("row 5",)),
        "the reward": (1, ("row 3: 'abc'",)),
        "the time": (1, ("row 4: 'morgen'",)),
        "the propensity": (1, ("row 6: '1,25'",)),
    }
    assert len(caught) == 4
    assert "skipped 4 rows" in repr(log)
    assert "&#x27;morgen&#x27;" in log._repr_html_()
    assert len(log) + sum(rows.count for rows in log.skipped) == 6


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_all_files_give_the_same_log(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame(table(user=["007", "8", "007", "9"]), strict=False)
    path = tmp_path / f"log{suffix}"
    if suffix == ".parquet":
        frame.write_parquet(path)
    elif suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        text = frame.write_csv(separator="\t" if suffix == ".tsv" else ";" if suffix == ".csv" else ",").encode()
        path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
    assert_same(locb.Log.read(path), locb.Log.read(frame))


def assert_same(log: locb.Log, other: locb.Log) -> None:
    assert repr(log) == repr(other)
    assert list(log.user_ids) == list(other.user_ids)
    for name in ("users", "chosen", "rewards", "propensities", "times", "features"):
        assert np.array_equal(getattr(log, name), getattr(other, name)), name


class ArrowTable:
    """A table that only offers Arrow's C stream interface, as pandas and PyArrow do."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


class ColumnTable:
    """A table with the columns of pandas, but without Arrow."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self._values = list(columns), columns

    def __getitem__(self, name: str) -> Any:
        return np.array(self._values[name])


def test_frames_of_other_libraries() -> None:
    expected = locb.Log.read(table())
    frame = pl.DataFrame(table(), strict=False)
    for source in (frame, frame.lazy(), ArrowTable(frame), ColumnTable(table())):
        assert_same(locb.Log.read(source), expected)
    with pytest.raises(ValueError, match="source must be a path, a data frame or a mapping"):
        locb.Log.read(7)


def test_pandas_frames() -> None:
    """Passes with and without pyarrow, which pandas does not require."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: run pip install pandas")
    days = [f"2026-01-0{day}" for day in "4321"]
    values = table(user=["ann", None, "ann", "cleo"], reward=["1", None, "?", "2"], time=days)
    frame = pandas.DataFrame(values, index=[3, 1, 1, 2])
    frame["arm"], frame["time"] = frame["arm"].astype("category"), pandas.to_datetime(frame["time"])
    skipped = "the user is missing .for example row 2.|the reward .reward. is not a number .for example row 3: '[?]'."
    for changes in ({"reward": pandas.Series([1, None, "?", 2], frame.index, dtype=object)}, {}):
        with pytest.warns(locb.LogWarning, match=skipped):
            log = locb.Log.read(frame.assign(**changes))
        with pytest.warns(locb.LogWarning):
            assert_same(log, locb.Log.read(values))
        found = locb.find_groups(frame.assign(**changes), chosen="arm", replicates=0)
        assert [rows.count for rows in found.skipped] == [1, 1]
    numbers = frame.assign(user=[1, 2, 1, 2], reward=pandas.Series([1, None, 0, 2], frame.index, dtype="Int64"))
    assert locb.Log.read(numbers, missing_reward=0).rewards.tolist() == [2.0, 0.0, 0.0, 1.0]


def test_folder_and_pattern(tmp_path: Path) -> None:
    for number in range(3):
        pl.DataFrame(table(time=[number] * 4), strict=False).write_csv(tmp_path / f"part-{number}.csv")
    (tmp_path / "part-1.csv").write_text((tmp_path / "part-1.csv").read_text().replace("ann,x,1.0", "ann,x,?"))
    with pytest.warns(locb.LogWarning, match="part-1.csv row 1: '\\?'"):
        log = locb.Log.read(tmp_path)
    assert len(log) == 11
    with pytest.warns(locb.LogWarning):
        assert len(locb.Log.read(str(tmp_path / "part-[01].csv"))) == 7
    with pytest.raises(FileNotFoundError, match="Log does not exist"):
        locb.Log.read(tmp_path / "none-*.csv")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["€ 1,5", "2"], [1.5, 2]),
        (["1,234.5", "$2"], [1234.5, 2]),
        (["1.234,5", "2"], [1234.5, 2]),
        (["yes", "no"], [1, 0]),
        ([True, False], [1, 0]),
        (["-0.5", "−2"], [-0.5, -2]),
        ([None, "N/A"], [None, None]),
        (["12%", "3 %"], [12, 3]),
    ],
)
def test_rewards(values: list[Any], expected: list[float | None]) -> None:
    rewards = locb.Log.read({"arm": ["x", "y"], "reward": values}).rewards.tolist()
    assert [None if value != value else value for value in rewards] == expected


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["5.00", "1.234,50", "3,5"], [np.nan, 1234.5, 3.5]),
        (["12.500", "3.250", "7,5"], [12.5, 3.25, np.nan]),
        (["5.00 EUR", "1.234,50 €"], [np.nan, 1234.5]),
        (["1,234", "1,234,567.5", "12,34", "-1,000"], [1234.0, 1234567.5, np.nan, -1000.0]),
    ],
)
def test_numbers_with_another_decimal_separator_are_not_valid(values: list[str], numbers: list[float]) -> None:
    parsed, wrong = parse_numbers(pl.Series(values))
    np.testing.assert_array_equal(parsed, numbers)
    assert wrong.tolist() == np.isnan(numbers).tolist()


def test_decimal_option_and_missing_rewards() -> None:
    values = {"arm": ["x", "y", "x"], "reward": ["1,234", "2,000", None]}
    assert locb.Log.read(values).rewards.tolist()[:2] == [1234, 2000]
    log = locb.Log.read(values, decimal=",", missing_reward=0)
    assert log.rewards.tolist() == [1.234, 2, 0]
    assert "1 missing rewards were replaced by 0" in log.notes


@pytest.mark.parametrize(
    "times",
    [
        ["2025-01-31T10:00:00Z", "2025-02-01T00:00:00.5+00:00"],
        ["2025-01-31 10:00:00", "2025-02-01 00:00:00.500"],
        ["31.01.2025 10:00:00", "01.02.2025 00:00:00.5"],
        [1738317600, 1738368000.5],
        [1738317600000, 1738368000500],
        ["1738317600", "1738368000.5"],
    ],
)
def test_times(times: list[Any]) -> None:
    log = locb.Log.read({"arm": ["x", "y"], "time": times})
    assert log.times is not None
    assert log.times.tolist() == [1738317600.0, 1738368000.5]


@pytest.mark.parametrize(
    "lists",
    [
        ["x|y", "x|y|z", "z|y"],
        ['["x", "y"]', '["x", "y", "z"]', '["z", "y"]'],
        [["x", "y"], ["x", "y", "z"], ["z", "y"]],
    ],
)
def test_arms_of_each_decision(lists: list[Any]) -> None:
    log = locb.Log.read({"arms": lists, "arm": ["y", "z", "z"], "reward": [1, 2, 3]}, propensity="uniform")
    assert log.n_arms.tolist() == [2, 3, 2]
    assert log.chosen.tolist() == [1, 2, 0]
    assert log.propensities.tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    assert log.is_uniform
    assert not log.has_users


def test_lists_that_cannot_be_used() -> None:
    lists = ["x|y", "", '["x", ', "x|x", "y|z", None]
    with pytest.warns(locb.LogWarning) as caught:
        log = locb.Log.read({"arms": lists, "arm": ["x"] * 6}, allow_skipped=True)
    assert len(log) == 1
    text = "\n".join(str(warning.message) for warning in caught)
    for reason in ("not a list of arms", "not valid JSON", "offered twice", "not among the offered arms"):
        assert reason in text
    with pytest.raises(ValueError, match="the log has no usable row"):
        locb.Log.read({"arms": ["y"], "arm": ["x"]})


def test_arms_with_features() -> None:
    lists = [
        json.dumps([{"id": "x", "features": {"price": 2, "new": True}}, {"id": "y", "features": {"price": 1}}]),
        json.dumps([{"id": "y", "features": {"price": 1}}]),
    ]
    log = locb.Log.read({"arms": lists, "arm": ["x", "y"]}, dim=8)
    assert len(log.features) == 2
    assert log.contexts(0).tolist() == [
        locb.features({"price": 2, "new": True}, 8).tolist(),
        locb.features({"price": 1}, 8).tolist(),
    ]
    numbers = locb.Log.read({"arms": [[[0.0, 1.0], [2.0, 3.0]]], "arm": [1]})
    assert numbers.contexts(0)[numbers.chosen[0]].tolist() == [2.0, 3.0]
    assert numbers.arm_ids == []


def test_columns_that_describe_arms() -> None:
    log = locb.Log.read({"arm": ["x", "y", "z"], "price": [1.0, 2.0, 3.0], "kind": ["a", "b", "a"]}, features=["price"])
    assert log.dim == 2
    assert log.features[:, 0].tolist() == pytest.approx([-(0.5**0.5), 0, 0.5**0.5])
    assert locb.Log.read({"arm": ["x", "y"], "kind": ["a", "b"]}, features=["kind"]).dim == 3


def test_errors_name_the_option() -> None:
    with pytest.raises(ValueError, match="chosen must name the column of the chosen arm: the table has no column"):
        locb.Log.read({"a": [1], "b": [2]})
    with pytest.raises(ValueError, match="reward: the table has no column 'Click'; did you mean 'click'"):
        locb.Log.read({"arm": ["x"], "click": [2]}, reward="Click")
    with pytest.raises(ValueError, match="rewards is not an option of the format 'table'"):
        locb.Log.read({"arm": ["x"]}, rewards="a")
    with pytest.raises(ValueError, match="format must be one of"):
        locb.Log.read({"arm": ["x"]}, format="csv")
    with pytest.raises(ValueError, match=r"decimal must be one of '.', ','"):
        locb.Log.read({"arm": ["x"]}, decimal=";")


def test_several_columns_identify_a_user() -> None:
    log = locb.Log.read(table(country=["de", "de", "at", "de"]), user=["user", "country"])
    assert list(log.user_ids) == ["ann/at", "ann/de", "bob/de", "cleo/de"]


def test_a_column_has_one_role() -> None:
    log = locb.Log.read({"item": ["x", "y"], "arm": ["a", "b"], "value": [1, 2]}, reward="value")
    assert log.columns is not None
    assert log.columns["chosen"] == "arm (detected)"
    assert log.columns["user"] == "none: decisions are treated as independent"


def test_export_of_the_service(tmp_path: Path) -> None:
    requests = [arms([1.0, 0.0, 0.5], [0.0, 1.0, 0.5]), arms({"kind": "a"}, {"kind": "b", "price": 2.0})]
    with serving(tmp_path / "state") as (client, _):
        chosen = []
        for number, offered in enumerate(requests):
            body = {"user": f"u{number}", "decision_id": f"d{number}", "arms": offered}
            chosen.append(client.post("/v1/recommend", json=body).raise_for_status().json()["arm"])
        client.post("/v1/reward", json={"decision_id": "d0", "reward": 0.5}).raise_for_status()
        (tmp_path / "log.parquet").write_bytes(client.get("/v1/export").content)
    log = locb.Log.read(tmp_path / "log.parquet")
    assert [log.arm_ids[arm] for arm in log.arms_of(log.chosen)] == chosen
    assert log.contexts(0).tolist() == [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]]
    assert log.contexts(1)[1].tolist() == locb.features({"kind": "b", "price": 2.0}, 3).tolist()
    assert log.rewards[0] == 0.5
    assert np.isnan(log.rewards[1])
    assert not log.has_propensities


def test_log_of_rounds() -> None:
    rounds = locb.Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]])
    log = locb.Log.from_rounds(rounds, [1, 1], [0.5, 1.0])
    assert log.rewards.tolist() == [0, 1]
    assert log.contexts(1).tolist() == [[1, 0], [0, 1]]
    assert log.select(np.array([False, True])).users.tolist() == [1]
    with pytest.raises(ValueError, match=r"propensities must be from 1e-09 to 1, but propensities\[1\] is 0"):
        locb.Log.from_rounds(rounds, [1, 1], [0.5, 0.0])


def test_text_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("007,a,1\n08,b,0\n")
    log = locb.Log.read(tmp_path / "log.csv", header=False, user=1, chosen=2, reward=3)
    assert list(log.user_ids) == ["007", "08"]
    assert log.rewards.tolist() == [1, 0]


def test_header_with_quotes_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b'\xef\xbb\xbf"user","arm","reward, net"\r\n"7","a","1,5"\r\n"8","b",\r\n')
    log = locb.Log.read(tmp_path / "log.csv", reward="reward, net")
    assert log.columns is not None
    assert log.columns["user"] == "user (detected)"
    assert log.rewards.tolist()[0] == 1.5


def test_ids_are_text_whatever_their_type() -> None:
    with pytest.warns(locb.LogWarning, match="the user is missing"):
        log = locb.Log.read({"user": [7.0, float("nan"), 8.0], "arm": [1, 2, 1]})
    assert list(log.user_ids) == ["7", "8"]
    assert log.arm_ids == ["1", "2"]


def test_lines_with_too_many_fields_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,arm,reward\n7,a,1\n8,b,1,5\n")
    with pytest.raises(ValueError, match=r"cannot read .*log.csv as .csv"):
        locb.Log.read(tmp_path / "log.csv")


def test_chosen_arms_of_many_rows_and_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_logs, "BATCH", 7)  # rows
    rng = np.random.default_rng(4)
    lists = [rng.permutation(["a", "b", "ü", "d"])[: rng.integers(1, 5)].tolist() for _ in range(60)]
    arm = rng.choice(["a", "b", "ü", "d", "e"], size=60).tolist()
    users = rng.choice(["Zoë", "ann", "Åsa", "9", "10"], size=60).tolist()
    rows = {"user": users, "arm": arm, "arms": ["|".join(names) for names in lists], "reward": [1.0] * 60}
    with pytest.warns(locb.LogWarning, match="the chosen arm is not among the offered arms"):
        log = locb.Log.read(rows, allow_skipped=True)
    kept = [row for row in range(60) if arm[row] in lists[row]]
    assert log.chosen.tolist() == [lists[row].index(arm[row]) for row in kept]
    assert log.user_ids == sorted({users[row] for row in kept})
    assert [log.user_ids[user] for user in log.users] == [users[row] for row in kept]


EXPORT = {"user": ["a", "b"], "arm": ["x", "y"], "reward": ["1,250", "0,000"], "propensity": ["0,100", "0,900"]}


def test_decimal_commas_of_all_columns_are_detected() -> None:
    rows = EXPORT | {"time": ["1738317600,5", "1738317601,5"], "price": ["14,500", "1.012,250 €"], "size": ["1", "2"]}
    log = locb.Log.read(rows, features=["price"])
    assert log.skipped == ()
    assert log.rewards.tolist() == [1.25, 0]
    assert log.propensities.tolist() == [0.1, 0.9]
    assert log.times is not None
    assert log.times.tolist() == [1738317600.5, 1738317601.5]
    assert log.features[:, 0].tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5])  # the price as a number
    assert locb.Log.read(rows, features=["size"]).dim == 3  # labels


def test_ambiguous_numbers_have_the_decimal_separator_of_other_columns() -> None:
    rows = EXPORT | {"reward": ["1,234", "2,000"]}
    assert locb.Log.read(rows).rewards.tolist() == [1.234, 2]
    assert locb.Log.read(rows | {"propensity": ["0.5", "0.5"]}).rewards.tolist() == [1234, 2000]


def test_reasons_name_the_decimal_option() -> None:
    rows = {"arm": ["x", "y", "x", "y"], "reward": ["1", "2", "?", "1"], "propensity": ["0.5", "0,100", "0.5", "0.5"]}
    with pytest.warns(locb.LogWarning):
        log = locb.Log.read(rows)
    reward, propensity = map(str, log.skipped)
    assert reward == "skipped 1 row: the reward (reward) is not a number (for example row 3: '?')"
    assert propensity == (
        "skipped 1 row: the propensity (propensity) is not from 1e-09 to 1 with the decimal separator '.', but is with "
        "',': set decimal to ',' (--decimal ,) (for example row 2: '0,100')"
    )


def test_more_than_half_of_the_rows_skipped() -> None:
    rows = {name: values * 2 for name, values in EXPORT.items()} | {"propensity": ["0,100", "0,900", "0,900", None]}
    rows["reward"] = ["1", "0", "1", "0"]
    message = r"3 of 4 rows cannot be used, which is more than half: skipped 3 rows: the propensity .* set decimal to '"
    with pytest.raises(ValueError, match=message):
        locb.Log.read(rows, decimal=".")
    with pytest.warns(locb.LogWarning):
        log = locb.Log.read(rows, decimal=".", allow_skipped=True)
    assert len(log) == 1
    result = locb.evaluate(log, ["random"])["random"]
    assert "column 'propensity' has no usable propensity" in result.sentence
    assert "uniform" not in result.sentence
    half = rows | {"propensity": ["2", "2", "0.5", "0.5"]}
    with pytest.warns(locb.LogWarning):
        assert len(locb.Log.read(half)) == 2  # not more than half


def test_text_in_windows_1252(tmp_path: Path) -> None:
    text = "user;arm;Erlös\nu1;x;12,50 €\nu2;y;0,00 €\n"
    (tmp_path / "log.csv").write_bytes(text.encode("cp1252"))
    log = locb.Log.read(tmp_path / "log.csv", reward="Erlös")
    assert log.rewards.tolist() == [12.5, 0]
    assert "log.csv is not in UTF-8 and is read as Windows-1252; if it has another encoding, convert it" in log.notes
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    assert not any("UTF-8" in note for note in locb.Log.read(tmp_path / "log.csv", reward="Erlös").notes)


def test_missing_values_are_called_empty() -> None:
    with pytest.warns(
        locb.LogWarning, match=r"the time .time. is missing or has an unknown format .for example row 2: empty"
    ):
        locb.Log.read(table(time=["2026-01-01", None, "2026-01-02", "2026-01-03"]))
