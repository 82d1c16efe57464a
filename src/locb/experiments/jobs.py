"""Resumable jobs: outcomes are written to disk as they finish, so that an interrupted experiment continues."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import locb
from locb.evaluation.run_folder import RUNS_FOLDER, SETTINGS_FILE, RunPlan, write_json
from locb.experiments.parallel import Workers

FORMAT = 2  # of the files in a run folder; folders of another format are refused


@dataclass(frozen=True)
class Job:
    """Call of a module-level function. Settings and outcome are serializable as JSON."""

    function: Callable[..., dict[str, Any]]
    environment: dict[str, Any]
    seed: int
    settings: dict[str, Any]
    cost: float  # expected work, in a unit that all jobs share
    data: str = "synthetic"

    def run(self) -> dict[str, Any]:
        """Run the job. Its outcome depends on its fields only."""
        return self.function(environment=self.environment, seed=self.seed, **self.settings)

    @property
    def identity(self) -> dict[str, Any]:
        """All inputs that determine the outcome."""
        fields: dict[str, Any] = {
            "function": self.function.__name__,
            "data": self.data,
            "environment": self.environment,
        }
        fields |= {"seed": self.seed, "settings": self.settings}
        identity: dict[str, Any] = json.loads(json.dumps(fields))
        return identity

    @property
    def name(self) -> str:
        """Readable, unique file name."""
        nested = [value for value in self.settings.values() if isinstance(value, dict)]
        flat = {name: value for values in [self.settings, *nested] for name, value in values.items()}
        text = "-".join(f"{name}={value}" for name, value in flat.items() if isinstance(value, str | int | float))
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        readable = re.sub(r"[^\w.=-]+", "_", f"{self.data}-{self.function.__name__}-{text}-seed={self.seed}")
        return f"{readable}-{digest}.json"


class Ledger:
    """Finished runs in a folder.

    Parameters
    ----------
    folder : Path
        Folder of the runs. It is created if it does not exist.
    identity : dict
        Settings that all runs of the folder share. A folder with other settings is refused.

    Attributes
    ----------
    report_scope : dict
        Targets, data sets and repeats that the report of the folder covers. Later commands extend it.
    reused, total : int
        Number of runs that were finished before, and of all runs, in the last call of :func:`run_jobs`.

    Raises
    ------
    ValueError
        If the folder has runs with other settings or of another format, other files, or cannot be written.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.identity: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, "locb": locb.__version__} | identity))
        self.report_scope: dict[str, Any] = {}
        self._runs = folder / RUNS_FOLDER
        settings_file = folder / SETTINGS_FILE
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"--output: {folder} is a file, not a folder")
        if settings_file.exists():
            self._check_identity(settings_file)
        elif folder.exists() and any(folder.iterdir()):
            raise ValueError(f"--output: {folder} contains other files; choose a new folder or that of an earlier run")
        self.reused = self.total = 0
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            self._write_settings()
        except OSError as error:
            raise ValueError(f"--output: cannot write to {folder} ({error.strerror})") from error

    def _write_settings(self) -> None:
        write_json(self.folder / SETTINGS_FILE, self.identity | {"report_scope": self.report_scope})

    def _check_identity(self, settings_file: Path) -> None:
        try:
            before = json.loads(settings_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"--output: cannot read {settings_file} ({error}); choose a new folder") from error
        if before.get("format") != FORMAT:
            raise ValueError(
                f"--output: {self.folder} has runs in format {before.get('format')!r}, but this version of locb uses "
                f"format {FORMAT}; choose a new folder, or delete this one"
            )
        self.report_scope = before.get("report_scope", {})
        for name, value in self.identity.items():
            if before.get(name) == value:
                continue
            if isinstance(value, dict) and isinstance(before.get(name), dict):
                # Data sets may be added to a folder, but a data set must not change.
                changed = [key for key in value if key in before[name] and before[name][key] != value[key]]
                if not changed:
                    self.identity[name] = before[name] | value
                    continue
                name, value, before = changed[0], value[changed[0]], before[name]
            difference = f"{name} was {before.get(name)!r} and is now {value!r}"
            raise ValueError(
                f"--output: {self.folder} has runs with other settings ({difference}); choose a new folder, or "
                "delete this one"
            )

    def extend_scope(self, **scope: Any) -> None:
        """Record the targets, data sets and repeats that the report of this folder covers."""
        self.report_scope = self.report_scope | scope
        self._write_settings()

    def get(self, job: Job) -> dict[str, Any] | None:
        """Return the outcome of a finished job; None if there is none or its file is damaged."""
        try:
            content = json.loads((self._runs / job.name).read_text(encoding="utf-8"))
            outcome: dict[str, Any] = content["outcome"]
            return outcome if content["job"] == job.identity else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, job: Job, outcome: dict[str, Any]) -> None:
        """Write the outcome of a job atomically."""
        write_json(self._runs / job.name, {"job": job.identity, "outcome": outcome})


def run_jobs(
    jobs: Sequence[Job],
    ledger: Ledger,
    workers: Workers,
    progress: Callable[[float, float], None] | None = None,
) -> list[dict[str, Any]]:
    """Run the jobs that the ledger does not have, and return the outcomes of all jobs in order.

    Each outcome is written to disk before the next one is awaited. ``progress`` is called with (finished work, total
    work) in the unit of ``Job.cost``.
    """
    outcomes = [ledger.get(job) for job in jobs]
    missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
    missing.sort(
        key=lambda index: -jobs[index].cost
    )  # longest first, so that all workers finish at about the same time
    ledger.reused, ledger.total = len(jobs) - len(missing), len(jobs)
    total = sum(jobs[index].cost for index in missing)
    done = 0.0
    RunPlan.for_this_process(time.time(), {job.name: job.cost for job in jobs}).write(ledger.folder)
    for number, outcome in workers.run(Job.run, [jobs[index] for index in missing]):
        index = missing[number]
        ledger.put(jobs[index], outcome)
        # Read back from JSON, so that resumed and uninterrupted experiments have the same numbers.
        outcomes[index] = ledger.get(jobs[index])
        done += jobs[index].cost
        if progress is not None:
            progress(done, total)
    return [outcome for outcome in outcomes if outcome is not None]
