"""Quantiles of Student's t distribution and confidence intervals, compared with those of SciPy."""

import numpy as np
import pytest
from scipy import stats

from locb.evaluation.confidence_intervals import ci_half_width, proportion_interval, student_quantile

DEGREES = [0.3, 1, 1.5, *range(2, 60), 77.7, 199, 200, 201, 1000, 1e5, 1e9]


@pytest.mark.parametrize("degrees", DEGREES)
def test_student_quantile_is_exact(degrees: float) -> None:
    assert student_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-10)


@pytest.mark.parametrize("count", [2, 3, 5, 32, 300])
def test_half_width_is_that_of_the_t_interval(count: int) -> None:
    values = np.random.default_rng(count).normal(size=(count, 2))
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval()
    np.testing.assert_allclose(ci_half_width(values), (high - low) / 2, rtol=1e-10)


@pytest.mark.parametrize(("count", "total"), [(0, 1), (0, 5), (3, 3), (9, 10), (400, 1000)])
def test_proportion_interval_is_that_of_wilson(count: int, total: int) -> None:
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    centre, half_width = proportion_interval(count, total)
    assert (centre - half_width, centre + half_width) == pytest.approx((expected.low, expected.high), abs=1e-12)
