"""Confidence intervals and the summary of a comparison."""

import numpy as np
import pytest

from locb.evaluation.confidence_intervals import ci_half_width
from locb.evaluation.results import Comparison, PolicyResult


def policy_result(policy: str, finals: list[float], alpha: float | None = 1.0) -> PolicyResult:
    column = np.array(finals)[:, None]
    blank = np.zeros(len(finals))
    return PolicyResult(policy, alpha, column, blank, blank.astype(np.int64), blank * np.nan, blank)


def comparison(*results: PolicyResult) -> Comparison:
    return Comparison({"alphas": [1.0]}, np.array([1]), list(results), None, [0])


def test_half_width_follows_student_t() -> None:
    # Five values with standard deviation 1: t(4) = 2.776.
    values = np.array([0.0, 0.0, 0.0, 1.0, -1.0]) * np.sqrt(2.0)
    assert ci_half_width(values) == pytest.approx(2.776 * 1.0 / np.sqrt(5), rel=1e-3)
    assert np.isnan(ci_half_width([1.0]))
    wide = np.random.default_rng(0).standard_normal((100, 3))
    assert ci_half_width(wide) == pytest.approx(1.984 * wide.std(axis=0, ddof=1) / 10, rel=1e-3)


def test_best_alpha_per_policy() -> None:
    compared = comparison(policy_result("a", [5, 7], 0.1), policy_result("a", [4, 6], 1.0), policy_result("b", [9, 9]))
    assert [(result.policy, result.alpha) for result in compared.best_per_policy()] == [("a", 1.0), ("b", 1.0)]


def test_verdict_uses_paired_difference() -> None:
    clear = comparison(policy_result("a", [1, 11, 21]), policy_result("b", [3, 13, 23.1])).verdict()
    assert clear.startswith("a has the lowest regret, 2.03 below b (± 0.14, the margin")
    assert "exceeds the margin" in clear
    assert (
        "may be due to chance" in comparison(policy_result("a", [1, 11, 21]), policy_result("b", [9, 2, 24])).verdict()
    )
    assert (
        "With one repeat there is no confidence interval"
        in comparison(policy_result("a", [1]), policy_result("b", [2])).verdict()
    )
    assert (
        "a and b have the same regret, 1"
        in comparison(policy_result("a", [1, 1]), policy_result("b", [1, 1])).verdict()
    )
    small = comparison(policy_result("a", [1.0, 1.0]), policy_result("b", [1.96, 2.02])).verdict()
    assert "0.99 below b (± 0.38, the margin of the 95% interval, paired over 2 repeats)" in small
    same = comparison(policy_result("a", [1, 2]), policy_result("b", [4, 5])).verdict()
    assert same.endswith("3 below b. The difference is the same in all repeats, so there is no confidence interval.")
    settings = comparison(policy_result("a", [1, 11], 0.1), policy_result("a", [1, 11], 0.3)).verdict()
    assert settings == "a (α = 0.1) and a (α = 0.3) have the same regret, 6."
    assert "Only a was run" in comparison(policy_result("a", [1])).verdict()
