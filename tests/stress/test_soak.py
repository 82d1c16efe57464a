"""A short soak test: its table is complete, and its figures agree with the load."""

from stress.soak import growth, soak
from stress.stores import new_store


def test_table_is_complete() -> None:
    lines: list[str] = []
    with new_store("sqlite") as location:
        figures = soak(location, "linucb-one", 3, 40.0, 1200, lines.append, seconds_per_minute=1.0)
    rows = figures["per minute"]
    assert [row["minute"] for row in rows] == [1, 2, 3]
    assert sum(row["decisions"] for row in rows) == figures["decisions"] == figures["planned decisions"] == 120
    assert figures["errors"] == {}
    for row in rows:
        assert row["decisions"] > 0
        assert 0.0 < row["p50"] <= row["p99"] <= row["max"] <= figures["largest p99 of a minute, milliseconds"] * 1e3
        assert row["memory_mb"] > 10.0
        assert row["cpu_ms"] >= 0.0
    assert figures["CPU per decision and reward, milliseconds"] > 0.0
    assert figures["growth of the memory, %"] is not None
    header, *table = lines
    assert [line.split()[0] for line in table] == ["1", "2", "3"]
    assert {len(line) for line in table} == {len(header)}


def test_growth_compares_the_last_third_with_the_second() -> None:
    assert growth([1.0, 2.0]) is None
    assert growth([100.0, 10.0, 11.0]) == 10.0
    assert growth([5.0, 7.0, 1.0, 3.0, 2.0, 4.0]) == 50.0
    assert growth([5.0, 2.0, 2.0, 1.0, 1.0]) == 0.0
