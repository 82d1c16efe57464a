"""Charts, each made once: as a picture in a file, in a self-contained page, or as JSON for one that is served."""

from locb.report.charts.bar_charts import estimate_chart, overlap_chart, parts_chart
from locb.report.charts.chart_theme import COLOURS, THEMES, style
from locb.report.charts.dashboard_charts import live_map_chart, reward_chart, traffic_chart
from locb.report.charts.line_charts import curve_chart, regret_chart, regret_rows, series_chart
from locb.report.charts.user_maps import colour_groups, groups_chart, map_chart, plane, users_chart

__all__ = [
    "COLOURS",
    "THEMES",
    "colour_groups",
    "curve_chart",
    "estimate_chart",
    "groups_chart",
    "live_map_chart",
    "map_chart",
    "overlap_chart",
    "parts_chart",
    "plane",
    "regret_chart",
    "regret_rows",
    "reward_chart",
    "series_chart",
    "style",
    "traffic_chart",
    "users_chart",
]
