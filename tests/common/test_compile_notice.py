"""The notice that a kernel is compiled: once per process, on standard error, and only if a kernel is compiled."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from numba.core import event

from locb.common import compile_notice
from locb.common.compile_notice import CompileNotice
from locb.kernels.club.graph import add_edges

# Calls a small kernel with two types of arrays, so that Numba compiles it twice. The delay is the first argument.
SCRIPT = """
import sys
import numpy as np
from locb.common import compile_notice
from locb.kernels.club.graph import add_edges

compile_notice.DELAY_SECONDS = float(sys.argv[1])
numbers = np.zeros(1, np.int64)
for dtype in (np.int32, np.int64):
    indices = np.zeros(1, dtype)
    add_edges(np.empty((0, 2), dtype), numbers, indices, numbers, indices)
"""


def run_script(cache: Path, delay: float, **variables: str) -> str:
    """Run the script in a new process with its own cache of compiled code, and return its standard error."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NUMBA_CACHE_DIR": str(cache),
        "LOCB_QUIET": "",
    }
    command = [sys.executable, "-c", SCRIPT, str(delay)]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr


def test_notice_is_printed_once_and_only_if_a_kernel_is_compiled(tmp_path: Path) -> None:
    (line,) = run_script(tmp_path, 0.0).splitlines()
    assert line.startswith("Compiling locb.kernels.club.graph.add_edges, which can take ")
    (folder,) = tmp_path.iterdir()
    assert f"cached in {folder}" in line
    assert "LOCB_QUIET=1" in line
    assert run_script(tmp_path, 0.0) == ""  # the second process loads the compiled code from the cache


@pytest.mark.parametrize(("delay", "variables"), [(3600.0, {}), (0.0, {"LOCB_QUIET": "1"})], ids=["short", "quiet"])
def test_notice_is_not_printed(delay: float, variables: dict[str, str], tmp_path: Path) -> None:
    """A compilation that ends before the delay is not announced, nor is any with ``LOCB_QUIET=1``."""
    assert run_script(tmp_path, delay, **variables) == ""
    assert any(tmp_path.rglob("*.kernel"))  # the kernel was compiled


def test_failed_compilation_leaves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCB_QUIET")
    before = set(threading.enumerate())
    timers: list[threading.Thread] = []

    def fail_to_compile() -> None:
        with event.trigger_event("numba:compile", {"dispatcher": add_edges}):
            timers.extend(set(threading.enumerate()) - before)
            raise ZeroDivisionError

    monkeypatch.setattr(compile_notice, "DELAY_SECONDS", 3600.0)
    with event.install_listener("numba:compile", CompileNotice()), pytest.raises(ZeroDivisionError):
        fail_to_compile()
    (timer,) = timers
    timer.join(timeout=60.0)  # a timer that is not cancelled ends after an hour
    assert not timer.is_alive()
