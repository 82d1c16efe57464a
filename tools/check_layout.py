"""Check the size limits of the source tree. ``make lint`` runs this program.

A file may have 350 lines, a function 60 lines including its docstring, and a folder 14 entries (``__init__.py`` and
``py.typed`` are not counted). Exceptions are listed with a reason.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 60
MAX_FOLDER_ENTRIES = 14
SOURCE_SUFFIXES = (".py", ".js", ".css", ".html")
NOT_COUNTED = ("__init__.py", "py.typed")

# Files, functions ("path:name") and folders above a limit, each with the reason.
_COMMAND = "Typer command: the signature declares and documents every option"
EXCEPTIONS: dict[str, str] = {
    "src/locb": "one folder per package of the layers in docs/explanation/architecture.md",
    "src/locb/cli/comparison/compare.py:compare": _COMMAND,
    "src/locb/cli/data/dataset.py:data": _COMMAND,
    "src/locb/cli/data/evaluate.py:evaluate": _COMMAND,
    "src/locb/cli/data/groups.py:groups": _COMMAND,
    "src/locb/cli/data/tune.py:tune": _COMMAND,
    "src/locb/cli/load.py:load": _COMMAND,
    "src/locb/experiments/comparison/compare.py:compare": "public function: the docstring documents every argument",
    "src/locb/cli/reproduce.py:reproduce": _COMMAND,
    "src/locb/cli/watch.py:watch": _COMMAND,
    "src/locb/datasets/table.py:table": "the docstring describes every argument of the reader",
    "src/locb/logs/groups/find_groups.py:find_groups": "the docstring describes every argument",
    "src/locb/logs/tune.py:tune": "the docstring describes every argument",
}


def check_file(path: str, source: str) -> list[str]:
    """Return a message if a file has too many lines, and a message for each function that has too many lines."""
    problems = []
    lines = source.count("\n")
    if lines > MAX_FILE_LINES and path not in EXCEPTIONS:
        problems.append(f"{path}: {lines} lines; at most {MAX_FILE_LINES} are allowed")
    for node in ast.walk(ast.parse(source)) if path.endswith(".py") else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > MAX_FUNCTION_LINES and f"{path}:{node.name}" not in EXCEPTIONS:
                found = f"{node.name} has {length} lines; at most {MAX_FUNCTION_LINES} are allowed"
                problems.append(f"{path}:{node.lineno}: {found}")
    return problems


def check_folders(paths: list[str]) -> list[str]:
    """Return a message for each folder with too many entries."""
    entries: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            entries["/".join(parts[:depth])].add(parts[depth])
    return [
        f"{folder}: {len(names)} entries; at most {MAX_FOLDER_ENTRIES} are allowed"
        for folder, names in ((folder, found.difference(NOT_COUNTED)) for folder, found in sorted(entries.items()))
        if len(names) > MAX_FOLDER_ENTRIES and folder not in EXCEPTIONS
    ]


def main() -> int:
    """Print a message for each exceeded limit, and return the exit status: 1 if there is a message, else 0.

    No source file at all is also an error, with status 2.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    paths = [path for path in listed if (ROOT / path).is_file()]
    if not paths:
        print(f"No source file found in {ROOT / 'src'}.")
        return 2
    problems = check_folders(paths)
    for path in paths:
        if path.endswith(SOURCE_SUFFIXES):
            problems += check_file(path, (ROOT / path).read_text(encoding="utf-8"))
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
