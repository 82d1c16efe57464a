"""What the page's scripts work out, asked of each for itself in the page."""

from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from browsing import watched

HISTORY = {
    "span": "hour",
    "total": {"from": 1000.0, "to": 4600.0, "mean": 0.5, "low": 0.45, "high": 0.55, "rewards": 400},
    "change": {"mean": 0.125, "low": 0.025, "high": 0.225},
}


@pytest.fixture
def ask(browser: Browser, client: httpx.Client) -> Any:
    """Evaluates an expression in which the exports of one of the page's modules are ``m``, and ``given`` is given."""
    with watched(browser, str(client.base_url)) as seen:
        seen.page.goto(str(client.base_url))
        expect(seen.page.locator("#status")).to_have_text("running")

        def ask(module: str, expression: str, given: Any = None) -> Any:
            return seen.page.evaluate(f"async (given) => {{ const m = await import('{module}'); {expression} }}", given)

        yield ask


@pytest.mark.parametrize(
    ("start", "end", "rest"),
    [(1600.0, 2200.0, True), (900.0, 1001.0, True), (100.0, 900.0, False), (4600.0, 4700.0, False)],
)
def test_a_baseline_within_the_time_shown_is_left_out_of_what_it_is_compared_with(
    ask: Any, start: float, end: float, rest: bool
) -> None:
    baseline = {"from": start, "to": end, "mean": 0.25, "low": 0.2, "high": 0.3}
    told = ask("/page/words.js", "return m.ofHistory(given);", HISTORY | {"baseline": baseline})
    assert ("Without that period it is 0.375." in told) == rest
    assert told.startswith("Mean reward in the last hour: 0.500 (95% interval 0.450 to 0.550), from 400 rewards.")
    assert told.endswith("The difference is +0.125 (95% interval +0.025 to +0.225): it has risen.")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(-0.2, -0.1, "it has fallen"), (-0.1, 0.1, "that may be chance"), (None, None, "too few rewards to tell")],
)
def test_how_sure_a_change_is(ask: Any, low: float | None, high: float | None, words: str) -> None:
    baseline = {"from": 0.0, "to": 900.0, "mean": 0.25, "low": None, "high": None}
    history = HISTORY | {"baseline": baseline, "change": {"mean": -0.05, "low": low, "high": high}}
    assert words in ask("/page/words.js", "return m.ofHistory(given);", history)


def test_a_set_keeps_its_look_while_it_is_on_the_map(ask: Any) -> None:
    dressed = """const map = Object.create(m.MapPanel.prototype);
        map.looks = [];
        return given.map((seeds) => map.dress(seeds));"""
    looks = ask("/page/map.js", dressed, [["a", "b", "c"], ["c", "a"], ["d", "c", "e", "a"], ["b"]])
    assert looks == [[0, 1, 2], [2, 0], [1, 2, 3, 0], [0]]


def test_a_certificate_beyond_two_says_nothing(ask: Any) -> None:
    show = "return given.map(([certificate, exact]) => m.certificate({ certificate, certificate_exact: exact }));"
    given = [[2.0, True], [0.5, False], [2.001, True], [None, False]]
    assert ask("/page/groups.js", show, given) == ["2.000", "≤ 0.500", "says nothing", "–"]


def test_features_keep_their_colours_from_chart_to_chart(ask: Any) -> None:
    def decision(**contributions: float) -> dict[str, Any]:
        explanation = {"contributions": contributions, "intercept": 0.0, "bonus": 0.1}
        return {"arm": "x", "name": "x", "explanation": explanation}

    told = "return m.parts(given.decisions, given.like).values;"
    first = ask("/page/explaining.js", told, {"decisions": [decision(a=3.0, b=-2.0, c=1.0)], "like": []})
    assert (first["names"], first["shown"]) == (["a", "b", "c", "", ""], ["0", "1", "2", "bonus"])
    other = [decision(d=4.0, c=3.0, a=-1.0), decision(d=4.0, e=0.5, zero=0.0)]
    second = ask("/page/explaining.js", told, {"decisions": other, "like": first["names"]})
    assert (second["names"], second["shown"]) == (["a", "d", "c", "e", ""], ["0", "1", "2", "3", "bonus"])
