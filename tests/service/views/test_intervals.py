"""Means and their intervals against SciPy's."""

import numpy as np
import pytest
from scipy import stats

from locb.service.stats.event_stats import Counts
from locb.service.stats.intervals import difference_interval, mean_interval, t_quantile


def counts(rewards: np.ndarray) -> Counts:
    return Counts(0, 0, 0, len(rewards), rewards.sum(), (rewards**2).sum())


@pytest.mark.parametrize("freedom", [2, 3, 5.5, 10, 30, 1000, 1e7])
def test_students_distribution(freedom: float) -> None:
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.01 if freedom < 5 else 1e-3)


def test_the_interval_of_a_mean() -> None:
    rewards = np.random.default_rng(0).random(25)
    low, high = stats.ttest_1samp(rewards, 0.0).confidence_interval()
    assert mean_interval(counts(rewards)) == pytest.approx((rewards.mean(), low, high), rel=1e-4)
    assert mean_interval(Counts()) == (None, None, None)
    assert mean_interval(counts(rewards[:1])) == (rewards[0], None, None)


def test_welchs_interval() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.random(30), 2.0 * rng.random(11)
    low, high = stats.ttest_ind(one, other, equal_var=False).confidence_interval()
    found = difference_interval(counts(one), counts(other))
    assert found == pytest.approx((one.mean() - other.mean(), low, high), rel=1e-3)
    assert difference_interval(counts(one), Counts()) is None
    assert difference_interval(counts(one), counts(other[:1])) == (pytest.approx(one.mean() - other[0]), None, None)
    same = np.ones(4)
    assert difference_interval(counts(same), counts(0.0 * same)) == (1.0, 1.0, 1.0)
