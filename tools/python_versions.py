"""Run tests with the oldest and the newest installed Python. ``make versions`` runs this program.

Each version gets an environment of its own, such as ``.venv-3.13``. The selected tests are those whose result can
depend on the version of Python: they compile all kernels, compare all policies with the reference implementation, and
use the command line, the client and the service. Experiments, charts and web pages are left out, because they take
long.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
OLDEST_SUPPORTED = (3, 11)  # requires-python in pyproject.toml
TESTS = (
    "tests/client",
    "tests/common",
    "tests/datasets",
    "tests/environments",
    "tests/kernels",
    "tests/loadtest",
    "tests/policies",
    "tests/service/api",
    "tests/service/core",
    "tests/service/store",
    "tests/service/test_server.py",
    "tests/test_cli_errors.py",
    "tests/test_oracle.py",
    "tests/test_public_interface.py",
    "tests/tools",
    # These take long, and test the service more than Python.
    "--ignore=tests/service/api/test_openapi.py",
    "--ignore=tests/service/core/test_fault_injection.py",
)
# Prints the version if the interpreter can create an environment and has the optional modules that locb imports.
PROBE = "import ensurepip, sqlite3, ssl, sys, venv; print(*sys.version_info[:4])"


class Python(NamedTuple):
    """An installed interpreter."""

    version: tuple[int, int, int]
    path: Path

    @property
    def minor(self) -> str:
        """Version without the last number, such as "3.13"."""
        return "{}.{}".format(*self.version)


def candidates() -> list[Path]:
    """Return the paths of all programs that may be an interpreter: on PATH, and those that pyenv and uv installed."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local/share/uv/python")
    folders += [*sorted(pyenv.glob("versions/*/bin")), *sorted(uv.glob("*/bin"))]
    names = re.compile(r"python3(\.\d+)?")
    return [path for folder in folders for path in sorted(folder.glob("python3*")) if names.fullmatch(path.name)]


def probe(path: Path) -> Python | None:
    """Return the interpreter at a path, or None if it does not run, is a prerelease, or cannot create environments."""
    try:
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    *numbers, level = done.stdout.split()
    return Python((int(numbers[0]), int(numbers[1]), int(numbers[2])), path) if level == "final" else None


def installed_versions() -> list[Python]:
    """Return one interpreter per supported minor version, from the oldest to the newest version."""
    found: dict[str, Python] = {}
    for path in candidates():
        python = probe(path)
        if python is not None and python.version[:2] >= OLDEST_SUPPORTED:
            found.setdefault(python.minor, python)
    return sorted(found.values())


def main() -> int:
    """Run the tests, and return the exit status: 1 if tests of a version fail, 2 if no Python is installed."""
    parser = argparse.ArgumentParser(prog="python_versions", description=__doc__)
    parser.add_argument("--tested", type=Path, help="environment whose version is left out, because it is tested")
    parser.add_argument("tests", nargs="*", default=TESTS, help="tests to run (default: a selection)")
    options = parser.parse_args()
    installed = installed_versions()
    if not installed:
        print("No Python {}.{} or newer is installed.".format(*OLDEST_SUPPORTED), file=sys.stderr)
        return 2
    print("Installed versions of Python:", ", ".join("{}.{}.{}".format(*python.version) for python in installed))
    tested = None if options.tested is None else probe(options.tested.absolute() / "bin" / "python")
    failed = []
    for python in sorted({installed[0], installed[-1]}):
        if tested is not None and tested.minor == python.minor:
            print(f"Python {python.minor} is already tested in {options.tested}.", flush=True)
            continue
        print(f"Testing with Python {python.minor}, {python.path} …", flush=True)
        command = [os.environ.get("MAKE", "make"), "--no-print-directory", "test"]
        command += [f"VENV=.venv-{python.minor}", f"PYTHON={python.path}", f"TESTS={' '.join(options.tests)}"]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(python.minor)
    if failed:
        print(f"Tests failed with Python {' and '.join(failed)}.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
