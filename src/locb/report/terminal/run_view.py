"""A run from its folder: how far it is while it goes on, what was found when it is over."""

from __future__ import annotations

import csv
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
from locb.evaluation.run_folder import RUNS_FOLDER, SETTINGS_FILE, RunPlan
from locb.report.findings_folder import claims_shown, verdicts_counted
from locb.report.run_record import RECORD, Lines, RunRecord, read_run
from locb.report.tables.comparison_table import HEADINGS, comparison_rows, comparison_table
from locb.report.tables.result_table import from_csv
from locb.report.terminal.formatting import DASH, lasting, many, moment, number, percent
from locb.report.terminal.layout import bar, facts, table
from locb.report.terminal.plot import Line, plot

KINDS = {
    "reproduce": "the paper's evaluation, reproduced",
    "verify": "the paper's theorems, checked",
    "worlds": "policies in many worlds",
}
STYLES = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")
TABLE_WIDTH = 78  # columns that the table of a comparison may take
TWO_CHARTS = 120  # columns from which charts stand side by side
SQUEEZED = 2.0  # a policy with so many times the regret of the next would leave no room for the others


def run_view(folder: Path, width: int, now: float, *, plain: bool = False) -> tuple[RenderableType, bool]:
    """What there is to see, and whether that is all there will be.

    Raises
    ------
    ValueError
        If the folder is not there, or holds no run.
    """
    if not folder.exists():
        raise ValueError(f"there is no folder {folder}; a service is watched by its address, http://…")
    if (folder / RECORD).is_file():
        return comparison_view(read_run(folder), folder, width, plain=plain), True
    if (folder / SETTINGS_FILE).is_file():
        progress = read_progress(folder)
        return progress_view(progress, now, plain=plain), progress.over
    raise ValueError(
        f"{folder} holds no run: neither the {RECORD} that locb compare writes in the end, nor the {SETTINGS_FILE} of "
        "locb reproduce, locb verify or locb compare --worlds"
    )


