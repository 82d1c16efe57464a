"""Command ``locb watch``, which monitors a service or a run in the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.live import Live

from locb.cli.common import PIPED_WIDTH, console, seconds
from locb.cli.errors import leave
from locb.common.spans import SPANS

if TYPE_CHECKING:
    from locb.client.monitor import Baseline, ServiceMonitor

SERVICE = "Service"
ONCE_GROUPS = 10  # number of groups to print with --once


def watch(
    target: Annotated[
        str,
        typer.Argument(
            help="Address of a service, such as http://127.0.0.1:8080, or folder of a run, such as runs/compare.",
            metavar="URL|FOLDER",
            show_default=False,
        ),
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Print once and exit. This is the default if the output is not a terminal.")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between updates.", min=0.1)] = 2.0,
    plain: Annotated[bool, typer.Option("--plain", help="Print text only, without charts and bars.")] = False,
    span: Annotated[
        str, typer.Option(help="Period of the rewards to show: the last **hour**, **day** or **month** (30 days), or "
                               "**all**.",
                          rich_help_panel=SERVICE)
    ] = "hour",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Period with which the rewards are compared, as FROM/TO. FROM and TO are times, such as "
            "2026-05-01T12:00, or ages, such as 2d.",
            show_default="the period of the same length before --span",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            help="Show one user, by id: estimated preferences, groups, and the last decisions with explanations.",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Bearer token, if the service requires one. A token with the scope read is sufficient.",
            envvar="LOCB_TOKEN",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Token file in the format of the service, so that the process list does not show the token. "
                          "The first token with the scope read that is not hashed (sha256:…) is used.",
                     rich_help_panel=SERVICE),
    ] = None,
) -> None:  # fmt: skip
    """Monitor a service or a run in the terminal until Ctrl-C.

    **Service**: shows the health of the service, decisions and rewards per second, and the mean reward over time with
    its 95% confidence interval and its change. It also shows the number of users, pending rewards, the store of events,
    the last snapshot of the policy, and the largest groups of users. The status is requested every --every seconds, and
    all other data every ten seconds. The command does not modify the service. If the service is unreachable, the
    command shows the last known state and tries again.

    **Run**: shows the progress and the remaining time, then the results. The results of `locb compare` are a table, a
    verdict and curves. Those of `locb reproduce`, `locb verify` and `locb compare --scenarios` are verdicts.

    Examples:
    - `locb watch http://127.0.0.1:8080`
    - `locb watch http://127.0.0.1:8080 --span day --baseline 2d/1d`
    - `locb watch http://127.0.0.1:8080 --user ann --once`
    - `locb watch runs/reproduce-quick`
    """
    once = once or not console.is_terminal
    if target.startswith(("http://", "https://")):
        _watch_service(target, span, baseline, user, _read_token(token, token_file), every, once, plain)
    else:
        run = Path(target)
        _watch_run(run.parent if run.is_file() else run, every, once, plain)


def _watch_service(
    url: str,
    span: str,
    baseline: str | None,
    user: str | None,
    token: str | None,
    every: float,
    once: bool,
    plain: bool,
) -> None:
    try:
        from locb.client import Client
        from locb.client.monitor import ServiceMonitor
    except ImportError as error:
        raise ValueError(str(error)) from error

    if span not in SPANS:
        raise ValueError(f"--span must be one of {', '.join(SPANS)}, not {span!r}")
    period = None if baseline is None else _parse_baseline(baseline)
    with Client(url, token=token, retries=0, timeout=5.0) as client:
        max_groups = ONCE_GROUPS if once else 50
        monitor = ServiceMonitor(client, span=span, baseline=period, user=user, max_groups=max_groups)

        def draw() -> tuple[RenderableType, bool]:
            problem = monitor.refresh().problem
            if once and problem is not None:
                leave(f"{url}: {problem.message}", 1)
            permanent = problem is not None and problem.permanent
            return _render(monitor, None if once else console.height - 1, plain), permanent

        _show(draw, every, once)
        problem = monitor.snapshot.problem
        if problem is not None and problem.permanent:
            leave(f"{url}: {problem.message}", 1)
        if monitor.user_data is not None and monitor.user_data.user is None and once:
            leave(f"{url}: unknown user {user!r}: the service has made no decision for this id", 1)


def _render(monitor: ServiceMonitor, height: int | None, plain: bool) -> RenderableType:
    from locb.report.terminal.service_view import render_service
    from locb.report.terminal.user_view import render_user

    if monitor.user is not None:
        return render_user(monitor.snapshot, monitor.user_data, _view_width(), plain=plain)
    return render_service(monitor.snapshot, _view_width(), height, plain=plain)


def _view_width() -> int:
    """Return the width of the views, which fill all of it: at most 80 characters in a file or a pipe."""
    return 80 if console.width == PIPED_WIDTH else console.width


def _watch_run(folder: Path, every: float, once: bool, plain: bool) -> None:
    from locb.report.terminal.run_view import render_run

    _show(lambda: render_run(folder, _view_width(), time.time(), plain=plain), every, once)


def _show(draw: Callable[[], tuple[RenderableType, bool]], every: float, once: bool) -> None:
    """Show a view once, or repeatedly until the view is final or the user presses Ctrl-C.

    Parameters
    ----------
    draw : callable
        Function without arguments that returns the view, and whether it is final.
    every : float
        Seconds between two views.
    once : bool
        Whether to show the view once only.
    """
    view, finished = draw()
    if once:
        console.print(view)
        return
    try:
        with Live(view, console=console, auto_refresh=False) as live:
            while not finished:
                time.sleep(every)
                view, finished = draw()
                live.update(view, refresh=True)
    except KeyboardInterrupt:
        return


def _read_token(token: str | None, file: Path | None) -> str | None:
    """Return the token: the first token with the scope read in ``file``, or ``token`` if there is no file."""
    if file is None:
        return token
    from locb.service.api.token_file import HASHED, read_token_file

    for found, scopes in read_token_file(file).items():
        if found.startswith(HASHED):
            continue  # only the service can use a hashed token
        if "read" in scopes:
            return found
    raise ValueError(
        f"--token-file: {file} contains no token with the scope 'read' that is not hashed; write 'TOKEN read' with "
        "the token itself, not its 'sha256:' digest, or use another file"
    )


def _parse_baseline(text: str) -> Baseline:
    """Parse a baseline period FROM/TO, where each end is a time or an age.

    The result is a function that maps the current time to the period (start and end) and its name.
    """
    ends = text.split("/")
    if len(ends) != 2:
        raise ValueError(f"--baseline must be FROM/TO, such as 2d/1d, not {text!r}")
    start, end = map(_parse_time, ends)
    if not start(time.time()) < end(time.time()):
        raise ValueError(f"--baseline must be FROM/TO with FROM before TO, such as 2d/1d, not {text!r}")
    return lambda now: ((start(now), end(now)), f"the period {text}")


def _parse_time(text: str) -> Callable[[float], float]:
    """Parse a time, such as 2026-05-01T12:00, or an age, such as 2d.

    The result is a function that maps the current time to the parsed time, in seconds since 1970.
    """
    try:
        timestamp = datetime.fromisoformat(text).timestamp()
    except ValueError:
        try:
            age = seconds("baseline", text)
        except ValueError:
            reason = "neither a time, such as 2026-05-01T12:00, nor an age, such as 2d"
            raise ValueError(f"--baseline: {text!r} is {reason}") from None
        return lambda now: now - age
    return lambda _: timestamp
