"""The command ``locb groups``: printed groups, tables, report and errors."""

import json
import signal
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from browser import accessibility_violations, launch_browser, open_page
from commandline import call

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
