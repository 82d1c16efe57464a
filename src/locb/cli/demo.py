"""locb demo."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import console, leave


def demo(
    port: Annotated[int, typer.Option(help="Port to listen at.", min=1, max=65535)] = 8080,
    rate: Annotated[float, typer.Option(help="Visitors a second.", min=0.1, max=1000)] = 50,
    seed: Annotated[int, typer.Option(help="Of the films and the visitors.", min=0)] = 0,
) -> None:
    """Start a service with made-up visitors, to look at: open the address it prints in a browser.

    160 people of five kinds come to choose one of eight films; the service does not know the kinds, and finds groups of
    like-minded people within two or three minutes. All of it stays on this machine and is gone after Ctrl-C.

    Examples:
    - `locb demo`
    - `locb demo --rate 200 --port 8081`
    """
    try:
        from locb.demo.runner import show
        from locb.service.server import log_lines
    except ImportError as error:
        leave(f"the demonstration needs more than is installed: pip install 'locb[client,service]' ({error})", 2)
    log_lines("warning")
    url = f"http://127.0.0.1:{port}"
    console.print("Starting; the first start on this machine compiles the policy, a minute or less …")

    def started() -> None:
        command = "locb" if shutil.which("locb") else sys.argv[0]
        console.print(f"[bold]Open {url} in a browser[/], or in another terminal:")
        console.print(f"  {command} watch {url}", soft_wrap=True)
        console.print("Visitors come, and groups form within two or three minutes. Ctrl-C ends it.")

    with tempfile.TemporaryDirectory(prefix="locb-demo-") as folder:
        show(Path(folder), port, rate, started, seed)
