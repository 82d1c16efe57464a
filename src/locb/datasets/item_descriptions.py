"""Attributes of items, from columns of a table that describe the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.datasets.item_features import one_hot

MIN_DESCRIBED = 0.8  # a column that describes a smaller share of the items gives a warning


def describe_items(table: Any, item: str, columns: Sequence[str], names: Any) -> tuple[Any, list[str]]:
    """Return the attributes of the items as a sparse matrix (items, attributes), and notes on the quality of columns.

    The value of an item in a column is the first value that is not missing. An item without a row in ``table`` has only
    missing values. Numeric columns are standardized, after missing numbers are replaced by the mean of the column. Text
    columns become one-hot columns, and missing text gives zeros. Text may have several values, separated by ``|``.

    The notes state which columns have no value for many items, and which have several values for an item.

    Parameters
    ----------
    table : polars.DataFrame
        Descriptions, with any number of rows per item.
    item : str
        Name of the column of items.
    columns : sequence of str
        Names of the columns that describe the items.
    names : polars.Series
        Items in the order of the rows of the result.

    Raises
    ------
    ValueError
        If no item has a value in any of the columns.
    """
    import polars as pl
    from scipy import sparse

    floats = [column for column in columns if table[column].dtype.is_float()]
    known = table.select(pl.col(item).cast(pl.String), *columns).with_columns(
        pl.when(pl.col(column).is_finite()).then(pl.col(column)).alias(column)  # NaN and infinity count as missing
        for column in floats
    )
    values = known.group_by(item).agg(pl.col(columns).drop_nulls().first())
    aligned = pl.DataFrame({item: names.cast(pl.String)}).join(values, on=item, how="left", maintain_order="left")
    if all(aligned[column].null_count() == aligned.height for column in columns):
        described = ", ".join(map(repr, columns))
        raise ValueError(
            f"none of the {len(names):,} items has a value in {described}: column {item!r} must contain the ids of "
            "these items, and at least one of them must have a value"
        )
    variants = (
        known.join(aligned.select(item), on=item, how="semi")
        .group_by(item)
        .agg(pl.col(columns).drop_nulls().n_unique())
    )
    blocks, notes = [], []
    for column in columns:
        notes += _note_quality(column, aligned[column], int((variants[column] > 1).sum()))
        if aligned[column].dtype.is_numeric():
            real = aligned[column].cast(float)
            numbers = real.fill_null(real.mean() or 0.0).to_numpy()
            spread = numbers.std()
            blocks.append(sparse.csr_matrix(((numbers - numbers.mean()) / (spread or 1.0)).astype(np.float32)[:, None]))
        else:
            texts = aligned[column].to_list()
            blocks.append(one_hot([() if value is None else str(value).split("|") for value in texts]))
    return sparse.hstack(blocks, format="csr"), notes


def _note_quality(column: str, values: Any, n_varying: int) -> list[str]:
    """Return a note if fewer than 80% of the items have a value, and a note if items have several values."""
    n_items, notes = len(values), []
    described = n_items - values.null_count()
    if described < MIN_DESCRIBED * n_items:
        rest = "the mean" if values.dtype.is_numeric() else "no label"
        share = f"{described:,} of {n_items:,} items ({described / n_items:.1%})"
        notes.append(f"column {column!r} has a value for {share}; the other items get {rest}")
    if n_varying:
        share = f"{n_varying:,} of {n_items:,} items ({n_varying / n_items:.1%})"
        notes.append(f"column {column!r} has more than one value for {share}; the first value of each item is used")
    return notes
