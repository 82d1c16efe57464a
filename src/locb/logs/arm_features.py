"""Features of arms: from their ids, from named values, and from columns that describe them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import feature_row

MAX_IDENTITY = 64  # maximum number of arms with one feature each; the ids of more arms are hashed
MAX_DESCRIBED = 32  # maximum number of features from columns; more features are reduced by a truncated SVD
DEFAULT_DIM = 16  # features of arms with named values


def identity_features(arm_ids: Sequence[str]) -> Floats:
    """Return features (arms, d) that only identify the arms.

    Up to 64 arms have one feature each, so a linear model has one mean reward per arm. The ids of more arms are hashed
    into 64 features.
    """
    if len(arm_ids) <= MAX_IDENTITY:
        return np.eye(max(len(arm_ids), 1))
    return np.array([feature_row({"arm": arm}, MAX_IDENTITY) for arm in arm_ids])


def named_features(values: Any, dim: int) -> list[float]:
    """Return the features of an arm: numbers as they are, and named values hashed into ``dim`` features.

    Raises
    ------
    ValueError
        If the values are neither a list of numbers nor a flat mapping of names to numbers, text or booleans.
    """
    if isinstance(values, list | tuple):
        wrong = [value for value in values if not (isinstance(value, int | float) and abs(value) <= 1e6)]
        if wrong:
            raise ValueError(f"features must be numbers of at most 1e6 in absolute value, not {wrong[0]!r}")
        return [float(value) for value in values]
    if not isinstance(values, dict):
        raise ValueError(f"features must be a list of numbers or named values, not {values!r}")
    return feature_row({name: value for name, value in values.items() if value is not None}, dim)


def described_features(frame: Any, arm: str, columns: Sequence[str], names: Any) -> tuple[Floats, list[str]]:
    """Return features (arms, d) from columns that describe the arms, and notes on the quality of the columns.

    Numbers are standardized, and text is one-hot encoded. If there are more than 32 such features, they are
    reduced to 31 by a truncated singular value decomposition (SVD). All features are scaled together, so that the
    largest norm of an arm is 1/√2, and a constant 1/√2 is appended.

    Parameters
    ----------
    frame : polars.DataFrame
        Rows of the log.
    arm : str
        Name of the column of arms.
    columns : sequence of str
        Names of the columns that describe the arms.
    names : polars.Series
        Arms in the order of the rows of the result.
    """
    from locb.datasets.item_descriptions import describe_items
    from locb.datasets.item_features import right_factors

    attributes, notes = describe_items(frame, arm, columns, names)
    dense = np.asarray(attributes.todense(), dtype=np.float64)
    if dense.shape[1] > MAX_DESCRIBED:
        dense = right_factors(attributes.T.tocsr().astype(np.float64), MAX_DESCRIBED - 1)
    largest = float(np.linalg.norm(dense, axis=1).max(initial=0.0)) or 1.0
    return np.hstack([dense / (largest * math.sqrt(2.0)), np.full((len(dense), 1), math.sqrt(0.5))]), notes
