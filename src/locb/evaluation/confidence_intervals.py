"""95% confidence intervals of means and proportions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NORMAL_QUANTILE = 1.959964  # 97.5% quantile of the normal distribution

# 97.5% quantiles of Student's t distribution for 1 to 30 degrees of freedom.
_STUDENT_T_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


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
    freedom = count - 1
    normal = NORMAL_QUANTILE
    if freedom <= len(_STUDENT_T_QUANTILES):
        quantile = _STUDENT_T_QUANTILES[freedom - 1]
    else:
        quantile = normal + (normal**3 + normal) / (4 * freedom)
    return quantile * values.std(axis=axis, ddof=1) / math.sqrt(count)


def proportion_interval(count: int, total: int) -> tuple[float, float]:
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
