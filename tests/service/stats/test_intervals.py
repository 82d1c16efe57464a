"""Confidence intervals, compared with those of SciPy."""

import numpy as np
import pytest
from scipy import stats

from locb.service.stats.event_stats import Counts
from locb.service.stats.intervals import difference_interval, mean_interval, t_quantile


def counts(rewards: np.ndarray) -> Counts:
    return Counts(0, 0, 0, len(rewards), rewards.sum(), (rewards**2).sum())


@pytest.mark.parametrize("degrees", [2, 3, 5.5, 10, 30, 1000, 1e7])
def test_t_quantile(degrees: float) -> None:
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=0.01 if degrees < 5 else 1e-3)


def test_mean_interval() -> None:
    rewards = np.random.default_rng(0).random(25)
    low, high = stats.ttest_1samp(rewards, 0.0).confidence_interval()
    assert mean_interval(counts(rewards)) == pytest.approx((rewards.mean(), low, high), rel=1e-4)
    assert mean_interval(Counts()) == (None, None, None)
    assert mean_interval(counts(rewards[:1])) == (rewards[0], None, None)


def test_difference_interval() -> None:
    rng = np.random.default_rng(1)
    rewards, baseline = rng.random(30), 2.0 * rng.random(11)
    low, high = stats.ttest_ind(rewards, baseline, equal_var=False).confidence_interval()
    found = difference_interval(counts(rewards), counts(baseline))
    assert found == pytest.approx((rewards.mean() - baseline.mean(), low, high), rel=1e-3)
    assert difference_interval(counts(rewards), Counts()) is None
    assert difference_interval(counts(rewards), counts(baseline[:1])) == (
        pytest.approx(rewards.mean() - baseline[0]),
        None,
        None,
    )
    same = np.ones(4)
    assert difference_interval(counts(same), counts(0.0 * same)) == (1.0, 1.0, 1.0)
