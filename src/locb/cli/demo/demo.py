"""Command ``locb demo``, which runs a service with simulated visitors."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from locb.cli.common import console
from locb.cli.errors import leave_without_package


def demo(
    port: Annotated[int, typer.Option(help="Port of the service.", min=1, max=65535)] = 8080,
    rate: Annotated[float, typer.Option(help="Simulated visits per second.", min=0.1, max=1000)] = 50,
    seed: Annotated[int, typer.Option(help="Random seed of the films and the visits.", min=0)] = 0,
) -> None:
    """Start a service with simulated visitors and print the address of its dashboard.

    In each visit, the service recommends one of eight random films to one of 160 simulated people. It learns from their
    rewards. The people belong to five groups with similar preferences. The service does not know the groups, and finds
    them within two to three minutes. The service listens on 127.0.0.1, and its data is deleted on Ctrl-C.

    Examples:
    - `locb demo`
    - `locb demo --rate 200 --port 8081`
    """
    try:
        from locb.cli.demo.runner import run_demo
        from locb.service.server import configure_logging
    except ImportError as error:
        leave_without_package("demo", "client,service", error)
    configure_logging("warning")
    url = f"http://127.0.0.1:{port}"
    console.print("Starting. The first time and after an upgrade, compiling the policy takes up to a minute …")

    def started() -> None:
        command = "locb" if shutil.which("locb") else sys.argv[0]
        console.print(f"[bold]Open {url} in a browser[/], or in another terminal:")
        console.print(f"  {command} watch {url}", soft_wrap=True)
        console.print("The service finds the groups within two to three minutes. Press Ctrl-C to stop.")

    with tempfile.TemporaryDirectory(prefix="locb-demo-") as folder:
        run_demo(Path(folder), port, rate, started, seed)
