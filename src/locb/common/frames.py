"""Construction of data frames, with Polars or pandas, from columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from locb.common.validation import ParameterError

LIBRARIES = ("polars", "pandas")
_INSTALL = {"polars": "pip install 'locb[data]'", "pandas": "pip install pandas"}


def make_frame(columns: Mapping[str, Any], library: str = "polars") -> Any:
    """Return a data frame with these columns.

    Parameters
    ----------
    columns : mapping
        Values of each column, by name.
    library : {"polars", "pandas"}, default "polars"
        Library of the data frame.

    Raises
    ------
    ValueError
        If the library is unknown or not installed.
    """
    if library not in LIBRARIES:
        raise ParameterError("library", f" must be one of {', '.join(map(repr, LIBRARIES))}, not {library!r}")
    try:
        module = import_module(library)
    except ImportError as error:
        raise ValueError(f"data frames need the package {library}: run {_INSTALL[library]}") from error
    return module.DataFrame(dict(columns))


def rows_to_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> dict[str, list[Any]]:
    """Return the columns of a table from its rows; missing values are None.

    ``names`` are the first columns, which exist also if there is no row.

    Examples
    --------
    >>> rows_to_columns([{"a": 1}, {"a": 2, "b": 3}])
    {'a': [1, 2], 'b': [None, 3]}
    """
    found = dict.fromkeys(names) | dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in found}
