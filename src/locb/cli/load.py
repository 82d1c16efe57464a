"""Command ``locb load``, which measures a service under load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

from locb.cli.common import console, number
from locb.cli.errors import leave

if TYPE_CHECKING:
    from locb.loadtest import Plan, Progress, Report

LOAD = "Load"
ENVIRONMENT = "Simulated environment"


def load(
    url: Annotated[
        str, typer.Argument(help="Address of the service, such as http://127.0.0.1:8080.", show_default=False)
    ],
    rate: Annotated[
        str,
        typer.Option(
            help="Number of decisions to request per second; a reward follows each decision. With **max**, each "
            "connection sends its next request as soon as it gets a response.",
            rich_help_panel=LOAD,
        ),
    ] = "max",
    seconds: Annotated[float, typer.Option(help="Duration of the test in seconds.", rich_help_panel=LOAD)] = 10,
    connections: Annotated[
        int, typer.Option(help="Number of connections. Each sends one request at a time.", rich_help_panel=LOAD)
    ] = 50,
    delay: Annotated[float, typer.Option(help="Seconds from a decision to its reward.", rich_help_panel=LOAD)] = 0,
    route: Annotated[
        str,
        typer.Option(
            help="Requests to send. **recommend**: requests for decisions, and rewards. **ping**: GET /v1/ping, which "
            "measures the HTTP server alone. **post**: the bodies of recommend to POST /v1/ping, which measures the "
            "HTTP server and the parsing of requests.",
            rich_help_panel=LOAD,
        ),
    ] = "recommend",
    retry: Annotated[
        bool,
        typer.Option(
            "--retry",
            help="Repeat a request, with the same decision_id, after a lost connection, a timeout, or status 429, 502, "
            "503 or 504.",
            rich_help_panel=LOAD,
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            help="Seconds to wait for a response. The test ends at most --seconds + --delay + --timeout seconds after "
            "its start.",
            rich_help_panel=LOAD,
        ),
    ] = 30,
    token: Annotated[
        str | None,
        typer.Option(help="Bearer token, if the service requires one.", envvar="LOCB_TOKEN", rich_help_panel=LOAD),
    ] = None,
    users: Annotated[
        int, typer.Option(help="Number of users. All users arrive equally often.", rich_help_panel=ENVIRONMENT)
    ] = 1000,
    clusters: Annotated[int, typer.Option(help="Number of groups of similar users.", rich_help_panel=ENVIRONMENT)] = 10,
    arms: Annotated[int, typer.Option(help="Arms per decision.", rich_help_panel=ENVIRONMENT)] = 10,
    dim: Annotated[
        int, typer.Option(help="Features per arm. Must equal --dim of the service.", rich_help_panel=ENVIRONMENT)
    ] = 10,
    count: Annotated[
        int | None,
        typer.Option(
            help="Number of arms in the ranking that each request asks for.",
            show_default="all",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Random seed. The same seed gives the same requests for decisions. Rewards also depend on the "
            "responses.",
            rich_help_panel=ENVIRONMENT,
        ),
    ] = 0,
    output: Annotated[Path | None, typer.Option("--json", help="Also write the results to this JSON file.")] = None,
) -> None:
    """Measure a service under load: throughput, latencies, errors and mean reward.

    Simulated users, who form groups with similar preferences, request decisions between arms with random features. The
    reward is 0 or 1, and the probability of reward 1 depends on the user and the recommended arm. The output compares
    the mean of these probabilities with the means for random arms and for the best arms. This shows whether the service
    learns.

    With a rate, latency is measured from the time when a request was **due**. It therefore includes the time that a
    request waits because the service is slow. With **max**, latency is measured from sending the request.

    The users and decisions of the test remain in the service. Use a service without production data.

    Ctrl-C ends the test early and prints the results so far. A test cannot be continued later, because it measures one
    period without a gap.

    Examples:
    - `locb load http://127.0.0.1:8080 --rate 500`
    - `locb load http://127.0.0.1:8080 --rate max --connections 200 --json load.json`
    - `locb load http://127.0.0.1:8080 --route ping`
    """
    plan = _make_plan(
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
    report = _run(plan)
    _print_report(report)
    if output is not None:
        output.write_text(json.dumps(report.as_dict(), indent=2) + "\n", encoding="utf-8")
        console.print(f"\nWritten:\n  {output}", soft_wrap=True)
    if not (report.recommend.count or report.ping.count):
        leave(f"{url}: no request succeeded; check the address, the token and the errors above", 1)


def _make_plan(**settings: Any) -> Plan:
    try:
        from locb.loadtest import Plan
    except ImportError as error:
        raise ValueError(str(error)) from error
    return Plan(**settings)


def _run(plan: Plan) -> Report:
    from locb.loadtest import run

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn())
    try:
        with ProgressBar(*columns, console=console) as bar:
            task = bar.add_task("Connecting", total=plan.seconds)
            report = run(plan, lambda at: bar.update(task, completed=at.elapsed, description=_format_progress(at)))
            bar.update(task, completed=plan.seconds)
            return report
    except KeyboardInterrupt:
        leave("interrupted before the test started; there are no results", 130)


def _format_progress(progress: Progress) -> str:
    return (
        f"{progress.answered:,} responses, {progress.per_second:,.0f} per second, {progress.waiting:,} waiting, "
        f"{progress.errors:,} errors"
    )


def _print_report(report: Report) -> None:
    start = "sending" if report.plan.rate is None else "the due time"
    console.print(
        f"{report.per_second:,.0f} requests per second for {report.seconds:.3g} s. Latency from {start}, in ms:",
        style="bold",
    )
    console.print(_latency_table(report))
    for line in _summary_lines(report):
        console.print(line)


def _latency_table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("request", "responses", "p50", "p90", "p99", "max"):
        table.add_column(heading, justify="left" if heading == "request" else "right", no_wrap=True)
    for name, latency in (("recommend", report.recommend), ("reward", report.reward), ("ping", report.ping)):
        if latency.count or name == ("ping" if report.plan.route == "post" else report.plan.route):
            quantiles = (latency.p50, latency.p90, latency.p99, latency.max)
            table.add_row(name, f"{latency.count:,}", *(f"{quantile:.2f}" for quantile in quantiles))
    return table


def _summary_lines(report: Report) -> list[str]:
    """Return the lines of the summary: errors, mean rewards, and the CPU time of the load generator."""
    errors = ", ".join(f"{reason}: {count:,}" for reason, count in report.errors.items())
    lines = [f"Errors: {errors} ({report.retried:,} retried)." if errors else "No errors."]
    lines += [f"First error response: {report.first_problem}"] if report.first_problem else []
    if report.recommend.count:
        lines.append(
            f"Mean reward per decision: {report.mean_reward:.3f}, in the last quarter {report.late_mean_reward:.3f} "
            f"(random arms {report.random_mean_reward:.3f}, best arms {report.best_mean_reward:.3f})."
        )
    return [*lines, f"CPU time of the load generator: {report.cpu_microseconds:.0f} µs per request."]
