"""Functions of the page's scripts, evaluated in the page."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, expect

from browser import open_page

HISTORY = {
    "span": "hour",
    "total": {"from": 1000.0, "to": 4600.0, "mean": 0.5, "low": 0.45, "high": 0.55, "rewards": 400},
    "change": {"mean": 0.125, "low": 0.025, "high": 0.225},
}
UNLIKELY = "No group has a probability of 50% or more."


@pytest.fixture
def evaluate(browser: Browser, client: httpx.Client) -> Any:
    """Function that evaluates an expression in which ``m`` is a module of the page, and ``given`` its argument."""
    with open_page(browser, str(client.base_url)) as opened:
        opened.page.goto(str(client.base_url))
        expect(opened.page.locator("#connection")).to_have_text("running")

        def evaluate(module: str, expression: str, given: Any = None) -> Any:
            return opened.page.evaluate(
                f"async (given) => {{ const m = await import('{module}'); {expression} }}", given
            )

        yield evaluate


@pytest.mark.parametrize("user", ["ann", "a/b?c#d", "...", ".a", "%2E", "ä ö", ".", ".."])
def test_path_of_a_user_reaches_the_user_or_is_refused(evaluate: Any, user: str) -> None:
    expression = """let path;
        try { path = m.path`/v1/users/${given}/similar`; } catch (problem) { return problem.message; }
        return new URL(path, location.href).pathname;"""
    refused = f"Browsers cannot request the id “{user}”. Use locb watch or the API instead."
    expected = refused if user in (".", "..") else f"/v1/users/{quote(user, safe='')}/similar"
    assert evaluate("/page/api.js", expression, user) == expected


@pytest.mark.parametrize(
    ("start", "end", "overlaps"),
    [(1600.0, 2200.0, True), (900.0, 1001.0, True), (100.0, 900.0, False), (4600.0, 4700.0, False)],
)
def test_mean_without_an_overlapping_baseline_is_shown(evaluate: Any, start: float, end: float, overlaps: bool) -> None:
    baseline = {"from": start, "to": end, "mean": 0.25, "low": 0.2, "high": 0.3}
    text = evaluate("/page/sentences.js", "return m.formatHistory(given);", HISTORY | {"baseline": baseline})
    assert ("outside the baseline period: 0.375." in text) == overlaps
    assert text.startswith("Mean reward in the last hour: 0.500 (95% interval 0.450 to 0.550), from 400 rewards.")
    assert text.endswith(": +0.125 (95% interval +0.025 to +0.225), significant increase.")
    assert ("Change from the baseline to this mean: " in text) == overlaps
    assert ("Change from the baseline: " in text) != overlaps


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.2, -0.1, "significant decrease"), (-0.1, 0.1, "not significant"), (None, None, "too few rewards")],
)
def test_significance_of_a_change(evaluate: Any, low: float | None, high: float | None, verdict: str) -> None:
    baseline = {"from": 0.0, "to": 900.0, "mean": 0.25, "low": None, "high": None}
    history = HISTORY | {"baseline": baseline, "change": {"mean": -0.05, "low": low, "high": high}}
    assert verdict in evaluate("/page/sentences.js", "return m.formatHistory(given);", history)


def test_group_keeps_its_colour_while_it_is_on_the_map(evaluate: Any) -> None:
    expression = """const map = Object.create(m.MapPanel.prototype);
        map.colourSeeds = [];
        return given.map((seeds) => map.assignColours(seeds));"""
    colours = evaluate("/page/map_panel.js", expression, [["a", "b", "c"], ["c", "a"], ["d", "c", "e", "a"], ["b"]])
    assert colours == [[0, 1, 2], [2, 0], [1, 2, 3, 0], [0]]


def test_certificate_of_the_maximum_distance_or_more_is_not_informative(evaluate: Any) -> None:
    show = """return given.map(([certificate, exact, max_distance]) =>
        m.formatCertificate({ certificate, certificate_exact: exact, max_distance }));"""
    given = [[1.999, True, 2], [0.5, False, 2], [2.0, True, 2], [2.001, True, 2], [None, False, 2]]
    expected = ["1.999", "≤ 0.500", "not informative yet (≥ 2)", "not informative yet (≥ 2)", "–"]
    assert evaluate("/page/groups_panel.js", show, given) == expected
    given = [[99.9, True, 100], [100.0, True, 100]]  # rewards from 0 to 50
    assert evaluate("/page/groups_panel.js", show, given) == ["99.900", "not informative yet (≥ 100)"]


def cluster(seed: str | None, probability: float | None, same_as: str | None = None) -> dict[str, Any]:
    return {"seed": seed, "size": None, "returned": False, "probability": probability, "same_as": same_as}


@pytest.mark.parametrize(
    ("served", "clusters", "alone", "expected"),
    [
        (9, [cluster("bob", 0.94)], 0.0, ["bob", "belongs to the group of bob with a probability of 94%"]),
        (
            9,
            [cluster("cat", 0.02), cluster("eve", 0.9, "bob")],
            0.0,
            ["bob", "belongs to the group of bob with a probability of 90%"],
        ),
        (9, [cluster("bob", 0.63)], 0.3, ["bob?", "belongs to the group of bob with a probability of 63%"]),
        (
            9,
            [cluster(None, 0.97)],
            0.0,
            ["everyone", "belongs to the group “everyone” with a probability of 97%"],
        ),
        (
            9,
            [cluster("bob", 0.34), cluster("eve", 0.2)],
            0.31,
            [
                "unknown",
                f"{UNLIKELY} Most probable: the group of bob (34%). Probability that the user is in no group: 31%.",
            ],
        ),
        (
            9,
            [cluster(None, 0.43)],
            0.3,
            [
                "unknown",
                f"{UNLIKELY} Most probable: the group “everyone” (43%). Probability that the user is in no group: 30%.",
            ],
        ),
        (0, [cluster("bob", 0.95)], 0.0, ["unknown", "no rewards yet"]),
        (9, [], 1.0, ["unknown", f"{UNLIKELY} Probability that the user is in no group: 100%."]),
        (9, [cluster("bob", None)], None, None),
    ],
)
def test_text_about_the_group_of_a_user(
    evaluate: Any, served: int, clusters: list[Any], alone: float | None, expected: list[str] | None
) -> None:
    detail = {"served": served, "clusters": clusters, "no_cluster_probability": alone}
    assert evaluate("/page/sentences.js", "return m.formatMembership(given);", detail) == expected


def test_groups_that_count_as_one_are_listed_once(evaluate: Any) -> None:
    clusters = [
        cluster("a", 0.1),
        cluster("b", 0.8, "c"),
        cluster("d", 0.8, "c"),
        cluster("c", 0.8),
        cluster("e", None),
    ]
    assert evaluate("/page/sentences.js", "return m.mergeGroups(given);", clusters) == [
        {"seed": "c", "seeds": ["b", "d"], "probability": 0.8},
        {"seed": "a", "seeds": [], "probability": 0.1},
    ]


@pytest.mark.parametrize(
    ("kind", "seed", "text"),
    [
        ("user", "ann", "own rewards (4 rewards, 100%)"),
        ("cluster", "bob", "group of bob (12 users, 4 rewards, 100%)"),
        ("neighbourhood", "bob", "group of bob (12 users, 4 rewards, 100%)"),
        ("neighbourhood", None, "similar users (12 users, 4 rewards, 100%)"),
        ("component", None, "group (12 users, 4 rewards, 100%)"),
        ("custom", None, "custom (12 users, 4 rewards, 100%)"),
    ],
)
def test_evidence_sources_are_named_as_groups(evaluate: Any, kind: str, seed: str | None, text: str) -> None:
    source = {"kind": kind, "seed": seed, "weight": 1.0, "users": 1 if kind == "user" else 12, "observations": 4}
    assert evaluate("/page/sentences.js", "return m.formatSources(given);", [source]) == text


@pytest.mark.parametrize(("seconds", "pauses"), [(2, [4, 8, 8, 2, 4]), (10, [20, 20, 20, 10, 20])])
def test_requests_are_less_frequent_while_they_fail(evaluate: Any, seconds: int, pauses: list[int]) -> None:
    expression = """const pauses = [];
        let fails;
        const load = async () => { if (fails) throw new m.Problem(503, "unavailable", ""); };
        const polling = new m.Polling(given, load, () => {}, (problem, pause) => pauses.push(pause));
        for (fails of [true, true, true, false, true]) {
          await polling.poll();
          if (!fails) pauses.push(polling.pause);
        }
        return pauses;"""
    assert evaluate("/page/api.js", expression, seconds) == pauses


def test_features_have_the_same_colours_in_all_charts(evaluate: Any) -> None:
    def decision(**contributions: float) -> dict[str, Any]:
        explanation = {"contributions": contributions, "intercept": 0.0, "bonus": 0.1}
        return {"arm": "x", "name": "x", "explanation": explanation}

    expression = "return m.explainDecisions(given.decisions, given.reference).params;"
    given = {"decisions": [decision(a=3.0, b=-2.0, c=1.0)], "reference": []}
    first = evaluate("/page/score_chart.js", expression, given)
    assert (first["names"], first["legend_values"]) == (["a", "b", "c", "", ""], ["0", "1", "2", "bonus"])
    decisions = [decision(d=4.0, c=3.0, a=-1.0), decision(d=4.0, e=0.5, zero=0.0)]
    second = evaluate("/page/score_chart.js", expression, {"decisions": decisions, "reference": first["names"]})
    assert (second["names"], second["legend_values"]) == (["a", "d", "c", "e", ""], ["0", "1", "2", "3", "bonus"])
