"""locb load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from locb.cli.common import console, leave, number

if TYPE_CHECKING:
    from locb.loadtest import Progress, Report


def load(
    url: Annotated[str, typer.Argument(help="The service, such as http://127.0.0.1:8080.", show_default=False)],
    rate: Annotated[
        str,
        typer.Option(
            help="Decisions a second, each followed by its reward, or **max**: every connection asks again as soon as "
            "it is answered.",
            rich_help_panel="Load",
        ),
    ] = "max",
    seconds: Annotated[
        float, typer.Option(help="For how long new decisions are asked for.", rich_help_panel="Load")
    ] = 10,
    connections: Annotated[int, typer.Option(help="Requests under way at once, at most.", rich_help_panel="Load")] = 50,
    delay: Annotated[float, typer.Option(help="Seconds from a decision to its reward.", rich_help_panel="Load")] = 0,
    route: Annotated[
        str,
        typer.Option(
            help="What to send. **recommend**: decisions and their rewards. To see what the server itself can do: "
            "**ping**, a route that does nothing, and **post**, the same with the bodies of decisions and rewards.",
            rich_help_panel="Load",
        ),
    ] = "recommend",
    retry: Annotated[
        bool,
        typer.Option(
            "--retry",
            help="Send again, with the same decision_id, after a lost connection or 429, 502, 503, 504.",
            rich_help_panel="Load",
        ),
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.", rich_help_panel="Load")] = 30,
    token: Annotated[
        str | None,
        typer.Option(help="Bearer token, if the service wants one.", envvar="LOCB_TOKEN", rich_help_panel="Load"),
    ] = None,
    users: Annotated[int, typer.Option(help="Users who come, all alike often.", rich_help_panel="World")] = 1000,
    clusters: Annotated[int, typer.Option(help="Groups of users who are alike.", rich_help_panel="World")] = 10,
    arms: Annotated[int, typer.Option(help="Arms a decision.", rich_help_panel="World")] = 10,
    dim: Annotated[int, typer.Option(help="Features an arm: the service's dim.", rich_help_panel="World")] = 10,
    count: Annotated[
        int | None, typer.Option(help="Arms of the ranking to ask for; if not given all.", rich_help_panel="World")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the world; the same seed asks the same questions.", rich_help_panel="World")
    ] = 0,
    output: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Play a synthetic world against a service: throughput, latencies, errors, and whether it learns.

    Users in groups come, arms with random features are offered, and a reward of 0 or 1 with the recommended arm's true
    mean as probability is sent back. With a rate, latency counts from when a request was **due**, so that what a slow
    service keeps waiting is seen. A service that has no other clients and no data of worth is the one to play
    against: users and decisions of the load stay in it.

    Examples:
    - `locb load http://127.0.0.1:8080 --rate 500`
    - `locb load http://127.0.0.1:8080 --rate max --connections 200 --json load.json`
    - `locb load http://127.0.0.1:8080 --route ping`
    """
    try:
        from locb.loadtest import Plan, run
    except ImportError as error:
        raise ValueError(str(error)) from error

    try:
        plan = Plan(
            url=url,
            rate=None if rate == "max" else number("rate", rate, "max"),
            users=users,
            clusters=clusters,
            arms=arms,
            dim=dim,
            seconds=seconds,
            connections=connections,
            delay=delay,
            count=count,
            retry=retry,
            timeout=timeout,
            route=route,
            token=token,
            seed=seed,
        )
    except ValueError as error:
        told = str(error)
        raise ValueError(told if told.startswith(("url", "--")) else f"--{told}") from error
    shown = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn())
    try:
        with Bar(*shown, console=console) as bar:
            task = bar.add_task("Connecting", total=plan.seconds)
            report = run(plan, lambda at: bar.update(task, completed=at.elapsed, description=_told(at)))
            bar.update(task, completed=plan.seconds)
    except KeyboardInterrupt:
        leave("stopped", 130)
    since = "since they were asked" if plan.rate is None else "since they were due"
    told = f"{report.per_second:,.0f} requests a second for {report.seconds:.3g} s; milliseconds {since}:"
    console.print(told, style="bold")
    console.print(_latencies(report))
    for line in _facts(report):
        console.print(line)
    if output is not None:
        output.write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
        console.print(f"\nWritten:\n  {output}", soft_wrap=True)
    if not (report.recommend.count or report.ping.count):
        leave(f"{url}: nothing was answered with success", 1)


def _told(at: Progress) -> str:
    return f"{at.answered:,} answered, {at.per_second:,.0f}/s, {at.waiting:,} waiting, {at.errors:,} errors"


def _latencies(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("request", "answered", "p50", "p90", "p99", "max"):
        table.add_column(heading, justify="left" if heading == "request" else "right", no_wrap=True)
    for name, seen in (("recommend", report.recommend), ("reward", report.reward), ("ping", report.ping)):
        if seen.count or name == ("ping" if report.plan.route == "post" else report.plan.route):
            table.add_row(
                name, f"{seen.count:,}", *(f"{mark:.2f}" for mark in (seen.p50, seen.p90, seen.p99, seen.max))
            )
    return table


def _facts(report: Report) -> list[str]:
    """In words: errors, rewards, the generator's own cost."""
    errors = ", ".join(f"{why}: {count:,}" for why, count in report.errors.items())
    told = [f"Errors: {errors}; {report.retried:,} of them sent again." if errors else "No errors."]
    told += [f"The first was {report.problem}"] if report.problem else []
    if report.recommend.count:
        told.append(
            f"Mean reward {report.earned:.3f} (of the last quarter {report.late:.3f}); chance earns "
            f"{report.chance:.3f}, the best arms {report.best:.3f}."
        )
    return [*told, f"The load itself took {report.cpu_microseconds:.0f} µs of processor time a request."]
