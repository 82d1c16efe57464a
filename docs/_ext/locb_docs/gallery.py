"""Configuration of sphinx-gallery: the order of the examples, and a scraper for charts and screenshots.

A scraper is an object that sphinx-gallery calls after each code block of an example to collect images.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import altair as alt
from sphinx_gallery.scrapers import figure_rst

ORDER = (
    "first_comparison",
    "own_log",
    "evaluate_log",
    "groups_in_a_log",
    "own_policy",
    "own_environment",
    "parameter_grid",
    "recommend_by_name",
    "inspect_groups",
    "coba_side_by_side",
    "choose_gamma_and_policy",
    "certificates",
    "first_service",
    "read_the_dashboard",
)


def example_order(filename: str) -> int:
    """Return the position of an example file in the gallery. Examples that are not in ``ORDER`` come last."""
    name = Path(filename).stem
    return ORDER.index(name) if name in ORDER else len(ORDER)


class ChartScraper:
    """Scraper that shows the variables ``chart`` (Altair) and ``screenshot`` (path of a PNG file) of an example.

    A value is shown once, after the code block that assigns it.
    """

    def __init__(self) -> None:
        self._shown: list[Any] = []

    def __repr__(self) -> str:
        return "ChartScraper"

    def __call__(self, _block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
        """Save the new charts and screenshots of a code block, and return reStructuredText that shows them."""
        figures, titles = [], []
        for name in ("chart", "screenshot"):
            value = block_vars["example_globals"].get(name)
            if value is None or any(value is shown for shown in self._shown):
                continue
            self._shown.append(value)
            path = next(block_vars["image_path_iterator"])
            if isinstance(value, alt.TopLevelMixin):
                value.save(path, format="png", scale_factor=2)
            else:
                shutil.copy(value, path)
            figures.append(path)
            title = getattr(value, "title", None)
            titles.append(title if isinstance(title, str) else name.capitalize())
        return figure_rst(figures, gallery_conf["src_dir"], fig_titles=", ".join(titles)) if figures else ""


scrape_charts = ChartScraper()
