"""The command line: in a process of its own, as a person meets it, or in this one, which is quicker by a second."""

import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from locb.cli import common, main

Done = subprocess.CompletedProcess[str]


def surroundings(cwd: Path, width: int) -> dict[str, str]:
    """What a command finds in its environment besides what is there already."""
    return {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb", "LOCB_CACHE": str(cwd / "cache")}


def run(*arguments: str, cwd: Path, width: int = 200, first: tuple[str, ...] = ()) -> Done:
    """In a process; ``first`` are folders whose modules hide others of their name."""
    environment = os.environ | surroundings(cwd, width) | {"PYTHONPATH": os.pathsep.join([*first, *sys.path])}
    command = [sys.executable, "-c", "from locb.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def call(*arguments: str, cwd: Path, width: int = 200) -> Done:
    """In this process, from the same start to the same end."""
    told, complained, code = StringIO(), StringIO(), 0
    with (
        chdir(cwd),
        patch.dict(os.environ, surroundings(cwd, width)),
        patch.object(sys, "argv", ["locb", *arguments]),
        patch.object(common.console, "_width", width),
        redirect_stdout(told),
        redirect_stderr(complained),
    ):
        try:
            main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
    return Done(["locb", *arguments], code, told.getvalue(), complained.getvalue())
