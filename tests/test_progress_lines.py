"""Progress of experiments whose output is not a terminal."""

from locb.cli.common import ProgressLines


def test_one_line_per_minute_with_the_remaining_time() -> None:
    now, lines = [0.0], []
    report = ProgressLines(lines.append, lambda: now[0])
    for second in range(0, 601, 10):
        now[0] = float(second)
        report(second / 10.0, 240.0)
    assert len(lines) == 10
    assert lines[0] == "2% finished after 1 min; about 39 min remaining"
    assert lines[-1] == "25% finished after 10 min; about 30 min remaining"


def test_no_line_before_the_first_result_and_in_short_runs() -> None:
    now, lines = [0.0], []
    report = ProgressLines(lines.append, lambda: now[0])
    now[0] = 59.0
    report(5.0, 9.0)
    now[0] = 300.0
    report(0.0, 9.0)
    assert lines == []
