"""Charts and HTML of results, which the package ``locb.report`` makes.

Results, such as runs and policies, are defined in lower layers than the report. Their methods for notebooks call the
*presenter*, a module with functions for each kind of result. The package ``locb`` sets the presenter, so that a lower
layer does not depend on the report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_load: Callable[[], Any] | None = None


def set_presenter(load: Callable[[], Any]) -> None:
    """Set the function that imports and returns the presenter. It is called on the first use of a chart or HTML."""
    global _load
    _load = load


def presenter() -> Any:
    """Return the presenter, the module ``locb.report.notebook``."""
    if _load is None:
        raise RuntimeError("no presenter is set; import locb first")
    return _load()
