"""The command ``locb tune``: candidates, held-out value, report and errors."""

import json
from pathlib import Path

import numpy as np
import pytest

from commandline import call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with shop.csv: 1,500 random decisions of 40 customers; banner B earns more."""
    rng, lines = np.random.default_rng(0), ["customer,banner,revenue"]
    for _ in range(1500):
        arm = int(rng.integers(3))
        lines.append(f"c{rng.integers(40)},{'ABC'[arm]},{int(rng.random() < (0.1, 0.6, 0.2)[arm])}")
    (tmp_path / "shop.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_winner_and_report(shop: Path) -> None:
    policies = ("--policy", "linucb-one", "--policy", "arm:B", "--policy", "arm:A", "--grid", "alpha=0.1,1")
    done = call("tune", "shop.csv", "--propensity", "uniform", *policies, "--output", "out", cwd=shop)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "winner: arm:B" in text
    assert "the choice: better than logged" in text
    assert "linucb-one alpha=0.1" in text
    record = json.loads((shop / "out" / "tuning.json").read_text())
    assert record["chosen"] == ["arm:B"] * 5
    assert record["value"]["low"] < 0.6 < record["value"]["high"]
    assert record["winners_curse"] == pytest.approx(record["selecting_value"] - record["value"]["value"])
    page = (shop / "out" / "report.html").read_text()
    for part in ("chart-values", "winner: arm:B", "5 of 5 folds"):
        assert part in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shop.csv",), "--propensity must be known to tune a policy"),
        (("shop.csv", "--propensity", "uniform", "--grid", "beta"), "--grid must be name=value,value"),
        (("shop.csv", "--propensity", "uniform", "--grid", "speed=1"), "has the parameter 'speed'"),
        (("shop.csv", "--propensity", "uniform", "--folds", "2"), "--folds must be at least 3, not 2"),
    ],
)
def test_errors(shop: Path, arguments: tuple[str, ...], message: str) -> None:
    done = call("tune", *arguments, cwd=shop)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
