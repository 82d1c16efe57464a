"""Charts, each made once: as a picture in a file, in a self-contained page, or as JSON for one that is served."""

from locb.report.charts.lines import curve_chart, regret_chart, regret_rows, series_chart
from locb.report.charts.look import COLOURS, THEMES, style
from locb.report.charts.users import colour_groups, groups_chart, map_chart, plane, users_chart

__all__ = [
    "COLOURS",
    "THEMES",
    "colour_groups",
    "curve_chart",
    "groups_chart",
    "map_chart",
    "plane",
    "regret_chart",
    "regret_rows",
    "series_chart",
    "style",
    "users_chart",
]
