"""Line charts in a terminal."""

import json

from locb.report.terminal.plot import Line, plot


def dots(text: str) -> int:
    return sum((ord(character) - 0x2800).bit_count() for character in text if "\u2800" <= character <= "\u28ff")


def test_line_passes_through_its_points() -> None:
    flat = plot(
        [Line([0, 1], [2.0, 2.0])], 40, 5, format_y="{:.1f}".format, format_x="{:.0f}".format
    ).plain.splitlines()
    drawn = [dots(row) > 0 for row in flat]
    assert drawn == [False, False, True, False, False, False]
    assert flat[0].startswith("2.1 ┤")
    assert flat[4].startswith("1.9 ┤")
    steep = plot([Line([0, 1, 2], [0.0, 0.0, 9.0])], 40, 5, format_y="{:.0f}".format, format_x="{:.0f}".format).plain
    assert dots(steep) >= 20 + 34  # the line uses the full height and width
    assert steep.splitlines()[-1].split() == ["0", "2"]


def test_distant_points_are_not_connected() -> None:
    joined = Line([0, 1, 2, 9, 10], [1.0, 1.0, 1.0, 1.0, 1.0])
    apart = Line(joined.xs, joined.ys, gap=3.0)
    counts = [
        dots(plot([line], 60, 4, format_y="{:.0f}".format, format_x="{:.0f}".format).plain) for line in (joined, apart)
    ]
    assert counts[1] < 0.5 * counts[0]


def test_line_labels_do_not_collide() -> None:
    lines = [Line([0, 1], [0.0, end], name=name) for name, end in (("one", 1.0), ("two", 0.99), ("three", 0.0))]
    rows = plot(lines, 60, 6, format_y="{:.1f}".format, format_x="{:.0f}".format).plain.splitlines()
    assert [row.split()[-1] for row in rows if row.split()[-1].isalpha()] == ["one", "two", "three"]


def test_band_is_shaded_and_sets_the_scale() -> None:
    line = Line([0, 1, 2], [0.5, 0.5, 0.5], [0.0, 0.4, 0.5], [1.0, 0.6, 0.5])
    rows = plot([line], 60, 9, format_y="{:.1f}".format, format_x="{:.0f}".format).plain.splitlines()
    shaded = [row.count("░") for row in rows[:9]]
    assert rows[0].startswith("1.0 ┤░")
    assert shaded[0] < shaded[3] > 0
    assert json.dumps(shaded) == json.dumps(shaded[::-1])
