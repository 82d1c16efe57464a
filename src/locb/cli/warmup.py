"""Command ``locb warmup``, which compiles policies before their first use."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from locb.cli.common import Jobs, console
from locb.cli.errors import leave


def warmup(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a policy to compile. Repeat the option for several policies.",
            show_default="the policies that locb compare and locb serve use by default",
        ),
    ] = None,
    jobs: Jobs = -1,
) -> None:
    """Compile policies, so that their first use is not delayed.

    The compiled code is cached on disk. It is used until locb, Numba or Python is upgraded, and on processors of the
    same type. Policies that are already compiled take about a second; compiling one takes up to a minute on a slow
    machine.

    Examples:
    - `locb warmup`
    - `locb warmup --policy eloc --policy cab`
    """
    if jobs == 0 or jobs < -1:
        raise ValueError(f"--jobs must be -1 or at least 1, not {jobs}")
    from locb.common.kernel_cache import kernel_cache_dir
    from locb.experiments.compilation import count_cached, default_names, hide_notice, is_cached
    from locb.policies.registry import policy_spec

    hide_notice()
    started = time.perf_counter()
    names = [policy_spec(name).name for name in dict.fromkeys(policy)] if policy else default_names()
    with console.status("Reading the compiled code …"):
        missing = [name for name in names if not is_cached(name)]
    for name in names:
        if name not in missing:
            console.print(f"{name}: already compiled", markup=False)
    if not missing:
        summary = "Found all compiled code"
    else:
        before = count_cached()
        _compile(missing, (os.cpu_count() or 1) if jobs == -1 else jobs)
        summary = f"Compiled {count_cached() - before} functions"
    elapsed = time.perf_counter() - started
    console.print(f"{summary} in {elapsed:.1f} s. Cache: {kernel_cache_dir()}", markup=False, soft_wrap=True)


def _compile(names: list[str], processes: int) -> None:
    """Compile policies, and print the time of each of them."""
    from locb.experiments.compilation import compile_policies

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} of {task.total} policies"))
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task("Compiling", total=len(names))
            for name, seconds in compile_policies(names, processes):
                bar.advance(task)
                console.print(f"{name}: compiled in {seconds:.1f} s", markup=False)
    except KeyboardInterrupt:
        leave("interrupted; the code that is compiled is kept; run the same command to continue", 130)
