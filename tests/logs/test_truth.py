"""Estimates on simulated logs, compared with the truth: coverage of intervals, errors, and bias.

``make verify`` runs these tests with 400 logs. The usual run uses 60 logs.
"""

import math
import os
from typing import Any

import numpy as np
import pytest

import locb
from locb.evaluation.confidence_intervals import ci_half_width
from logs.truth import (
    DECISIONS,
    choose,
    draw_log,
    environment,
    play_online,
    true_logged_value,
    true_value,
)

LOGS = int(os.environ.get("TRUTH_LOGS", "60"))
REPLAYS = 20 if LOGS >= 400 else 8
NOMINAL = 0.95  # share of intervals that cover the truth; the measured share is within three standard errors of it


@pytest.fixture(scope="module")
def fixed() -> dict[str, Any]:
    """Evaluations of the fixed policy: values, bounds and differences by estimator, one row per log."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(LOGS):
        result = locb.evaluate(draw_log(seed), {"target": choose}, seed=seed)
        for value in result["target"].values:
            difference = value.difference
            assert difference is not None
            found.setdefault(value.estimator, []).append((*value.value, *difference))
        found.setdefault("logged", []).append((*result["logged"].values[0].value, 0, 0, 0))
        weights = result["target"].weights
        assert weights is not None
        found.setdefault("weights", []).append((*weights.mean, weights.effective, weights.largest, 0))
    return {name: np.array(rows) for name, rows in found.items()}


def report(name: str, text: str) -> None:
    """Print a figure; ``pytest -s`` shows it."""
    print(f"\n{name}: {text} ({LOGS} logs of {DECISIONS} decisions)")  # noqa: T201 - shown with -s


def check_coverage(name: str, low: Any, high: Any, truth: float) -> None:
    covered = float(((low <= truth) & (truth <= high)).mean())
    report(name, f"95% intervals cover the truth {truth:.4f} in {covered:.1%}, mean width {np.mean(high - low):.4f}")
    assert abs(covered - NOMINAL) <= 3.0 * math.sqrt(NOMINAL * (1.0 - NOMINAL) / LOGS)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "dm"])
def test_intervals_of_values(fixed: dict[str, Any], estimator: str) -> None:
    rows = fixed[estimator]
    check_coverage(f"{estimator} value", rows[:, 1], rows[:, 2], true_value())


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "dm"])
def test_intervals_of_differences(fixed: dict[str, Any], estimator: str) -> None:
    rows = fixed[estimator]
    check_coverage(f"{estimator} difference", rows[:, 4], rows[:, 5], true_value() - true_logged_value())


def test_intervals_of_the_logged_value_and_the_mean_weight(fixed: dict[str, Any]) -> None:
    check_coverage("logged value", fixed["logged"][:, 1], fixed["logged"][:, 2], true_logged_value())
    check_coverage("mean weight", fixed["weights"][:, 1], fixed["weights"][:, 2], 1.0)


def test_doubly_robust_has_the_smaller_error(fixed: dict[str, Any]) -> None:
    errors = {name: float(np.sqrt(np.mean((fixed[name][:, 0] - true_value()) ** 2))) for name in ("ips", "snips", "dr")}
    report("root mean squared error", ", ".join(f"{name} {error:.4f}" for name, error in errors.items()))
    assert errors["dr"] <= errors["ips"]


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_fixed_policies_are_estimated_without_bias(fixed: dict[str, Any], estimator: str) -> None:
    errors = fixed[estimator][:, 0] - true_value()
    report(f"{estimator} bias", f"{errors.mean():+.5f} ± {float(ci_half_width(errors)):.5f}")
    assert abs(errors.mean()) <= 1.75 * float(ci_half_width(errors)) + 0.001  # 1.75: 99.9% instead of 95%


@pytest.fixture(scope="module", params=[("linucb-one", True), ("linucb-ind", False)], ids=["uniform", "softmax"])
def learned(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """Replays of a learning policy, and mean rewards of the same policy that plays as many rounds itself."""
    name, uniform = request.param
    rows = []
    for seed in range(LOGS):
        result = locb.evaluate(draw_log(seed, uniform=uniform), name, seed=seed, replays=REPLAYS)[name]
        assert result.weights is not None
        count = round(result.weights.effective)
        played = np.mean([play_online(name, 100_000 + 10 * seed + repeat, count) for repeat in range(5)])
        rows.append((*result.values[0].value, played, count))
    return name, np.array(rows)


def test_replay_is_unbiased(learned: tuple[str, Any]) -> None:
    name, rows = learned
    errors = rows[:, 0] - rows[:, 3]
    margin = float(ci_half_width(errors))
    report(f"{name} replay", f"replay minus play {errors.mean():+.5f} ± {margin:.5f}, {rows[:, 4].mean():.0f} accepted")
    assert abs(errors.mean()) <= 1.75 * margin


def test_intervals_of_replay(learned: tuple[str, Any]) -> None:
    name, rows = learned
    check_coverage(f"{name} replay", rows[:, 1], rows[:, 2], float(rows[:, 3].mean()))


def test_the_environment_is_linear() -> None:
    rounds = environment().rounds(100, seed=1)
    assert rounds.means is not None
    expected = np.einsum("tkd,td->tk", rounds.contexts, environment().theta[rounds.users])
    assert np.allclose(rounds.means, expected)
    assert rounds.means.min() >= 0
    assert rounds.means.max() <= 1
