"""Files in the folder of an experiment, which reports also read: settings, plan and finished runs."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS_FILE = "settings.json"
PLAN_FILE = "plan.json"
RUNS_FOLDER = "runs"
UNFINISHED_FOLDER = "unfinished"  # subfolder that keeps the finished parts of the results until all parts are finished
# Packages whose code influences the outcome of a run.
SOURCE_PACKAGES = ("common", "policies", "kernels", "environments", "datasets", "evaluation")


def code_digest(packages: Sequence[str] = SOURCE_PACKAGES) -> str:
    """Return a digest of the source code of packages of ``locb``; by default, of all that determines outcomes of runs.

    A folder of runs stores the digest, so that all runs in the folder have the same version of the code.
    """
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for name in packages:
        for path in sorted((root / name).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file atomically: readers see the old file or the complete new file."""
    temporary = path.with_name(f".{path.name[-60:]}.{os.getpid()}.part")
    try:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunPlan:
    """The runs that a process plans to write to the folder of an experiment."""

    started: float  # seconds since 1970
    costs: dict[str, float]  # relative computing time by file name of the run, also of finished runs
    host: str
    process: int  # process id

    @classmethod
    def for_this_process(cls, started: float, costs: dict[str, float]) -> RunPlan:
        """Return a plan with the host name and the process id of the current process."""
        return cls(started, costs, socket.gethostname(), os.getpid())

    def write(self, folder: Path) -> None:
        """Write the plan to the folder of the experiment."""
        write_json(folder / PLAN_FILE, vars(self))

    @classmethod
    def read(cls, folder: Path) -> RunPlan | None:
        """Return the plan in a folder; None if the file does not exist or is not valid."""
        try:
            content = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
            return cls(float(content["started"]), dict(content["costs"]), str(content["host"]), int(content["process"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def is_running(self) -> bool | None:
        """Whether the process of the plan still runs; None if it was started on another machine."""
        if self.host != socket.gethostname():
            return None
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except OSError:  # the process belongs to another user
            return True
        return True
