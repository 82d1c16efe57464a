"""Charts for image files, self-contained report pages and the dashboard of the service."""

from locb.report.charts.bar_charts import estimate_chart, overlap_chart, score_parts_chart
from locb.report.charts.chart_theme import PALETTE, THEMES, style
from locb.report.charts.dashboard_charts import decisions_chart, live_map_chart, reward_chart
from locb.report.charts.line_charts import curve_chart, line_chart, regret_chart, regret_rows
from locb.report.charts.report_maps import assign_clusters, groups_chart, map_chart, project, users_chart

__all__ = [
    "PALETTE",
    "THEMES",
    "assign_clusters",
    "curve_chart",
    "decisions_chart",
    "estimate_chart",
    "groups_chart",
    "line_chart",
    "live_map_chart",
    "map_chart",
    "overlap_chart",
    "project",
    "regret_chart",
    "regret_rows",
    "reward_chart",
    "score_parts_chart",
    "style",
    "users_chart",
]
