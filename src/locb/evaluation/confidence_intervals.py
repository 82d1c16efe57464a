"""95% confidence intervals of means, ratios and proportions, p-values, and the quantiles that they need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

NORMAL_QUANTILE = 1.959963984540054  # 97.5% quantile of the standard normal distribution
TAIL = 0.05  # probability outside a 95% interval
MAX_EXACT_DEGREES = 200  # degrees of freedom from which the error of the asymptotic expansion is below 10⁻¹¹


@lru_cache(maxsize=4096)
def student_quantile(degrees: float) -> float:
    """Return the 97.5% quantile of Student's t distribution.

    Parameters
    ----------
    degrees : float
        Degrees of freedom, above 0.

    Examples
    --------
    >>> [round(student_quantile(degrees), 3) for degrees in (1, 2, 10, 100)]
    [12.706, 4.303, 2.228, 1.984]
    """
    t = _expanded_quantile(degrees)
    if degrees > MAX_EXACT_DEGREES:
        return t
    # Newton's method for log P(|T| > t) as a function of log t, which is concave: it converges from any start.
    log_norm = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi * degrees) / 2
    for _ in range(100):
        tail = _two_sided_tail(t, degrees)
        density = math.exp(log_norm - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = math.log(tail / TAIL) * tail / (2.0 * t * density)
        t *= math.exp(step)
        if abs(step) < 1e-7:  # the error is now about the square of this step
            break
    return t


def _expanded_quantile(degrees: float) -> float:
    """Return the Cornish–Fisher expansion of the quantile, whose error falls with the fifth power of ``degrees``."""
    z = NORMAL_QUANTILE
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / degrees**power for power, term in enumerate(terms, 1))


def _two_sided_tail(t: float, degrees: float) -> float:
    """Return P(|T| > t): the regularized incomplete beta function I_x(degrees/2, 1/2) at x = degrees/(degrees + t²)."""
    squared = t * t
    if squared < 3.0:  # the continued fraction converges slowly here, but that of the complement converges quickly
        return 1.0 - _incomplete_beta(0.5, degrees / 2, squared / (degrees + squared))
    return _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + squared))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b), from its continued fraction (algorithm of Lentz)."""
    if x <= 0.0:
        return 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    fraction = d
    for m in range(1, 1000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1.0 + numerator / c, 1.0 / (1.0 + numerator * d)
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def upper_tail(t: float, degrees: float = math.inf) -> float:
    """Return P(T > t) for Student's t distribution, or for the standard normal distribution by default.

    Examples
    --------
    >>> [round(upper_tail(t, 4), 4) for t in (-2.776, 0.0, 1.0, 2.776)]
    [0.975, 0.5, 0.187, 0.025]
    """
    if math.isinf(t):
        return 0.0 if t > 0.0 else 1.0
    tail = math.erfc(abs(t) / math.sqrt(2.0)) if math.isinf(degrees) else _two_sided_tail(abs(t), degrees)
    return tail / 2 if t > 0.0 else 1.0 - tail / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's method, which bounds the probability of one or more false rejections.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def fieller_interval(numerator: Any, denominator: Any) -> tuple[float, float]:
    """Return the 95% confidence interval of the ratio of two means of paired values (Fieller).

    The interval consists of the ratios ρ for which a t test does not reject that the mean of
    ``numerator − ρ · denominator`` is 0. Values that are paired in a repeat may be correlated.

    Parameters
    ----------
    numerator, denominator : (repeats,) array_like
        Values of each repeat.

    Returns
    -------
    tuple of float
        Lower and upper end. (NaN, NaN) with fewer than two repeats; (−inf, inf) if the mean of the denominator is not
        significantly different from 0.

    Examples
    --------
    >>> [round(end, 3) for end in fieller_interval([8.0, 9.0, 10.0], [10.0, 12.0, 14.0])]
    [0.677, 0.927]
    """
    a, b = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    count = len(a)
    if count < 2:
        return math.nan, math.nan
    covariance = np.atleast_2d(np.cov(a, b)) * (student_quantile(count - 1) ** 2 / count)
    square = float(b.mean() ** 2 - covariance[1, 1])
    product = float(a.mean() * b.mean() - covariance[0, 1])
    constant = float(a.mean() ** 2 - covariance[0, 0])
    if square <= 0.0:
        return -math.inf, math.inf
    root = math.sqrt(max(0.0, product * product - square * constant))
    return (product - root) / square, (product + root) / square


def ci_half_width(values: Any, axis: int = 0) -> Any:
    """Return half of the width of the 95% confidence interval of a mean (Student's t).

    Parameters
    ----------
    values : array_like
        One value per repeat along ``axis``.
    axis : int, default 0
        Axis of the repeats.

    Returns
    -------
    float or array
        Half of the width, with ``axis`` removed from the shape. NaN for fewer than two repeats.

    Examples
    --------
    >>> round(float(ci_half_width([1.0, 2.0, 3.0])), 3)
    2.484
    """
    values = np.asarray(values, dtype=np.float64)
    count = values.shape[axis]
    if count < 2:
        return np.full(np.delete(values.shape, axis), np.nan)[()]
    return student_quantile(count - 1) * values.std(axis=axis, ddof=1) / math.sqrt(count)


def describe_gap(gap: Any, direction: str) -> str:
    """Return the mean of differences, one per repeat, with its margin: half the width of the 95% interval.

    The numbers have no decimals, or two significant digits if the margin would be rounded to 0.

    Examples
    --------
    >>> describe_gap([1.0], "below club")
    '1 below club. With one repeat there is no confidence interval.'
    """
    gap = np.asarray(gap, dtype=np.float64)
    mean, margin, same = float(gap.mean()), float(ci_half_width(gap)), not np.ptp(gap)
    smallest = abs(mean) if same else margin
    digits = 0 if smallest >= 1.0 or smallest == 0.0 else 1 - math.floor(math.log10(smallest))
    text = f"{mean:,.{digits}f} {direction}"
    if len(gap) == 1:
        return f"{text}. With one repeat there is no confidence interval."
    if same:
        return f"{text}. The difference is the same in all repeats, so there is no confidence interval."
    size = "exceeds the margin" if mean > margin else "is within the margin and may be due to chance"
    margins = f"± {margin:,.{digits}f}, the margin of the 95% interval, paired over {len(gap)} repeats"
    return f"{text} ({margins}): the difference {size}."


def proportion_interval(count: float, total: float) -> tuple[float, float]:
    """Return the centre and half of the width of Wilson's 95% confidence interval of the proportion count / total.

    Examples
    --------
    >>> centre, half_width = proportion_interval(9, 10)
    >>> round(centre, 3), round(half_width, 3)
    (0.789, 0.193)
    """
    squared = NORMAL_QUANTILE**2
    centre = (count + squared / 2) / (total + squared)
    spread = math.sqrt(count * (total - count) / total + squared / 4)
    return centre, math.sqrt(squared) / (total + squared) * spread
