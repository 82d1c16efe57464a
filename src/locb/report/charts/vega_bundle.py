"""Files that a browser needs to draw charts: the Vega script and the chart specifications of the dashboard.

``python -m locb.report.charts.vega_bundle FOLDER`` creates these files in FOLDER. The command takes one to two seconds
and much memory, so a service runs it in a separate process. The cache folder (``locb.common.cache_dir``) keeps a copy
for other services and for reports.
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


def cache_key() -> str:
    """Return a hash of the package versions and chart sources from which the Vega bundle is generated."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    inputs = [version("altair"), version("vl-convert-python"), *(path.read_text("utf-8") for path in sources)]
    return f"{zlib.crc32(chr(0).join(inputs).encode()):08x}"


def page_charts() -> dict[str, Any]:
    """Return the themes of charts, and the specifications of the dashboard charts by name, with empty datasets."""
    from locb.report.charts import dashboard_charts  # import Altair, which a service does not need
    from locb.report.charts.chart_theme import THEMES

    specs = {
        "reward": dashboard_charts.reward_chart(),
        "decisions": dashboard_charts.decisions_chart(),
        "map": dashboard_charts.live_map_chart(),
        "overlap": dashboard_charts.overlap_chart(),
        "parts": dashboard_charts.score_parts_chart(),
        "estimate": dashboard_charts.estimate_chart(),
    }
    return {"themes": THEMES, "charts": {name: chart.to_dict() for name, chart in specs.items()}}


def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script.

    The script comes from the cache folder. If the cache does not have it, it is created in one to two seconds.
    """
    try:
        cached = _cached_folder()
        _write(cached)
        return gzip.decompress((cached / SCRIPT).read_bytes()).decode()
    except (OSError, RuntimeError):  # there is no home directory, or it is not writable
        return _create_script()


def make(folder: Path) -> None:
    """Write the Vega script and the chart specifications to a new folder, and to the cache if it is writable."""
    with suppress(OSError, RuntimeError):
        _write(_cached_folder())
    if not copy(folder):
        _write(folder)


def copy(folder: Path) -> bool:
    """Copy the files from the cache to a new folder. Return whether the cache has the files."""
    try:
        cached = {name: (_cached_folder() / name).read_bytes() for name in (SCRIPT, CHARTS)}
    except (OSError, RuntimeError):
        return False
    _write(folder, cached)
    return True


def _cached_folder() -> Path:
    return cache_dir() / f"page-{cache_key()}"


def _create_script() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _write(folder: Path, files: dict[str, bytes] | None = None) -> None:
    """Write files (name → content) to a new folder atomically. If the folder exists, do nothing.

    If ``files`` is None, the Vega script and the chart specifications are created and written.
    """
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    unfinished.mkdir(parents=True)
    try:
        if files is None:
            files = {SCRIPT: gzip.compress(_create_script().encode(), 9, mtime=0)}
            files[CHARTS] = json.dumps(page_charts()).encode()
        for name, content in files.items():
            (unfinished / name).write_bytes(content)
        if not folder.exists():
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(10)  # lower the priority of this process, so that it does not delay requests to the service
    make(Path(sys.argv[1]))
