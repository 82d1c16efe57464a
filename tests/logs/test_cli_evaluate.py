"""The command ``locb evaluate``: table, verdicts, report, detected columns, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest

from commandline import CUSTOM_POLICY, call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with shop.csv: 3,000 decisions of 50 customers; banner B earns more."""
    rng = np.random.default_rng(0)
    lines = ["customer;banner;revenue;probability;date"]
    for number in range(3000):
        arm = "AB"[int(rng.random() < 0.3)]
        revenue = "12,50 €" if rng.random() < {"A": 0.1, "B": 0.3}[arm] else "0"
        share = {"A": "0,7", "B": "0,3"}[arm]
        lines.append(f"c{rng.integers(50)};{arm};{revenue};{share};{1 + number // 120}.11.2025 10:00")
    lines.append("c1;A;lots;0,7;30.11.2025 10:00")
    (tmp_path / "shop.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_table_verdicts_and_report(shop: Path) -> None:
    arguments = ("--policy", "linucb-one", "--policy", "arm:B", "--policy", "arm:A", "--output", "out")
    done = call("evaluate", "shop.csv", *arguments, cwd=shop)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "user = customer (detected), chosen = banner (detected)" in text
    assert "propensity = probability (detected)" in text
    assert "skipped 1 row: the reward (revenue) is not a number (for example row 3001: 'lots')" in text
    assert "arm:B: better than logged (+1." in text
    assert "arm:A: worse than logged" in text
    assert "linucb-one was replayed" in text
    record = json.loads((shop / "out" / "evaluation.json").read_text())
    assert [result["policy"] for result in record["results"]] == ["logged", "linucb-one", "arm:B", "arm:A"]
    assert record["results"][2]["verdict"] == "better"
    assert record["results"][2]["values"][0]["difference"]["low"] > 0
    page = (shop / "out" / "report.html").read_text()
    for part in ("chart-differences", "chart-values", "chart-learning", "Diagnostics", "arm:B: better than logged"):
        assert part in page


def test_options_of_columns(shop: Path) -> None:
    text = (
        (shop / "shop.csv").read_text(encoding="utf-8").replace("customer;banner;revenue;probability;date", "a;b;c;d;e")
    )
    (shop / "other.csv").write_text(text, encoding="utf-8")
    columns = ("--user", "a", "--chosen", "b", "--reward", "c", "--propensity", "d", "--time", "e")
    done = call("evaluate", "other.csv", *columns, "--policy", "random", "--baseline", "arm:A", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "random: better than arm:A" in done.stdout
    assert (shop / "runs" / "evaluate" / "report.html").exists()


def test_custom_policy_and_parameters(shop: Path) -> None:
    (shop / "mine.py").write_text(CUSTOM_POLICY)
    done = call("evaluate", "shop.csv", "--policy", "mine.py:Mine", "--replays", "5", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "Mine: worse than logged (−0.6029 per decision" in done.stdout  # it always chooses A
    done = call("evaluate", "shop.csv", "--policy", "linucb-one", "--parameter", "alpha=x", cwd=shop)
    assert (done.returncode, done.stderr) == (2, "locb: --parameter alpha must be a number, not 'x'\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "Log does not exist"),
        (("shop.csv", "--user", "Customer"), "--user: shop.csv has no column 'Customer'; did you mean 'customer'?"),
        (("shop.csv", "--policy", "best"), "--policy: unknown policy 'best'; choose from locb"),
        (
            ("shop.csv", "--policy", "arm:b"),
            "--policy: the log has no arm 'b'; did you mean 'B'? Its arms are 'B', 'A'",
        ),
        (("shop.csv", "--policy", "arm:zzzz"), "--policy: the log has no arm 'zzzz'. Its arms are 'A', 'B'"),
        (("shop.csv", "--baseline", "eloc"), "--baseline must be a fixed policy"),
        (("shop.csv", "--format", "csv"), "--format must be one of 'auto'"),
        (("shop.csv", "--position", "1"), "--position is not an option of the format 'table'"),
        (("shop.csv", "--replays", "1"), "--replays must be at least 5, not 1"),
    ],
)
def test_errors(shop: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call("evaluate", *arguments, cwd=shop)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["evaluate", "tune"])
def test_more_than_half_of_the_rows_skipped(shop: Path, command: str) -> None:
    text = (shop / "shop.csv").read_text(encoding="utf-8").replace("0,7;", "1,7;")
    (shop / "shop.csv").write_text(text, encoding="utf-8")
    arguments = (command, "shop.csv", "--policy", "arm:B", "--policy", "random")
    done = call(*arguments, cwd=shop)
    assert done.returncode == 2
    assert "rows cannot be used, which is more than half: skipped 1 row: the reward (revenue)" in done.stderr
    assert "the propensity (probability) is not from 1e-09 to 1 (for example row 1: '1,7'; row" in done.stderr
    done = call(*arguments, "--allow-skipped", cwd=shop)
    assert done.returncode == 0, done.stderr


def test_help_has_examples(tmp_path: Path) -> None:
    text = call("evaluate", "--help", cwd=tmp_path).stdout
    for part in ("locb evaluate decisions.csv --policy eloc", "--propensity", "undecided"):
        assert part in text


def test_dsjson(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    lines = []
    for _ in range(300):
        action = int(rng.integers(2))
        context = {"User": {"name": f"u{rng.integers(9)}"}, "_multi": [{"_tag": "x", "a": 1}, {"_tag": "y", "b": 1}]}
        cost = -float(rng.random() < 0.2 + 0.5 * action)
        event = {"_label_cost": cost, "_label_probability": 0.5, "a": [action + 1, 2 - action], "p": [0.5, 0.5]}
        lines.append(json.dumps(event | {"c": context}))
    (tmp_path / "log.json").write_text("\n".join(lines))
    done = call("evaluate", "log.json", "--user", "User.name", "--policy", "arm:y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "user = User.name" in done.stdout
    assert "arm:y: better than logged" in done.stdout
    done = call("evaluate", "log.json", "--user", "User.name", "--user", "User.id", cwd=tmp_path)
    assert "--user must be one path in the context" in done.stderr