def comparison_view(record: RunRecord, folder: Path, width: int, *, plain: bool) -> RenderableType:
    """The table of a comparison, its verdict, and what happened over rounds."""
    comparison = record.comparison
    told = " ".join([comparison.verdict(), *comparison.notes])
    fits = width >= TABLE_WIDTH and not plain
    ranking = comparison_table(comparison) if fits else comparison_told(comparison)
    parts: list[RenderableType] = [Text(str(folder), style="bold"), "", ranking, Text(told)]
    if plain or not record.lines:
        return Group(*parts)
    order = [entry.policy for entry in comparison.best_per_policy()]
    styles = {policy: STYLES[place % len(STYLES)] for place, policy in enumerate(order)}
    side_by_side = width >= TWO_CHARTS
    charts = [curve_chart(lines, (width - 2) // 2 if side_by_side else width, styles) for lines in record.lines]
    if not side_by_side:
        return Group(*parts, *(piece for chart in charts for piece in ("", chart)))
    grid = Table.grid(padding=(1, 2, 0, 0))
    for first in range(0, len(charts), 2):
        grid.add_row(*charts[first : first + 2])
    return Group(*parts, "", grid)


def comparison_told(comparison: Comparison) -> RenderableType:
    """The table in words, where there is no room for it."""
    return Group(
        *(
            Text.assemble((row[0], "bold"), ": ", ", ".join(f"{name} {cell}" for name, cell in pairs if cell != DASH))
            for row in comparison_rows(comparison)
            for pairs in [list(zip(HEADINGS, row, strict=True))[1:]]
        )
    )


def curve_chart(lines: Lines, width: int, styles: Mapping[str, str], height: int = 10) -> Text:
    """The curves of all policies; of regret one that would squeeze all others is left out, and named."""
    means = dict(sorted(lines.means.items(), key=lambda pair: -pair[1][-1]))
    left_out = ""
    if lines.curve.name == "regret" and len(means) > 2:
        worst, second = list(means)[:2]
        if means[worst][-1] > SQUEEZED * means[second][-1]:
            left_out = f" (without {worst}, so that the others can be told apart)"
            del means[worst]
    drawn = []
    for policy, mean in means.items():
        known = np.isfinite(mean)
        if known.any():
            xs, ys = lines.rounds[known].tolist(), mean[known].tolist()
            drawn.append(Line(xs, ys, name=policy, style=styles.get(policy, "")))
    told = Text.assemble((lines.curve.title, "bold"), left_out, "\n")
    if not drawn:
        return told.append("none")
    form = ",.0f" if lines.curve.name in ("regret", "clusters") else ".2f"
    chart = plot(drawn, width, height, y_told=lambda y: number(y, form), x_told=lambda x: f"{x:,.0f}")
    return told.append_text(chart)


@dataclass(frozen=True)
class RunProgress:
    """How far the folder of a long run is."""

    folder: Path
    settings: Mapping[str, Any]
    plan: RunPlan | None
    finished: dict[str, float]  # when each run was finished, by its file name
    written: float | None  # when the page with the verdicts was written

    @property
    def done(self) -> int:
        """Runs that are finished, of those that were planned."""
        return len(self.finished) if self.plan is None else sum(name in self.finished for name in self.plan.costs)

    @property
    def over(self) -> bool:
        """Whether all is played and told."""
        if self.plan is None:
            return self.written is not None
        played = self.done == len(self.plan.costs)
        return played and self.written is not None and (self.written >= self.plan.started or not self.plan.is_running)

    def work(self, since: float = 0.0) -> float:
        """Share of the work that was done since then."""
        if self.plan is None:
            return 0.0
        total = sum(self.plan.costs.values()) or 1.0
        return sum(cost for name, cost in self.plan.costs.items() if self.finished.get(name, -1.0) >= since) / total

    def left(self, now: float) -> float | None:
        """Seconds until all is played, at the pace so far; None while there is no pace."""
        if self.plan is None:
            return None
        played, elapsed = self.work(self.plan.started), now - self.plan.started
        return None if played <= 0.0 else elapsed * (1.0 - self.work()) / played


def read_progress(folder: Path) -> RunProgress:
    """How far it is, from its files."""
    try:
        settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / SETTINGS_FILE} cannot be read ({error})") from error
    if not isinstance(settings, dict) or settings.get("kind") not in KINDS:
        raise ValueError(f"{folder / SETTINGS_FILE} is of no run that locb knows")
    finished = {}
    for path in (folder / RUNS_FOLDER).glob("[!.]*.json"):
        finished[path.name] = path.stat().st_mtime
    index = folder / "index.html"
    written = index.stat().st_mtime if index.is_file() else None
    return RunProgress(folder, settings, RunPlan.read(folder), finished, written)


def progress_view(progress: RunProgress, now: float, *, plain: bool = False) -> RenderableType:
    """What is done, what is left; the verdicts when all is told."""
    rows: list[tuple[str, str | Text]] = [
        ("Run", Text(f"{KINDS[progress.settings['kind']]} ({progress.folder})")),
        ("Done", _done(progress, plain=plain)),
    ]
    state = _state(progress, now)
    rows.append(("State", state))
    if progress.finished and not progress.over:
        name, at = max(progress.finished.items(), key=lambda pair: pair[1])
        rows.append(("Last", Text(f"{name.removesuffix('.json')}, {lasting(now - at)} ago")))
    parts: list[RenderableType] = [facts(rows)]
    if progress.over:
        parts += ["", *verdicts_view(progress.folder)]
    return Group(*parts)


def _done(progress: RunProgress, *, plain: bool) -> str:
    if progress.plan is None:
        return many(progress.done, "run", "runs")
    total = len(progress.plan.costs)
    share = progress.work()
    told = f"{progress.done:,} of {many(total, 'run', 'runs')}, {percent(share)} of the work"
    return told if plain else f"{told} {bar(share, 20)}"


def _state(progress: RunProgress, now: float) -> Text:
    plan = progress.plan
    if progress.over:
        return Text(f"finished at {moment(progress.written or now, now)}", style="green")
    if plan is None:
        return Text("not finished; how many runs there will be was not written down", style="yellow")
    if plan.is_running is False:
        return Text("stopped; the same command goes on from here", style="yellow")
    since = f"going on for {lasting(now - plan.started)}"
    if progress.done == len(plan.costs):
        return Text(f"{since}; all is played, tables and figures are being written")
    left = progress.left(now)
    return Text(f"{since}; " + ("how long it will take shows after the first run" if left is None else
                                f"about {lasting(left)} left"))  # fmt: skip


def verdicts_view(folder: Path) -> list[RenderableType]:
    """The matrix of worlds if there is one, and every claim with its verdict, from the tables that were written."""
    parts: list[RenderableType] = []
    for name, title in (("matrix", "Regret relative to the best baseline of each world"), ("policies", "Policies")):
        path = folder / "tables" / f"{name}.csv"
        if path.is_file():
            parts += [_cells(title, path), ""]
    path = folder / "tables" / "claims.csv"
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            claims = list(csv.DictReader(file))
        if claims:
            parts += [claims_shown(claims), Text(verdicts_counted(claim["verdict"] for claim in claims))]
    return parts


def _cells(title: str, path: Path) -> Table:
    headings, rows = from_csv(path.read_text(encoding="utf-8"))
    made = table(title, headings, headings)
    for row in rows:
        made.add_row(*map(Text, row))
    return made
