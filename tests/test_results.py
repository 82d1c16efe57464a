import numpy as np
import pytest

from locb.evaluation.results import Comparison, Entry, half_width


def entry(policy: str, finals: list[float], alpha: float | None = 1.0) -> Entry:
    column = np.array(finals)[:, None]
    blank = np.zeros(len(finals))
    return Entry(policy, alpha, column, blank, blank.astype(np.int64), blank * np.nan, blank)


def comparison(*entries: Entry) -> Comparison:
    return Comparison({"alphas": [1.0]}, np.array([1]), list(entries), None, [0])


def test_half_width_is_students() -> None:
    # Five values of deviation 1 about their mean: t(4) = 2.776.
    values = np.array([0.0, 0.0, 0.0, 1.0, -1.0]) * np.sqrt(2.0)
    assert half_width(values) == pytest.approx(2.776 * 1.0 / np.sqrt(5), rel=1e-3)
    assert np.isnan(half_width([1.0]))
    wide = np.random.default_rng(0).standard_normal((100, 3))
    assert half_width(wide) == pytest.approx(1.984 * wide.std(axis=0, ddof=1) / 10, rel=1e-3)


def test_the_best_alpha_of_each_policy_counts() -> None:
    result = comparison(entry("a", [5, 7], 0.1), entry("a", [4, 6], 1.0), entry("b", [9, 9]))
    assert [(e.policy, e.alpha) for e in result.best_of_each()] == [("a", 1.0), ("b", 1.0)]


def test_the_verdict_is_paired_and_honest() -> None:
    sure = comparison(entry("a", [1, 11, 21]), entry("b", [3, 13, 23.1])).verdict()
    assert sure.startswith("a has the lowest regret, 2 below b's")
    assert "more than its 95% interval" in sure
    assert "may be chance" in comparison(entry("a", [1, 11, 21]), entry("b", [9, 2, 24])).verdict()
    assert "one repeat cannot tell" in comparison(entry("a", [1]), entry("b", [2])).verdict()
    assert "a and b have the same regret, 1" in comparison(entry("a", [1, 1]), entry("b", [1, 1])).verdict()
    assert "ran alone" in comparison(entry("a", [1])).verdict()
