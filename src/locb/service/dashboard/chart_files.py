"""Files that draw the charts of the dashboard page. A separate process builds them once, in the data folder."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

from locb.report.charts import vega_bundle
from locb.service.store.permissions import OTHER_USERS, make_private

_log = logging.getLogger("locb.service")


class ChartFiles:
    """Chart files of ``locb.report.charts.vega_bundle``, cached in a folder.

    Parameters
    ----------
    data_dir : Path
        Data folder. The files are cached in its subfolder ``page-HASH``, where HASH identifies their sources.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / f"page-{vega_bundle.cache_key()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why the files could not be built; None if there was no failure."""
        process = self._process
        if process is not None and self._failure is None and process.poll():
            lines = process.communicate()[1].decode(errors="replace").strip().splitlines()
            self._failure = lines[-1] if lines else f"the process exited with status {process.returncode}"
            _log.warning("the chart files could not be built, so the dashboard has no charts: %s", self._failure)
        return self._failure

    def prepare(self) -> None:
        """Copy the files from the cache of this machine, or start to build them, unless they already exist."""
        if self._process is not None or self._folder.exists():
            return
        for outdated in self._data_dir.glob("page-*"):
            shutil.rmtree(outdated, ignore_errors=True)
        if vega_bundle.copy(self._folder):
            make_private(self._folder)
            return
        self._process = subprocess.Popen(  # noqa: S603 - Python itself, with a module of this package
            [sys.executable, "-m", "locb.report.charts.vega_bundle", str(self._folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            umask=OTHER_USERS,  # only this user can read the files
        )

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None while the files are being built or if they could not be built.

        The first call starts to build the files if they do not exist.
        """
        self.prepare()
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def stop(self) -> None:
        """Stop the process that builds the files, if it is running."""
        if self._process is not None and self._failure is None:
            self._process.kill()
            self._process.communicate()
