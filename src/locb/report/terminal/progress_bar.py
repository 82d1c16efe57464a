"""Progress bar of a long call of the library, in a terminal or in a notebook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import Any

DELAY_SECONDS = 1.0  # a shorter call has no progress bar
Reporter = Callable[[float, float], None]


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """Context manager that shows the progress of a call, if it takes longer than one second.

    Parameters
    ----------
    progress : bool or callable, optional
        True shows a bar, False does not. None shows a bar in a notebook, or if standard error is a terminal. A function
        is called with (finished work, total work) in place of a bar.
    """

    def __init__(self, progress: bool | Reporter | None = None) -> None:
        self._reporter = progress if callable(progress) else None
        self._is_shown = progress is True or (progress is None and is_interactive())
        self._stage, self._done, self._total = "", 0.0, 0.0
        self._display: _TerminalDisplay | _NotebookDisplay | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressBar:
        if self._is_shown:
            self._timer = threading.Timer(DELAY_SECONDS, self._open)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_shown = False
            if self._display is not None:
                self._display.close()

    def stage(self, name: str, *, reported: bool = True) -> Reporter:
        """Start a stage of the call, such as "Compiling". Return a function of (finished work, total work).

        A function that was given as ``progress`` is called only for stages that are ``reported``.
        """

        def update(done: float, total: float) -> None:
            if reported and self._reporter is not None:
                self._reporter(done, total)
            with self._lock:
                self._stage, self._done, self._total = name, done, total
                if self._display is not None:
                    self._display.update(name, done, total)

        with self._lock:
            self._stage, self._done, self._total = name, 0.0, 0.0
            if self._display is not None:
                self._display.update(name, 0.0, 0.0)
        return update

    def _open(self) -> None:
        with self._lock:
            if self._is_shown:
                self._display = _NotebookDisplay() if is_notebook() else _TerminalDisplay()
                self._display.update(self._stage, self._done, self._total)


class _TerminalDisplay:
    """Line with a bar on standard error, which is removed at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def update(self, stage: str, done: float, total: float) -> None:
        self._bar.update(self._task, description=stage, completed=done, total=total or None)

    def close(self) -> None:
        self._bar.stop()


class _NotebookDisplay:
    """Progress element in the output of a notebook cell, which is removed at the end."""

    def __init__(self) -> None:
        display: Any = import_module("IPython.display").display
        self._handle: Any = display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, stage: str, done: float, total: float) -> None:
        percent = f"{100 * done / total:.0f}%" if total else ""
        value = f' value="{done:g}" max="{total:g}"' if total else ""
        content = f'{stage} <progress{value} aria-label="{stage}"></progress> {percent}'
        self._handle.update({"text/html": content, "text/plain": f"{stage} {percent}"}, raw=True)

    def close(self) -> None:
        self._handle.update({"text/html": "", "text/plain": ""}, raw=True)


def is_notebook() -> bool:
    """Return whether the program runs in a kernel of Jupyter."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def is_interactive() -> bool:
    """Return whether a progress bar is visible: in a notebook, or if standard error is a terminal."""
    return is_notebook() or (sys.stderr is not None and sys.stderr.isatty())
