"""Type aliases for NumPy arrays, whose shapes are documented where the arrays are declared, and limits of outliers."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int32]  # indices in long arrays: half the memory of ``Ints``
Bools: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]  # 64-bit words: bit sets, hash keys, state of a random generator

CENTRAL = (0.05, 0.95)  # quantiles of the central range of each coordinate


def limit_outliers(points: Floats) -> tuple[Floats, int]:
    """Return points (n, 2) of a chart with outliers moved to its edge, and the number of these outliers.

    The edge is one length of the central range (90% of the values) outside this range. A coordinate of which 90% of the
    values are equal is not changed.

    Examples
    --------
    >>> line = np.arange(21.0)
    >>> limit_outliers(np.column_stack([line, np.where(line == 20.0, 1e6, line)]))[1]
    1
    """
    if not len(points):
        return points, 0
    low, high = np.quantile(points, CENTRAL, axis=0)
    margin = np.where(high > low, high - low, np.inf)
    limited = np.clip(points, low - margin, high + margin)
    return limited, int((limited != points).any(axis=1).sum())
