"""The page: its files, which hold no data and need no token. What they show they ask the API for."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

import locb.report
from locb.report.charts import vega_bundle as bundle
from locb.service.api.guard import SAFE_HEADERS, RequestGuard, told
from locb.service.dashboard.chart_files import Drawing
from locb.service.errors import ProblemError

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
FOLDER = Path(__file__).parent / "page"
SHARED = tuple(Path(locb.report.__file__).parent / "assets" / name for name in ("look.css", "look.js"))
FIRST = "index.html"
# Scripts and styles are files of our own, nothing is evaluated, nothing is asked of another host.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = SAFE_HEADERS | {"content-security-policy": POLICY, "cache-control": "no-cache"}  # kept, but asked for again


class Pages:
    """Answers with files.

    Parameters
    ----------
    gate : Gate
        What every request passes.
    drawing : Drawing
        What charts are drawn with.
    """

    def __init__(self, guard: RequestGuard, drawing: Drawing) -> None:
        self._gate = guard
        self._drawing = drawing
        self._files = {
            path.name: _file(path.name, path.read_bytes())
            for path in (*FOLDER.iterdir(), *SHARED)
            if path.suffix in KINDS
        }

    def routes(self) -> dict[str, Callable[[Request], Awaitable[Response]]]:
        """What to answer with at which path."""
        return {"/": self._answer, "/page/{file}": self._answer}

    async def _answer(self, request: Request) -> Response:
        headers = dict(request.scope["headers"])
        try:
            self._gate.authorize(headers, None)
            name = request.path_params.get("file", FIRST)
            file = self._files.get(name) or self._drawn(name)
        except ProblemError as error:
            return told(error)
        tag = file.headers.get("etag", "")
        if tag and headers.get(b"if-none-match") == tag.encode():
            return Response(status_code=304, headers=HEADERS | {"etag": tag})
        return file

    def _drawn(self, name: str) -> Response:
        """A file that is made at the first start."""
        kept = {"vega.js": bundle.SCRIPT, "charts.json": bundle.CHARTS}.get(name)
        if kept is None:
            raise ProblemError(404, "not-found", f"the page has no file {name[:100]!r}")
        if self._drawing.failure is not None:
            raise ProblemError(500, "internal", f"what draws charts could not be made: {self._drawing.failure}")
        content = self._drawing.read(kept)
        if content is None:  # not a problem: a browser would tell it as one
            return Response(b"null", 202, HEADERS | {"content-type": KINDS[".json"], "retry-after": "1"})
        return self._files.setdefault(name, _file(name, content, zipped=kept.endswith(".gz")))


def _file(name: str, content: bytes, zipped: bool = False) -> Response:
    headers = HEADERS | {"content-type": KINDS[Path(name).suffix], "etag": f'"{zlib.crc32(content):08x}"'}
    return Response(content, headers=headers | ({"content-encoding": "gzip"} if zipped else {}))
