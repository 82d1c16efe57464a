"""Functions that run the command line in a new process, or in this process, which is a second faster."""

import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from locb.cli import common, main
from locb.policies import REGISTRY

Done = subprocess.CompletedProcess[str]

# A file with a custom policy for ``--policies mine.py:Mine``.
CUSTOM_POLICY = """\
import locb
class Mine(locb.Policy):
    def recommend(self, user, contexts):
        return 0
    def update(self, user, context, reward):
        pass
"""


def surroundings(cwd: Path, width: int) -> dict[str, str]:
    """Return additional environment variables of a command."""
    return {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb", "LOCB_CACHE": str(cwd / "cache")}


def run(*arguments: str, cwd: Path, width: int = 200, first: tuple[str, ...] = ()) -> Done:
    """Run a command in a new process; ``first`` lists folders to put first on the module path."""
    environment = os.environ | surroundings(cwd, width) | {"PYTHONPATH": os.pathsep.join([*first, *sys.path])}
    command = [sys.executable, "-c", "from locb.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def call(*arguments: str, cwd: Path, width: int = 200) -> Done:
    """Run a command in this process."""
    stdout, stderr, code = StringIO(), StringIO(), 0
    with (
        chdir(cwd),
        patch.dict(os.environ, surroundings(cwd, width)),
        patch.object(sys, "argv", ["locb", *arguments]),
        patch.object(common.console, "_width", width),
        patch.dict(REGISTRY),  # a policy from a file is registered until the end of the command
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            main()
        except SystemExit as exit_error:
            code = exit_error.code if isinstance(exit_error.code, int) else 1
    return Done(["locb", *arguments], code, stdout.getvalue(), stderr.getvalue())
