"""What the folder of a long run holds: runs as they finish, and how many there will be.

Experiments write it, reports read it.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS_FILE = "settings.json"
PLAN_FILE = "plan.json"
RUNS_FOLDER = "runs"


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is whole or not there."""
    temporary = path.with_name(f".{path.name[-60:]}.{os.getpid()}.part")
    try:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass(frozen=True)
class RunPlan:
    """What a process set out to play in a folder."""

    started: float  # seconds since 1970
    costs: dict[str, float]  # expected work by the file name of a run, also of those that were there already
    host: str
    process: int

    @classmethod
    def of_this_process(cls, started: float, costs: dict[str, float]) -> RunPlan:
        """What this process sets out to play."""
        return cls(started, costs, socket.gethostname(), os.getpid())

    def write(self, folder: Path) -> None:
        """Keep it in the folder of the run."""
        write_json(folder / PLAN_FILE, vars(self))

    @classmethod
    def read(cls, folder: Path) -> RunPlan | None:
        """What is kept there; None if there is none that can be read."""
        try:
            kept = json.loads((folder / PLAN_FILE).read_text(encoding="utf-8"))
            return cls(float(kept["started"]), dict(kept["costs"]), str(kept["host"]), int(kept["process"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def goes_on(self) -> bool | None:
        """Whether the process still runs; None where only another machine knows."""
        if self.host != socket.gethostname():
            return None
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except OSError:  # it is somebody else's
            return True
        return True
