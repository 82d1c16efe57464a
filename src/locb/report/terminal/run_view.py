"""Terminal view of a run folder: progress during the run, and results after the run is complete."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from locb.evaluation.results import Comparison
from locb.evaluation.run_folder import RUNS_FOLDER, SETTINGS_FILE, UNFINISHED_FOLDER, RunPlan
from locb.report.findings_folder import count_verdicts, make_claims_table
from locb.report.run_record import RECORD_FILE, CurveMeans, RunRecord, read_run
from locb.report.tables.comparison_table import comparison_headings, comparison_rows, make_comparison_table
from locb.report.tables.result_table import format_csv, read_rows
from locb.report.terminal.formatting import (
    DASH,
    format_count,
    format_duration,
    format_number,
    format_percent,
    format_time,
)
from locb.report.terminal.layout import make_fact_list, make_table, render_bar
from locb.report.terminal.plot import Line, plot

KINDS = {
    "reproduce": "reproduction of the paper's evaluation",
    "verify": "check of the paper's theorems",
    "scenarios": "comparison of policies on many scenarios",
    "compare": "comparison of policies",
}
STYLES = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")
MIN_COMPARISON_WIDTH = 78  # columns of the comparison table
TWO_CHARTS_WIDTH = 120  # minimum width of a terminal that shows charts side by side
OUTLIER_FACTOR = 2.0  # a regret chart omits a policy whose regret exceeds this multiple of the second highest regret


def render_run(folder: Path, width: int, now: float, *, plain: bool = False) -> tuple[RenderableType, bool]:
    """Render the content of a run folder, and return whether the run is complete.

    Parameters
    ----------
    folder : Path
        Folder of a comparison, reproduction, verification or scenario matrix.
    width : int
        Columns of the terminal.
    now : float
        Current time in seconds since 1970.
    plain : bool, default False
        Whether to omit charts and bars.

    Raises
    ------
    ValueError
        If the folder does not exist, has no run, or has an invalid settings.json or run.json.
    """
    if not folder.exists():
        raise ValueError(f"folder {folder} does not exist; to watch a service, pass its address, http://…")
    if (folder / UNFINISHED_FOLDER / SETTINGS_FILE).is_file():
        # Deleted when the comparison is complete, which can happen before the files are read.
        with contextlib.suppress(FileNotFoundError):
            return render_progress(read_progress(folder / UNFINISHED_FOLDER), now, plain=plain), False
    if (folder / RECORD_FILE).is_file():
        return render_comparison(read_run(folder), folder, width, plain=plain), True
    if (folder / SETTINGS_FILE).is_file():
        progress = read_progress(folder)
        return render_progress(progress, now, plain=plain), progress.complete
    raise ValueError(
        f"{folder} has no run: expected {RECORD_FILE} or {UNFINISHED_FOLDER} (written by locb compare) or "
        f"{SETTINGS_FILE} (written by locb reproduce, locb verify and locb compare --scenarios)"
    )


def render_comparison(record: RunRecord, folder: Path, width: int, *, plain: bool) -> RenderableType:
    """Render the result table of a comparison, its verdict and its curves."""
    comparison = record.comparison
    summary = " ".join([comparison.verdict(), *comparison.notes])
    fits = width >= MIN_COMPARISON_WIDTH and not plain
    ranking = make_comparison_table(comparison) if fits else render_comparison_list(comparison)
    parts: list[RenderableType] = [Text(str(folder), style="bold"), "", ranking, Text(summary)]
    if plain or not record.curves:
        return Group(*parts)
    order = [entry.policy for entry in comparison.best_per_policy()]
    styles = {policy: STYLES[index % len(STYLES)] for index, policy in enumerate(order)}
    side_by_side = width >= TWO_CHARTS_WIDTH
    charts = [
        render_curves(curve_means, (width - 2) // 2 if side_by_side else width, styles) for curve_means in record.curves
    ]
    if not side_by_side:
        return Group(*parts, *(part for chart in charts for part in ("", chart)))
    grid = Table.grid(padding=(1, 2, 0, 0))
    for first in range(0, len(charts), 2):
        grid.add_row(*charts[first : first + 2])
    return Group(*parts, "", grid)


def render_comparison_list(comparison: Comparison) -> RenderableType:
    """Render the results of a comparison as one line of text per policy and parameters, for narrow terminals."""
    return Group(
        *(
            Text.assemble((row[0], "bold"), ": ", ", ".join(f"{name} {cell}" for name, cell in cells if cell != DASH))
            for row in comparison_rows(comparison)
            for cells in [list(zip(comparison_headings(comparison), row, strict=True))[1:]]
        )
    )


def render_curves(curve_means: CurveMeans, width: int, styles: Mapping[str, str], height: int = 10) -> Text:
    """Render a chart of one quantity over rounds, such as regret, with one line per policy.

    A regret chart omits an outlier (see OUTLIER_FACTOR) and names it in the title.
    """
    means = dict(sorted(curve_means.means.items(), key=lambda pair: -pair[1][-1]))
    omitted = ""
    if curve_means.curve.name == "regret" and len(means) > 2:
        worst, second = list(means)[:2]
        if means[worst][-1] > OUTLIER_FACTOR * means[second][-1]:
            omitted = f" ({worst} is off the scale and omitted)"
            del means[worst]
    drawn = []
    for policy, mean in means.items():
        known = np.isfinite(mean)
        if known.any():
            xs, ys = curve_means.rounds[known].tolist(), mean[known].tolist()
            drawn.append(Line(xs, ys, name=policy, style=styles.get(policy, "")))
    title = Text.assemble((curve_means.curve.title, "bold"), omitted, "\n")
    if not drawn:
        return title.append("no data")
    spec = ",.0f" if curve_means.curve.name in ("regret", "clusters") else ".2f"
    chart = plot(drawn, width, height, format_y=lambda y: format_number(y, spec), format_x=lambda x: f"{x:,.0f}")
    return title.append_text(chart)


@dataclass(frozen=True)
class RunProgress:
    """Progress of an experiment of many runs, read from its folder. Times are in seconds since 1970."""

    folder: Path
    settings: Mapping[str, Any]
    plan: RunPlan | None  # None if the folder has no valid plan
    finished: dict[str, float]  # file name of each finished run → time at which it finished
    written: float | None  # time at which the report index.html was written; None if it does not exist

    @property
    def done(self) -> int:
        """Number of planned runs that are finished; without a plan, the number of finished runs."""
        return len(self.finished) if self.plan is None else sum(name in self.finished for name in self.plan.costs)

    @property
    def complete(self) -> bool:
        """Whether all planned runs are finished and the report index.html is written.

        While the command runs, index.html must be newer than the start of the command. Without a plan, it must exist.
        """
        if self.plan is None:
            return self.written is not None
        finished = self.done == len(self.plan.costs)
        return finished and self.written is not None and (self.written >= self.plan.started or not self.plan.is_running)

    def work_share(self, since: float = 0.0) -> float:
        """Return the share of the planned work that was finished at or after the time ``since``; 0 without a plan."""
        if self.plan is None:
            return 0.0
        total = sum(self.plan.costs.values()) or 1.0
        return sum(cost for name, cost in self.plan.costs.items() if self.finished.get(name, -1.0) >= since) / total

    def remaining_seconds(self, now: float) -> float | None:
        """Estimate the remaining time in seconds from the work since the start of the command.

        The estimate is None before the first run of the command finishes, and without a plan.
        """
        if self.plan is None:
            return None
        done, elapsed = self.work_share(self.plan.started), now - self.plan.started
        return None if done <= 0.0 else elapsed * (1.0 - self.work_share()) / done


def read_progress(folder: Path) -> RunProgress:
    """Read the progress of an experiment from its folder. Raise a ValueError if settings.json is invalid."""
    try:
        settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / SETTINGS_FILE} is not valid JSON ({error}); run the command again") from error
    if not isinstance(settings, dict) or settings.get("kind") not in KINDS:
        kind = settings.get("kind") if isinstance(settings, dict) else settings
        raise ValueError(
            f"{folder / SETTINGS_FILE} does not describe a run: kind must be one of {', '.join(KINDS)}, not {kind!r}; "
            "choose the folder of a run"
        )
    finished = {}
    for path in (folder / RUNS_FOLDER).glob("[!.]*.json"):
        finished[path.name] = path.stat().st_mtime
    index = folder / "index.html"
    written = index.stat().st_mtime if index.is_file() else None
    return RunProgress(folder, settings, RunPlan.read(folder), finished, written)


def render_progress(progress: RunProgress, now: float, *, plain: bool = False) -> RenderableType:
    """Render the progress of an experiment, and its verdicts if it is complete."""
    rows: list[tuple[str, str | Text]] = [
        ("Run", Text(f"{KINDS[progress.settings['kind']]} ({progress.folder})")),
        ("Done", _format_done(progress, plain=plain)),
        ("State", _render_state(progress, now)),
    ]
    if progress.finished and not progress.complete:
        name, at = max(progress.finished.items(), key=lambda pair: pair[1])
        rows.append(("Last", Text(f"{name.removesuffix('.json')}, {format_duration(now - at)} ago")))
    parts: list[RenderableType] = [make_fact_list(rows)]
    if progress.complete:
        parts += ["", *render_verdicts(progress.folder)]
    return Group(*parts)


def _format_done(progress: RunProgress, *, plain: bool) -> str:
    if progress.plan is None:
        return format_count(progress.done, "run", "runs")
    total = len(progress.plan.costs)
    share = progress.work_share()
    text = f"{progress.done:,} of {format_count(total, 'run', 'runs')}, {format_percent(share)} of the work"
    return text if plain else f"{text} {render_bar(share, 20)}"


def _render_state(progress: RunProgress, now: float) -> Text:
    plan = progress.plan
    if progress.complete:
        return Text(f"finished at {format_time(progress.written or now, now)}", style="green")
    if plan is None:
        return Text("not finished; the total number of runs is unknown", style="yellow")
    if plan.is_running is False:
        folder = f" with --output {progress.folder.parent}" if progress.settings["kind"] == "compare" else ""
        return Text(f"stopped; run the same command again{folder} to continue", style="yellow")
    elapsed = f"running for {format_duration(now - plan.started)}"
    if progress.done == len(plan.costs):
        return Text(f"{elapsed}; all runs are finished, writing tables and figures")
    remaining = progress.remaining_seconds(now)
    estimate = (
        "no estimate before the first run finishes" if remaining is None else f"about {format_duration(remaining)} left"
    )
    return Text(f"{elapsed}; {estimate}")


def render_verdicts(folder: Path) -> list[RenderableType]:
    """Render the scenario matrix, if there is one, and every claim with its verdict, from the CSV files of a folder."""
    parts: list[RenderableType] = []
    for name, title in (("matrix", "Regret relative to the best baseline of each scenario"), ("policies", "Policies")):
        path = folder / "tables" / f"{name}.csv"
        if path.is_file():
            parts += [_render_csv(title, path), ""]
    path = folder / "tables" / "claims.csv"
    if path.is_file():
        claims = read_rows(path.read_text(encoding="utf-8"))
        if claims:
            parts += [make_claims_table(claims), Text(count_verdicts(claims))]
    return parts


def _render_csv(title: str, path: Path) -> Table:
    headings, rows = format_csv(path.read_text(encoding="utf-8"))
    table = make_table(title, headings, headings)
    for row in rows:
        table.add_row(*map(Text, row))
    return table
