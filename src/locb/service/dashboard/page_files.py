"""Files of the dashboard page. They need no token, because they contain no data: the page reads data from the API.

A separate process builds the files that draw the charts, once, in the data folder.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

from starlette.responses import Response

import locb.report
from locb.common.spans import SPANS
from locb.report.charts import vega_bundle
from locb.service import errors
from locb.service.responses import SECURITY_HEADERS
from locb.service.store.permissions import OTHER_USERS, make_private

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"
PAGE_FOLDER = Path(__file__).parent / "page"
SHARED_FOLDER = Path(locb.report.__file__).parent / "assets"
# Scripts that are generated from tables of the service, so that the page has the same values.
GENERATED_FILES = {
    "spans.js": b"export const SPANS = %s;\n"
    % json.dumps({name: span._asdict() for name, span in SPANS.items()}, indent=2).encode()
}
SHARED_FILES = ("theme.css", "ui.js", "ui_chart.js", "ui_table.js")
# The page uses only its own scripts and styles. It evaluates no strings as code and contacts no other host.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Browsers cache the files, but check before each use whether the service has a newer version.
HEADERS = SECURITY_HEADERS | {"content-security-policy": CONTENT_SECURITY_POLICY, "cache-control": "no-cache"}
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
            _log.warning(
                "the dashboard has no charts, because the chart files could not be built (%s); correct the cause and "
                "restart the service",
                self._failure,
            )
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


class PageFiles:
    """Responses with the files of the page, and with the files that draw its charts.

    Parameters
    ----------
    chart_files : ChartFiles
        Files that draw the charts.
    """

    def __init__(self, chart_files: ChartFiles) -> None:
        self._chart_files = chart_files
        paths = (*PAGE_FOLDER.iterdir(), *(SHARED_FOLDER / name for name in SHARED_FILES))
        self._files = {path.name: _file(path.name, path.read_bytes()) for path in paths if path.suffix in CONTENT_TYPES}
        self._files |= {name: _file(name, content) for name, content in GENERATED_FILES.items()}

    def get(self, name: str, etag: str = "") -> Response:
        """Return a response with a file: 200, or 304 without a body if ``etag`` is the ETag of the current version.

        While the chart files are being built, the response has status 202 and the body ``null``.

        Raises
        ------
        ProblemError
            404 for an unknown file, 500 if the chart files could not be built.
        """
        content, headers = self._files.get(name) or self._chart_file(name) or (None, {})
        if content is None:  # 202 and not a problem, because browsers report problems as errors
            return Response(b"null", 202, HEADERS | {"content-type": CONTENT_TYPES[".json"], "retry-after": "1"})
        if etag == headers["etag"]:
            return Response(status_code=304, headers=HEADERS | {"etag": etag})
        return Response(content, headers=headers)

    def _chart_file(self, name: str) -> tuple[bytes, dict[str, str]] | None:
        """Return a file that draws the charts, or None while it is being built."""
        source = {"vega.js": vega_bundle.SCRIPT, "charts.json": vega_bundle.CHARTS}.get(name)
        if source is None:
            raise errors.not_found(f"the dashboard has no file {name[:100]!r}; open / for the dashboard")
        if self._chart_files.failure is not None:
            failure = self._chart_files.failure
            raise errors.internal(
                f"the chart files could not be built ({failure}); correct the cause and restart the service"
            )
        content = self._chart_files.read(source)
        if content is None:
            return None
        return self._files.setdefault(name, _file(name, content, compressed=source.endswith(".gz")))


def _file(name: str, content: bytes, compressed: bool = False) -> tuple[bytes, dict[str, str]]:
    """Return the content of a file, and the headers of its response."""
    headers = HEADERS | {"content-type": CONTENT_TYPES[Path(name).suffix], "etag": f'"{zlib.crc32(content):08x}"'}
    return content, headers | ({"content-encoding": "gzip"} if compressed else {})
