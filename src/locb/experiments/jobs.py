"""Resumable jobs: each outcome is written to disk when its job ends, so an interrupted experiment can continue."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import locb
from locb.common.validation import ParameterError
from locb.evaluation.run_folder import RUNS_FOLDER, SETTINGS_FILE, RunPlan, code_digest, write_json
from locb.parallel.workers import Workers

FORMAT = 2  # format of the files in a run folder; Ledger rejects folders with another format


@dataclass(frozen=True)
class Job:
    """Deferred call of a module-level function whose settings and result can be written as JSON."""

    function: Callable[..., dict[str, Any]]
    environment: dict[str, Any]  # settings of make_environment
    seed: int  # random seed
    settings: dict[str, Any]  # other keyword arguments of the function
    cost: float  # expected computation time, in arbitrary units that all jobs share
    data: str = "synthetic"  # name of the data set or scenario
    # Further keyword arguments. They are not part of the identity, because the settings describe them.
    objects: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """Call the function and return its result, the outcome of the job. Only the fields determine the outcome."""
        return self.function(environment=self.environment, seed=self.seed, **self.settings, **self.objects)

    @property
    def identity(self) -> dict[str, Any]:
        """Fields of the job that determine its outcome, as JSON values."""
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
        """File name of the outcome: the settings in readable form, and a digest that makes the name unique."""
        nested = [value for value in self.settings.values() if isinstance(value, dict)]
        flat = {name: value for values in [self.settings, *nested] for name, value in values.items()}
        text = "-".join(f"{name}={value}" for name, value in flat.items() if isinstance(value, str | int | float))
        digest = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:8]
        readable = re.sub(r"[^\w.=-]+", "_", f"{self.data}-{self.function.__name__}-{text}-seed={self.seed}")
        return f"{readable}-{digest}.json"


class Ledger:
    """Outcomes of finished jobs, stored in a folder with one JSON file per job.

    Parameters
    ----------
    folder : Path
        Folder of the outcomes. It is created if it does not exist.
    identity : dict
        Settings that all jobs of the folder share.

    Attributes
    ----------
    report_scope : dict
        Targets, data sets and repeats that the report of the folder covers. Later commands extend the scope.
    reused : int
        Number of jobs of the last call of :func:`run_jobs` whose outcomes were already in the folder.
    total : int
        Number of all jobs of the last call of :func:`run_jobs`.

    Raises
    ------
    ValueError
        If the folder has outcomes with other settings or in another format, if it has files but no settings.json, or if
        it cannot be read or written.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.identity: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, "locb": locb.__version__} | identity))
        self.report_scope: dict[str, Any] = {}
        self._runs = folder / RUNS_FOLDER
        settings_file = folder / SETTINGS_FILE
        if folder.exists() and not folder.is_dir():
            raise ParameterError("folder", f": {folder} is a file, not a folder; choose a new folder")
        if settings_file.exists():
            self._check_identity(settings_file)
        elif folder.exists() and any(folder.iterdir()):
            raise ParameterError(
                "folder",
                f": {folder} is not empty and has no {SETTINGS_FILE}; choose a new folder, or the folder of an "
                "earlier run of the same command",
            )
        self.reused = self.total = 0
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            self._write_settings()
        except OSError as error:
            raise ParameterError(
                "folder", f": cannot write to {folder} ({error.strerror}); choose another folder"
            ) from error

    def _write_settings(self) -> None:
        write_json(self.folder / SETTINGS_FILE, self.identity | {"report_scope": self.report_scope})

    def _check_identity(self, settings_file: Path) -> None:
        try:
            before = json.loads(settings_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ParameterError("folder", f": cannot read {settings_file} ({error}); choose a new folder") from error
        if before.get("format") != FORMAT:
            raise ParameterError(
                "folder",
                f": {self.folder} has runs in format {before.get('format')!r}, but this version of locb uses "
                f"format {FORMAT}; choose a new folder, or delete this folder",
            )
        self.report_scope = before.get("report_scope", {})
        for name, value in self.identity.items():
            if before.get(name) == value:
                continue
            label = "digest of the source code" if name == "code" else name
            if isinstance(value, dict) and isinstance(before.get(name), dict):
                # A command may add data sets to the folder, but must not change the digest of an existing data set.
                changed = [key for key in value if key in before[name] and before[name][key] != value[key]]
                if not changed:
                    self.identity[name] = before[name] | value
                    continue
                name, value, before = changed[0], value[changed[0]], before[name]
                label = f"digest of {name}"
            difference = f"{label} was {before.get(name)!r} and is now {value!r}"
            raise ParameterError(
                "folder",
                f": {self.folder} has runs with other settings ({difference}); choose a new folder, or "
                "delete this folder",
            )

    @property
    def finished(self) -> int:
        """Number of jobs whose outcomes are in the folder."""
        return sum(1 for _ in self._runs.glob("[!.]*.json"))

    def delete(self) -> None:
        """Delete the folder with all outcomes."""
        shutil.rmtree(self.folder)

    def extend_scope(self, **scope: Any) -> None:
        """Add targets, data sets or repeats to ``report_scope`` and write it to the folder."""
        self.report_scope = self.report_scope | scope
        self._write_settings()

    def get(self, job: Job) -> dict[str, Any] | None:
        """Return the stored outcome of a job; None if there is no file for the job, or if the file is invalid."""
        try:
            content = json.loads((self._runs / job.name).read_text(encoding="utf-8"))
            outcome: dict[str, Any] = content["outcome"]
            return outcome if content["job"] == job.identity else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, job: Job, outcome: dict[str, Any]) -> None:
        """Write the outcome of a job to its file atomically."""
        write_json(self._runs / job.name, {"job": job.identity, "outcome": outcome})


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that influence the results, and the date."""
    import numba
    import numpy

    return {
        "locb": locb.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def commit() -> str:
    """Return the commit of the source code, with "+ changes" if files differ from it; "unknown" without a repository.

    An installed package has no repository. ``code_digest`` then identifies the code.
    """
    root = Path(locb.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        tracked = git("ls-files", "--error-unmatch", "__init__.py")
        found = git("rev-parse", "HEAD") if tracked else ""
        changed = found and git("status", "--porcelain", "--", ".")
    except OSError:  # git is not installed
        return "unknown"
    return f"{found} + changes" if changed else found or "unknown"


def provenance(*, seeds: Sequence[int] | str, data: Mapping[str, str], command: str = "") -> dict[str, str]:
    """Return the origin of results, which is written to the header of each CSV file.

    Parameters
    ----------
    seeds : sequence of int or str
        Consecutive random seeds of the repeats, or their description.
    data : dict
        Digest of each data set, by name.
    command : str, default ""
        Command line, if it is known.
    """
    found = {"command": command} if command else {}
    text = seeds if isinstance(seeds, str) else f"{seeds[0]} to {seeds[-1]}"
    found |= {"commit": commit(), "digest of the code": code_digest(), "seeds": text}
    digests = ", ".join(f"{name} {digest}" for name, digest in data.items())
    found |= {"digest of the data": digests} if digests else {}
    return found | {"versions": ", ".join(f"{name} {version}" for name, version in versions().items())}


def run_jobs(
    jobs: Sequence[Job],
    ledger: Ledger | None,
    workers: Workers,
    progress: Callable[[float, float], None] | None = None,
) -> list[dict[str, Any]]:
    """Run the jobs whose outcomes are not in the ledger, and return the outcomes of all jobs in the order of ``jobs``.

    Each outcome is written to the ledger as soon as its job ends.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs to run.
    ledger : Ledger or None
        Outcomes of finished jobs. New outcomes are added. None runs all jobs and stores nothing.
    workers : Workers
        Processes that run the jobs.
    progress : callable, optional
        Called after each job with (finished work, total work), in the unit of ``Job.cost``. Stored outcomes are not
        counted.
    """
    outcomes = [None if ledger is None else ledger.get(job) for job in jobs]
    missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
    # The longest jobs start first, so that all workers finish at about the same time.
    missing.sort(key=lambda index: -jobs[index].cost)
    if ledger is not None:
        ledger.reused, ledger.total = len(jobs) - len(missing), len(jobs)
        RunPlan.for_this_process(time.time(), {job.name: job.cost for job in jobs}).write(ledger.folder)
    total = sum(jobs[index].cost for index in missing)
    done = 0.0
    for number, outcome in workers.run(Job.run, [jobs[index] for index in missing]):
        index = missing[number]
        if ledger is not None:
            ledger.put(jobs[index], outcome)
        # Converted to JSON and back, so that resumed and uninterrupted experiments have the same numbers.
        outcomes[index] = json.loads(json.dumps(outcome))
        done += jobs[index].cost
        if progress is not None:
            progress(done, total)
    return [outcome for outcome in outcomes if outcome is not None]
