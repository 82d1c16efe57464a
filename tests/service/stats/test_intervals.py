"""Confidence intervals, compared with those of SciPy."""

import numpy as np
import pytest
from scipy import stats

from locb.service.stats.event_stats import Counts
from locb.service.stats.intervals import difference_interval, mean_interval


def counts(rewards: np.ndarray) -> Counts:
    return Counts(0, 0, 0, len(rewards), rewards.sum(), (rewards**2).sum())


def test_mean_interval() -> None:
    rewards = np.random.default_rng(0).random(25)
    low, high = stats.ttest_1samp(rewards, 0.0).confidence_interval()
    assert mean_interval(counts(rewards)) == pytest.approx((rewards.mean(), low, high), rel=1e-10)
    assert mean_interval(Counts()) == (None, None, None)
    assert mean_interval(counts(rewards[:1])) == (rewards[0], None, None)


def test_difference_interval() -> None:
    rng = np.random.default_rng(1)
    rewards, baseline = rng.random(30), 2.0 * rng.random(11)
    low, high = stats.ttest_ind(rewards, baseline, equal_var=False).confidence_interval()
    found = difference_interval(counts(rewards), counts(baseline))
    assert found == pytest.approx((rewards.mean() - baseline.mean(), low, high), rel=1e-10)
    assert difference_interval(counts(rewards), Counts()) is None
    assert difference_interval(counts(rewards), counts(baseline[:1])) == (
        pytest.approx(rewards.mean() - baseline[0]),
        None,
        None,
    )
    same = np.full(4, 2.0)
    assert difference_interval(counts(same), counts(0.0 * same)) == (2.0, 2.0, 2.0)


def test_mean_interval_of_two_rewards() -> None:
    """With one degree of freedom the quantile is 12.706."""
    _, low, high = mean_interval(counts(np.array([0.2, 0.4])))
    assert (low, high) == pytest.approx((0.3 - 12.706204736 * 0.1, 0.3 + 12.706204736 * 0.1))


@pytest.mark.parametrize(("ones", "total"), [(0, 2), (1, 2), (2, 2), (7, 7), (1, 40), (990, 1000)])
def test_interval_of_rewards_of_0_and_1_is_that_of_wilson(ones: int, total: int) -> None:
    rewards = (np.arange(total) < ones).astype(float)
    expected = stats.binomtest(ones, total).proportion_ci(method="wilson")
    mean, low, high = mean_interval(counts(rewards))
    assert (mean, low, high) == pytest.approx((ones / total, expected.low, expected.high), abs=1e-12)
    assert 0.0 <= low < high <= 1.0


@pytest.mark.parametrize("ones", [0, 1, 3, 6])
@pytest.mark.parametrize("baseline_ones", [0, 2, 9])
def test_difference_of_rewards_of_0_and_1_stays_between_minus_1_and_1(ones: int, baseline_ones: int) -> None:
    """Newcombe's interval: it has a positive width also if all rewards of a period are equal."""
    rewards, baseline = (np.arange(6) < ones).astype(float), (np.arange(9) < baseline_ones).astype(float)
    change, low, high = difference_interval(counts(rewards), counts(baseline))
    assert change == pytest.approx(rewards.mean() - baseline.mean())
    assert -1.0 <= low < high <= 1.0
    assert low <= change <= high
    reverse = difference_interval(counts(baseline), counts(rewards))
    assert reverse == pytest.approx((-change, -high, -low))


def test_difference_interval_is_that_of_newcombe() -> None:
    """Example of Newcombe (1998), method 10: 56/70 − 48/80 has the interval 0.0524 to 0.3339."""
    rewards, baseline = (np.arange(70) < 56).astype(float), (np.arange(80) < 48).astype(float)
    assert difference_interval(counts(rewards), counts(baseline)) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
