"""Notice that a kernel is being compiled, for users who would otherwise wait without an explanation."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from numba.core import event

DELAY_SECONDS = 1.0  # a shorter compilation is not announced
_log = logging.getLogger("locb.compilation")


class CompileNotice(event.Listener):
    """Listener for compilations by Numba. It logs a warning during the first long compilation of a kernel of locb.

    Python prints warnings to standard error unless the program configures logging. Code that is loaded from the cache
    is not compiled. The environment variable ``LOCB_QUIET=1`` disables the notice.
    """

    def __init__(self) -> None:
        self._is_done = os.environ.get("LOCB_QUIET", "") not in ("", "0")
        self._timer: threading.Timer | None = None
        self._compiling: Any = None  # the kernel that started the timer; Numba also compiles the functions it calls

    def on_start(self, event: Any) -> None:
        """Start the delay until the notice."""
        kernel = event.data["dispatcher"]
        cache_path = kernel.stats.cache_path
        is_kernel = kernel.py_func.__module__.startswith("locb.") and cache_path is not None
        if self._is_done or self._timer is not None or not is_kernel:
            return
        self._compiling = kernel
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
        self._timer = threading.Timer(DELAY_SECONDS, self._show, [name, cache_path])
        self._timer.daemon = True
        self._timer.start()

    def on_end(self, event: Any) -> None:
        """Cancel the notice. Numba calls this method also after an error."""
        if self._timer is not None and event.data["dispatcher"] is self._compiling:
            self._timer.cancel()
            self._timer = self._compiling = None

    def _show(self, name: str, cache_path: str) -> None:
        self._is_done = True
        _log.warning(
            "Compiling %s, which can take a minute. The compiled code is cached in %s until locb, Numba or Python "
            "is upgraded. Set LOCB_QUIET=1 to hide this message.",
            name,
            cache_path,
        )
