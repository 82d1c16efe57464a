"""What the page draws its charts with: made once a machine by a process of its own, and kept in the data folder."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

from locb.report.charts import vega_bundle as bundle

_log = logging.getLogger("locb.service")


class Drawing:
    """The files of ``locb.report.charts.vega_bundle``, as soon as they are there.

    Parameters
    ----------
    data_dir : Path
        Where they are kept, in a folder whose name changes with what they are made of.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / f"page-{bundle.key()}"
        self._making: subprocess.Popen[bytes] | None = None
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why there will be none; None if there may be."""
        process = self._making
        if process is not None and self._failure is None and process.poll():
            told = process.communicate()[1].decode(errors="replace").strip().splitlines()
            self._failure = told[-1] if told else f"the process ended with {process.returncode}"
            _log.warning("the page will show no charts: %s", self._failure)
        return self._failure

    def prepare(self) -> None:
        """Have them made unless they are there, or under way."""
        if self._making is not None or self._folder.exists():
            return
        for old in self._data_dir.glob("page-*"):
            shutil.rmtree(old, ignore_errors=True)
        if bundle.copy(self._folder):
            return
        self._making = subprocess.Popen(  # noqa: S603 - Python itself, with a module of ours
            [sys.executable, "-m", "locb.report.charts.vega_bundle", str(self._folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def read(self, name: str) -> bytes | None:
        """A file; None while it is being made."""
        self.prepare()
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def stop(self) -> None:
        """End what is under way."""
        if self._making is not None and self._failure is None:
            self._making.kill()
            self._making.communicate()
