"""Skipped tests: one line per missing program, with its installation command and the number of tests that need it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEED_PROGRAMS = ("tests/service/store/test_erase.py", "tests/service/page/test_scripts.py", "-k", "postgresql or page")
OTHER_SKIPS = """
import pytest


@pytest.mark.parametrize("number", range(2))
def test_other(number):
    pytest.skip(f"reason {number}")
"""


def run_without_programs(folder: Path, *arguments: str) -> list[str]:
    """Return the summary of a test session in which neither Chromium nor PostgreSQL is found."""
    empty = folder / "empty"
    empty.mkdir()
    environment = os.environ | {"PATH": str(empty), "POSTGRESQL": str(empty), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("CHROMIUM", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_each_missing_program_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "test_page_of_other.py").write_text(OTHER_SKIPS)
    lines = run_without_programs(tmp_path, "-n", "1", str(tmp_path / "test_page_of_other.py"), *NEED_PROGRAMS)
    skipped = [line for line in lines if line.startswith("SKIPPED")]
    counts = [int(re.findall(r"\[(\d+)\]", line)[0]) for line in skipped]
    programs = [line.partition("] ")[2] for line in skipped if "not installed" in line]
    assert sorted(programs) == [
        "Chromium is not installed: run apt-get install chromium, or set CHROMIUM=/path/to/chromium",
        "PostgreSQL is not installed: run apt-get install postgresql, or set POSTGRESQL=/path/to/bin",
    ]
    # All other skips keep the place and the reason.
    others = [line for line in skipped if "not installed" not in line]
    assert [line.rpartition("test_page_of_other.py:7: ")[2] for line in others] == ["reason 0", "reason 1"]
    # The totals of the last line contain every test.
    (total,) = re.findall(r"(\d+) skipped", lines[-1])
    assert int(total) == sum(counts)
    assert min(counts[skipped.index(line)] for line in skipped if "Chromium" in line) > 1
