"""What a browser needs to draw the charts of a page, in a folder: Vega as one script, and the charts themselves.

``python -m locb.report.charts.vega_bundle FOLDER`` creates it. This takes one to two seconds and much memory, so a
service runs it in a separate process and keeps the result. A copy stays in the cache directory, for
other services and for reports.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import zlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from locb.common.cache_dir import cache_dir

SCRIPT, CHARTS = "vega.js.gz", "charts.json"


def key() -> str:
    """Changes when what is made would be another."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    made_of = [version("altair"), version("vl-convert-python"), *(path.read_text("utf-8") for path in sources)]
    return f"{zlib.crc32(chr(0).join(made_of).encode()):08x}"


def page_charts() -> dict[str, Any]:
    """The charts of the service's page by name, with empty data sets, and the themes that they may be shown in."""
    from locb.report import charts

    made = {
        "reward": charts.reward_chart(),
        "traffic": charts.traffic_chart(),
        "map": charts.live_map_chart(),
        "overlap": charts.overlap_chart(),
        "parts": charts.parts_chart(),
        "estimate": charts.estimate_chart(),
    }
    return {"themes": charts.THEMES, "charts": {name: chart.to_dict() for name, chart in made.items()}}


def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which takes a second to make where none was kept."""
    try:
        kept = _kept()
        _write(kept)
        return gzip.decompress((kept / SCRIPT).read_bytes()).decode()
    except (OSError, RuntimeError):  # there is no home, or it is not to be written to
        return _script()


def make(folder: Path) -> None:
    """Write the folder, as a whole or not at all."""
    with suppress(OSError, RuntimeError):
        _write(_kept())
    if not copy(folder):
        _write(folder)


def copy(folder: Path) -> bool:
    """Write the folder from what is kept; whether anything is."""
    try:
        kept = {name: (_kept() / name).read_bytes() for name in (SCRIPT, CHARTS)}
    except (OSError, RuntimeError):
        return False
    _write(folder, kept)
    return True


def _kept() -> Path:
    return cache_dir() / f"page-{key()}"


def _script() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _write(folder: Path, files: dict[str, bytes] | None = None) -> None:
    """Put files into a new folder, made anew if they are not given; not if it is there."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    unfinished.mkdir(parents=True)
    try:
        if files is None:
            files = {SCRIPT: gzip.compress(_script().encode(), 9, mtime=0)}
            files[CHARTS] = json.dumps(page_charts()).encode()
        for name, content in files.items():
            (unfinished / name).write_bytes(content)
        if not folder.exists():
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # requests come first
    make(Path(sys.argv[1]))
