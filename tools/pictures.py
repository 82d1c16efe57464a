"""The pictures of README and docs, made anew from real runs.

    python -m tools.pictures [NAME …] [--movielens PATH] [--into docs/images]

regret, users, report: from `locb compare`, as `make run` plays it. page, page-dark, page-map, page-user,
page-phone, watch: of a service after some minutes of `locb demo`. users-movielens: where the path of the data is
given. Pages are opened in Chromium from the system. Charts that benchmarks measure are drawn by `make bench`.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from playwright.sync_api import Browser, Page
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from locb.client import Client, ServiceError
from locb.client.monitor import Watch
from locb.report.terminal.service_view import service_view
from tools.chromium import chromium

ROOT = Path(__file__).parent.parent
LOCB = (sys.executable, "-c", "from locb.cli import main; main()")
OF_A_RUN = ("regret", "users", "report")
OF_A_SERVICE = ("page", "page-dark", "page-map", "page-user", "page-phone", "watch")
OF_DATA = ("users-movielens",)
DECISIONS, RATE = 6_000, 50  # then some groups are complete and others still form
DESK, TALL, PHONE = ({"width": width, "height": height} for width, height in ((1200, 860), (1200, 1700), (390, 844)))


class Shot(NamedTuple):
    """How to look at a page."""

    place: str = ""
    size: dict[str, int] = DESK
    dark: bool = False
    part: str = ""  # to scroll to


def main() -> None:
    """Make what is asked for, or everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *OF_A_RUN, *OF_A_SERVICE, *OF_DATA], metavar="NAME")
    parser.add_argument("--movielens", type=Path, help="MovieLens as published: a folder or an archive")
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    asked = parser.parse_args()
    names = asked.names or [*OF_A_RUN, *OF_A_SERVICE, *(OF_DATA if asked.movielens else ())]
    asked.into.mkdir(parents=True, exist_ok=True)
    if any(name in OF_DATA for name in names):
        if asked.movielens is None:
            sys.exit("users-movielens: say where the data are, --movielens PATH")
        locb("data", "movielens", str(asked.movielens), "--output", str(asked.into / "users-movielens.png"))
    if any(name in OF_A_RUN for name in names):
        of_a_run(names, asked.into)
    if any(name in OF_A_SERVICE for name in names):
        of_a_service(names, asked.into)
    for name in names:
        print(next(asked.into.glob(f"{name}.*")))


def locb(*arguments: str) -> None:
    """Run the command line."""
    subprocess.run([*LOCB, *arguments], check=True)


def of_a_run(names: list[str], into: Path) -> None:
    """Charts of the run that ``make run`` plays, and its report."""
    folder = ROOT / "runs" / "compare"
    locb("compare", "--output", str(folder))
    for name in ("regret", "users"):
        if name in names:
            shutil.copy(folder / f"{name}.png", into / f"{name}.png")
    if "report" in names:
        with chromium() as browser:
            shoot(browser, (folder / "report.html").as_uri(), into / "report.png", Shot(size=TALL))


def of_a_service(names: list[str], into: Path) -> None:
    """The page and the terminal, of a service that visitors came to for some minutes."""
    with demo() as client:
        seen(client, lambda: client.status().decisions >= DECISIONS, 4.0 * DECISIONS / RATE)
        groups = client.groups().groups
        someone = next((group.seed for group in groups if group.returned), groups[0].seed)
        if "watch" in names:
            watched(client, into / "watch.svg")
        someones = f"#user/{quote(someone, safe='')}"
        shots = {
            "page": Shot("#now"),
            "page-dark": Shot("#groups", dark=True),
            "page-map": Shot("#map"),
            "page-user": Shot(someones, size=TALL, part="section:has(> #decisions-title)"),
            "page-phone": Shot("#now", size=PHONE),
        }
        if any(name in shots for name in names):
            with chromium() as browser:
                for name, shot in shots.items():
                    if name in names:
                        shoot(browser, f"{client.url}/{shot.place}", into / f"{name}.png", shot)


def watched(client: Client, path: Path) -> None:
    """``locb watch`` as a picture."""
    console = Console(record=True, width=120, height=42, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(service_view(Watch(client).look(), console.width, console.height))
    without_fonts = re.sub(
        r"@font-face {{.*?}}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL
    )  # they are fetched from elsewhere
    console.save_svg(str(path), title=f"locb watch {client.url}", code_format=without_fonts)


@contextmanager
def demo() -> Iterator[Client]:
    """A client of a service that visitors come to."""
    port = free_port(8080)
    command = [*LOCB, "demo", "--port", str(port), "--rate", str(RATE)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        try:
            with Client(f"http://127.0.0.1:{port}", retries=0) as client:

                def answers() -> bool:
                    if process.poll() is not None:
                        said.seek(0)
                        sys.exit(f"locb demo did not start:\n{said.read().decode()}")
                    return bool(client.health().status == "ok")

                seen(client, answers, 180.0)
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def free_port(wanted: int) -> int:
    """The wanted port, or another if somebody listens there."""
    for port in (wanted, 0):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            free: int = one.getsockname()[1]
            return free
    sys.exit("no port is free")


def seen(client: Client, condition: Callable[[], bool], seconds: float) -> None:
    """Wait until it holds; an error if it never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except ServiceError:  # it starts
            pass
        time.sleep(0.5)
    sys.exit(f"{client.url}: it did not happen within {seconds:.0f} seconds")


def shoot(browser: Browser, url: str, path: Path, shot: Shot) -> None:
    """A picture of a page once its charts are drawn, from the top or scrolled to a part of it."""
    context = browser.new_context(
        viewport=shot.size,  # type: ignore[arg-type]  # a dictionary of the two
        device_scale_factor=1.5 if shot.size != PHONE else 2,
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
    )
    page: Page = context.new_page()
    page.goto(url)
    page.wait_for_selector("canvas, svg.marks", timeout=60_000)
    page.wait_for_timeout(3_000)  # all charts and figures, and what moves comes to rest
    if shot.part:
        page.locator(shot.part).evaluate("part => part.scrollIntoView()")
        page.wait_for_timeout(500)
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(str(error))
