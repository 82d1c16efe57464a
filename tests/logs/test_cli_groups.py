"""The command ``locb groups``: printed groups, tables, report and errors."""

import json
import signal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
import vl_convert

import locb
from browser import accessibility_violations, launch_browser, open_page
from commandline import call
from locb.logs.groups.gamma_choice import GammaScore, describe_choice
from locb.report.tables.groups_table import explain_likes

ARMS = ("tea", "coffee", "cake")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with shop.csv: 9,000 visits of 60 customers, of whom every third likes the same banner."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("shop")
    lines = ["customer;banner;revenue"]
    for _ in range(9000):
        customer, arm = rng.integers(60), rng.integers(3)
        is_bought = rng.random() < (0.8 if customer % 3 == arm else 0.1)
        lines.append(f"c{customer};{ARMS[arm]};{'12,50 €' if is_bought else '0'}")
    lines += ["c1;tea;lots", "new;tea;0"]
    (folder / "shop.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_groups_tables_and_report(shop: Path) -> None:
    done = call("groups", "shop.csv", "--replicates", "3", "--similar-to", "c4", "--output", "out", cwd=shop)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "user = customer (detected), reward = revenue (detected), chosen = banner (detected)" in text
    assert "skipped 1 row: the reward (revenue) is not a number (for example row 9001: 'lots')" in text
    assert "groups: 3, users: 61, rows: 9,001" in text
    assert "in a group: 60 (98.4%)" in text
    assert "not enough data to tell: 1 (1.6%)" in text
    assert "Most similar to c4" in text
    users = pl.read_parquet(shop / "out" / "users.parquet")
    assert users.columns == ["user", "rows", "group", "probability", "status", "radius"]
    members = users.filter(pl.col("group") == users.filter(pl.col("user") == "c0")["group"][0])["user"]
    assert {int(name[1:]) % 3 for name in members} == {0}
    assert pl.read_parquet(shop / "out" / "memberships.parquet").columns == ["user", "group", "probability"]
    likes = pl.read_csv(shop / "out" / "likes.csv")
    assert likes.filter(pl.col("group") == 0)["effect"].max() == pytest.approx(10.0, abs=0.6)
    record = json.loads((shop / "out" / "groups.json").read_text())
    assert record["settings"]["method"] == "eloc"
    with launch_browser() as browser, open_page(browser, shop.as_uri()) as opened:
        page = opened.page
        page.goto(f"{(shop / 'out' / 'report.html').as_uri()}")
        page.evaluate("report.ready.then(() => true)")
        assert page.locator(".figure-box canvas").count() == 3
        assert page.locator("#table-groups tbody tr").count() == 3
        assert accessibility_violations(page) == []


def test_csv_and_another_method(shop: Path) -> None:
    arguments = ("--method", "off-club", "--replicates", "0", "--csv", "--user", "customer", "--output", "other")
    done = call("groups", "shop.csv", *arguments, cwd=shop)
    assert done.returncode == 0, done.stderr
    users = pl.read_csv(shop / "other" / "users.csv")
    assert users["probability"].null_count() == users.height == 61
    assert "gamma" not in done.stdout
    assert not (shop / "other" / "gammas.csv").exists()
    assert (shop / "other" / "memberships.csv").exists()


def test_charts_and_report_in_python(shop: Path) -> None:
    found = locb.find_groups(shop / "shop.csv", replicates=0)
    chart = found.plot_users().to_dict()
    assert len(chart["datasets"]["rows"]) == found.users.height
    gammas = found.plot_gammas().to_dict()
    assert [row["gamma"] for row in gammas["datasets"]["rows"]] == found.gammas["gamma"].to_list()
    for made in (chart, gammas):
        assert vl_convert.vegalite_to_svg(made).startswith("<svg")
    path = found.save_report(shop / "made" / "report.html")
    text = path.read_text(encoding="utf-8")
    assert "What members like" in text
    assert f"Example: in group 0, the mean reward of {found.likes['feature'][0]} is" in text
    fixed = locb.find_groups(shop / "shop.csv", replicates=0, gamma=0.3)
    with pytest.raises(ValueError, match="gamma was not chosen by find_groups, so there is no chart"):
        fixed.plot_gammas()


def test_likes_in_words() -> None:
    frame = pl.DataFrame({"group": [0], "feature": ["price"], "step": [2.0], "effect": [-1.5], "average": [0.25]})
    found = SimpleNamespace(likes=frame)
    words = (
        "Example: in group 0, if price is 2 higher, the expected reward changes by −1.5 (average of all groups: +0.25)."
    )
    assert explain_likes(cast(Any, found)) == words
    text = frame.with_columns(feature=pl.lit("channel=app"), step=pl.lit(None))
    found.likes = pl.concat([text, text.with_columns(feature=pl.lit("constant"))])
    words = (
        "with channel=app, the expected reward differs by −1.5 from the mean of all rows (average of all groups: +0.25)"
    )
    assert words in explain_likes(cast(Any, found))


def test_notes_about_the_choice_of_gamma() -> None:
    scores = [GammaScore(0.1, 4, 0.9, 5.0, 0.0), GammaScore(0.2, 3, 0.9, 4.9, 0.1), GammaScore(0.4, 2, 0.9, 4.0, 0.2)]
    assert describe_choice(scores, 0.2, 3) == []
    edge, other = describe_choice(scores, 0.1, 8)
    assert edge == "gamma 0.1 is the smallest value that was compared; set gamma to try smaller values"
    assert other.startswith("the choice of gamma found 4 groups for gamma 0.1 with half of a sample of the users; the")
    assert "is the largest value" in describe_choice(scores, 0.4, 2)[0]


@pytest.mark.parametrize("step", ["sum_by_user", "measure_stability"])
def test_interruption_gives_one_line(shop: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(import_module("locb.logs.groups.find_groups"), step, interrupt)
    done = call("groups", "shop.csv", "--gamma", "0.3", "--output", "interrupted", cwd=shop)
    assert done.returncode == 130
    saved = "nothing was saved, because the groups depend on all rows of the log"
    assert done.stderr == f"locb: interrupted; {saved}; run the same command to start again\n"
    assert not (shop / "interrupted").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "Log does not exist"),
        (("shop.csv", "--user", "Customer"), "--user: shop.csv has no column 'Customer'; did you mean 'customer'?"),
        (("shop.csv", "--method", "locb"), "--gamma is required for method='locb'"),
        (("shop.csv", "--max-memory", "0"), "--max-memory must be above 0"),
        (("shop.csv", "--feature", "size"), "--feature: shop.csv has no column 'size'"),
        (("shop.csv", "--on", "spark"), "--on must be dask, ray, dask://HOST:PORT or ray://HOST:PORT, not 'spark'"),
        (("shop.csv", "--on", "dask://nowhere"), "--on must be HOST:PORT of the Dask scheduler, not 'nowhere'"),
    ],
)
def test_errors(shop: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call("groups", *arguments, cwd=shop)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_log_without_an_arm_asks_for_features(shop: Path) -> None:
    frame = {"customer": ["a"], "discount": [0.1], "channel": ["mail"], "clicked": [1]}
    shown = "to columns that describe what the user was shown, such as discount, channel"
    with pytest.raises(
        ValueError, match=f"^chosen must name the column of the chosen arm: .*; or set features {shown}$"
    ):
        locb.find_groups(frame)
    pl.DataFrame(frame).write_csv(shop / "visits.csv")
    done = call("groups", "visits.csv", cwd=shop)
    assert f"; or set --feature {shown}" in " ".join(done.stderr.split())
