"""Create the images of the README and the documentation from real runs.

    python -m tools.screenshots [NAME …] [--movielens PATH] [--into docs/images]

The images regret, users and report come from `locb compare` with its default settings. The images page, page-dark,
page-map, page-user, page-phone and watch show a service after a few minutes of `locb demo`. The image users-movielens
needs --movielens. Chromium must be installed. `make bench` creates the charts of the benchmarks.
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
from locb.client.monitor import ServiceMonitor
from locb.report.terminal.service_view import render_service
from tools.chromium import chromium

ROOT = Path(__file__).parent.parent
LOCB = (sys.executable, "-c", "from locb.cli import main; main()")
RUN_IMAGES = ("regret", "users", "report")
SERVICE_IMAGES = ("page", "page-dark", "page-map", "page-user", "page-phone", "watch")
DATA_IMAGES = ("users-movielens",)
DECISIONS, RATE = 6_000, 50  # number; rate per second. After 6,000, the group of most users is known
DESKTOP, TALL, PHONE = ({"width": width, "height": height} for width, height in ((1200, 860), (1200, 1700), (390, 844)))


class Shot(NamedTuple):
    """Settings of a screenshot of a page."""

    path: str = ""  # part of the address after the host
    size: dict[str, int] = DESKTOP  # width and height of the window in pixels
    dark: bool = False  # whether to use the dark theme


def main() -> None:
    """Create the images that the command line names, or all images."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[[], *RUN_IMAGES, *SERVICE_IMAGES, *DATA_IMAGES],
        metavar="NAME",
        help="image to create (default: all)",
    )
    parser.add_argument("--movielens", type=Path, help="MovieLens data: a folder or an archive")
    parser.add_argument(
        "--into", type=Path, default=ROOT / "docs" / "images", help="folder of the images (default: docs/images)"
    )
    arguments = parser.parse_args()
    names = arguments.names or [*RUN_IMAGES, *SERVICE_IMAGES, *(DATA_IMAGES if arguments.movielens else ())]
    arguments.into.mkdir(parents=True, exist_ok=True)
    if any(name in DATA_IMAGES for name in names):
        if arguments.movielens is None:
            sys.exit("the image users-movielens requires the data: add --movielens PATH")
        locb("data", "movielens", str(arguments.movielens), "--output", str(arguments.into / "users-movielens.png"))
    if any(name in RUN_IMAGES for name in names):
        create_run_images(names, arguments.into)
    if any(name in SERVICE_IMAGES for name in names):
        create_service_images(names, arguments.into)
    for name in names:
        print(next(arguments.into.glob(f"{name}.*")))


def locb(*arguments: str) -> None:
    """Run ``locb`` with arguments. Raise a CalledProcessError if the command fails."""
    subprocess.run([*LOCB, *arguments], check=True)


def create_run_images(names: list[str], into: Path) -> None:
    """Create the charts of a comparison and a screenshot of its report."""
    folder = ROOT / "runs" / "compare"
    locb("compare", "--output", str(folder))
    for name in ("regret", "users"):
        if name in names:
            shutil.copy(folder / f"{name}.png", into / f"{name}.png")
    if "report" in names:
        with chromium() as browser:
            take_screenshot(browser, (folder / "report.html").as_uri(), into / "report.png", Shot(size=TALL))


def create_service_images(names: list[str], into: Path) -> None:
    """Create images of the dashboard and of `locb watch` after 6,000 decisions of a demonstration service."""
    with running_demo() as client:
        wait_until(client, lambda: client.status().decisions >= DECISIONS, 4.0 * DECISIONS / RATE)
        user = client.groups(sort="sure", limit=1).clusters[0].seed
        if "watch" in names:
            save_watch_image(client, into / "watch.svg")
        shots = {
            "page": Shot("#status"),
            "page-dark": Shot("#groups", dark=True),
            "page-map": Shot("#map"),
            "page-user": Shot(f"#user/{quote(user, safe='')}", size=TALL),
            "page-phone": Shot("#status", size=PHONE),
        }
        if any(name in shots for name in names):
            with chromium() as browser:
                for name, shot in shots.items():
                    if name in names:
                        take_screenshot(browser, f"{client.url}/{shot.path}", into / f"{name}.png", shot)


def save_watch_image(client: Client, path: Path) -> None:
    """Save the output of `locb watch` as an SVG file."""
    console = Console(record=True, width=120, height=42, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(render_service(ServiceMonitor(client).refresh(), console.width, console.height))
    # Web fonts are removed, because a browser would fetch them from another site.
    without_fonts = re.sub(r"@font-face {{.*?}}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(path), title=f"locb watch {client.url}", code_format=without_fonts)


@contextmanager
def running_demo() -> Iterator[Client]:
    """Run `locb demo` during the block, and yield a client of its service."""
    port = free_port(8080)
    command = [*LOCB, "demo", "--port", str(port), "--rate", str(RATE)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            with Client(f"http://127.0.0.1:{port}", retries=0) as client:

                def healthy() -> bool:
                    if process.poll() is not None:
                        output.seek(0)
                        sys.exit(f"locb demo did not start:\n{output.read().decode()}")
                    return bool(client.health().status == "ok")

                wait_until(client, healthy, 180.0)
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def free_port(preferred: int) -> int:
    """Return the preferred port, or another free port if the preferred port is in use."""
    for port in (preferred, 0):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            free: int = listener.getsockname()[1]
            return free
    sys.exit(f"port {preferred} is in use, and no other port of 127.0.0.1 is free")


def wait_until(client: Client, condition: Callable[[], bool], seconds: float) -> None:
    """Wait until ``condition`` returns True. Exit with an error after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except ServiceError:  # not started yet
            pass
        time.sleep(0.5)
    sys.exit(f"{client.url} did not reach the expected state within {seconds:.0f} seconds")


def take_screenshot(browser: Browser, url: str, path: Path, shot: Shot) -> None:
    """Save a screenshot of the page at ``url`` after its charts are drawn."""
    context = browser.new_context(
        viewport=shot.size,  # type: ignore[arg-type]  # a dictionary with width and height
        device_scale_factor=1.5 if shot.size != PHONE else 2,
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
    )
    page: Page = context.new_page()
    page.goto(url)
    page.wait_for_selector("canvas, svg.marks", timeout=60_000)
    page.wait_for_timeout(3_000)  # milliseconds; all charts are drawn by then
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(str(error))
