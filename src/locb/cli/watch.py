"""locb watch."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType
from rich.live import Live

from locb.cli.common import console, leave, seconds

if TYPE_CHECKING:
    from locb.client.monitor import Watch

SERVICE = "A service"
SPANS = ("hour", "day", "month", "all")
ONCE_GROUPS = 10  # that are printed where no height limits them


def watch(
    what: Annotated[
        str,
        typer.Argument(
            help="A service, such as http://127.0.0.1:8080, or the folder of a run, such as runs/compare.",
            metavar="URL|RUN",
            show_default=False,
        ),
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Print once and leave; so it is anyway where the output is no terminal.")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.1)] = 2.0,
    plain: Annotated[bool, typer.Option("--plain", help="Words and numbers only: no charts, no bars.")] = False,
    span: Annotated[
        str, typer.Option(help="Rewards of the last **hour**, **day**, **month**, or of **all** time.",
                          rich_help_panel=SERVICE)
    ] = "hour",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="What to compare the rewards with, as FROM/TO: times such as 2026-05-01T12:00, or how long ago, such "
            "as 2d/1d. If not given, the time before the span.",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Look at one user: estimate, groups, last decisions and why.", rich_help_panel=SERVICE),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Bearer token, if the service wants one; the scope read is enough.",
            envvar="LOCB_TOKEN",
            rich_help_panel=SERVICE,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token, such as the service's own, so that no list of processes shows it.",
                     rich_help_panel=SERVICE),
    ] = None,
) -> None:  # fmt: skip
    """See what a service or a run does, here in the terminal, until Ctrl-C.

    **A service**: whether it is well, decisions and rewards a second, the mean reward over time with its interval and
    how it changed, learned users, rewards it waits for, its store and snapshot, and its largest groups of users. It is
    asked every other second, for what costs more every ten; nothing is changed in it. While it cannot be reached, that
    is said, with what was seen last, and it is asked on.

    **A run**: the folder of `locb compare` (table, verdict, curves), or of `locb reproduce`, `locb verify` or `locb
    compare --worlds`: how much is done and how long the rest will take, then the verdicts.

    Examples:
    - `locb watch http://127.0.0.1:8080`
    - `locb watch http://127.0.0.1:8080 --span day --baseline 2d/1d`
    - `locb watch http://127.0.0.1:8080 --user ann --once`
    - `locb watch runs/reproduce-quick`
    """
    once = once or not console.is_terminal
    if what.startswith(("http://", "https://")):
        _watch_service(what, span, baseline, user, _token(token, token_file), every, once, plain)
    else:
        run = Path(what)
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
        from locb.client.monitor import Watch
    except ImportError as error:
        raise ValueError(str(error)) from error

    if span not in SPANS:
        raise ValueError(f"--span must be one of {', '.join(SPANS)}, not {span!r}")
    period = None if baseline is None else _period(baseline)
    with Client(url, token=token, retries=0, timeout=5.0) as client:
        watch = Watch(client, span=span, baseline=period, user=user, most_groups=ONCE_GROUPS if once else 50)

        def draw() -> tuple[RenderableType, bool]:
            watch.look()
            if once and watch.seen.trouble is not None:
                leave(f"{url}: {watch.seen.trouble.told}", 1)
            return _picture(watch, None if once else console.height - 1, plain), _lasts(watch)

        _show(draw, every, once)
        if watch.seen.trouble is not None and _lasts(watch):
            leave(f"{url}: {watch.seen.trouble.told}", 1)
        if watch.person is not None and watch.person.user is None and once:
            leave(f"{url}: there is no user {user!r}", 1)


def _picture(watch: Watch, height: int | None, plain: bool) -> RenderableType:
    from locb.report.terminal.service_view import service_view
    from locb.report.terminal.user_view import user_view

    if watch.user is not None:
        return user_view(watch.seen, watch.person, console.width, plain=plain)
    return service_view(watch.seen, console.width, height, plain=plain)


def _lasts(watch: Watch) -> bool:
    return watch.seen.trouble is not None and watch.seen.trouble.lasts


def _watch_run(folder: Path, every: float, once: bool, plain: bool) -> None:
    from locb.report.terminal.run_view import run_view

    _show(lambda: run_view(folder, console.width, time.time(), plain=plain), every, once)


def _show(draw: Callable[[], tuple[RenderableType, bool]], every: float, once: bool) -> None:
    """Draw once, or again and again until it is over; Ctrl-C keeps the last picture."""
    picture, over = draw()
    if once:
        console.print(picture)
        return
    try:
        with Live(picture, console=console, auto_refresh=False) as live:
            while not over:
                time.sleep(every)
                picture, over = draw()
                live.update(picture, refresh=True)
    except KeyboardInterrupt:
        return


def _token(token: str | None, file: Path | None) -> str | None:
    """The token that was given, or the first in the file that may read; the service's own file will do."""
    if file is None:
        return token
    for line in file.read_text(encoding="utf-8").splitlines():
        words = line.split("#", 1)[0].replace(",", " ").split()
        if len(words) == 1 or "read" in words[1:]:
            return words[0]
    raise ValueError(f"--token-file: {file} holds no token that may read")


def _period(text: str) -> Callable[[float], tuple[tuple[float, float], str]]:
    """From FROM/TO to the period at a time: each end is a time, or how long ago."""
    ends = text.split("/")
    if len(ends) != 2:
        raise ValueError(f"--baseline must be FROM/TO, such as 2d/1d, not {text!r}")
    first, last = map(_end, ends)
    if not first(time.time()) < last(time.time()):
        raise ValueError(f"--baseline must begin before it ends, not {text!r}")
    return lambda now: ((first(now), last(now)), f"the period {text}")


def _end(text: str) -> Callable[[float], float]:
    try:
        at = datetime.fromisoformat(text).timestamp()
    except ValueError:
        ago = seconds("baseline", text)
        return lambda now: now - ago
    return lambda _: at
