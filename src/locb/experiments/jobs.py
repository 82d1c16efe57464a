"""Long work in pieces: jobs whose outcomes are kept on disk as they come, so that nothing is played twice."""

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

FORMAT = 1


@dataclass(frozen=True)
class Job:
    """One call of a module-level function; its settings and its outcome are such that JSON can hold them."""

    play: Callable[..., dict[str, Any]]
    world: dict[str, Any]
    seed: int
    settings: dict[str, Any]
    cost: float  # expected work, in any unit that all jobs share
    data: str = "synthetic"

    def run(self) -> dict[str, Any]:
        """Play from scratch; the same job gives the same outcome anywhere."""
        return self.play(world=self.world, seed=self.seed, **self.settings)

    @property
    def described(self) -> dict[str, Any]:
        """All that the outcome depends on."""
        asked = {"play": self.play.__name__, "data": self.data, "world": self.world, "seed": self.seed}
        described: dict[str, Any] = json.loads(json.dumps(asked | {"settings": self.settings}))
        return described

    @property
    def name(self) -> str:
        """A file name that says what it is."""
        nested = [value for value in self.settings.values() if isinstance(value, dict)]
        flat = {name: value for part in [self.settings, *nested] for name, value in part.items()}
        told = "-".join(f"{name}={value}" for name, value in flat.items() if isinstance(value, str | int | float))
        mark = hashlib.sha256(json.dumps(self.described, sort_keys=True).encode()).hexdigest()[:8]
        readable = re.sub(r"[^\w.=-]+", "_", f"{self.data}-{self.play.__name__}-{told}-seed={self.seed}")
        return f"{readable}-{mark}.json"


class Ledger:
    """The finished runs of a folder. ``identity`` says what they have in common; a folder of other runs is refused."""

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.folder = folder
        self.identity: dict[str, Any] = json.loads(json.dumps({"format": FORMAT, "locb": locb.__version__} | identity))
        self.told: dict[str, Any] = {}  # what the folder's page tells, so that later runs can add to it
        self._runs = folder / RUNS_FOLDER
        known = folder / SETTINGS_FILE
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"--output: {folder} is a file, not a folder")
        if known.exists():
            self._check_same(known)
        elif folder.exists() and any(folder.iterdir()):
            raise ValueError(f"--output: {folder} holds other files; name a new folder or an earlier run's")
        self.reused = self.total = 0  # runs that were there already, and all, of the last run_jobs
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            write_json(known, self.identity | {"told": self.told})
        except OSError as error:
            raise ValueError(f"--output: {folder} cannot be written to ({error.strerror})") from error

    def _check_same(self, known: Path) -> None:
        try:
            before = json.loads(known.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"--output: {known} cannot be read ({error}); name a new folder") from error
        self.told = before.get("told", {})
        for name, value in self.identity.items():
            if before.get(name) == value:
                continue
            if isinstance(value, dict) and isinstance(before.get(name), dict):
                # Data sets may be added to a folder, but not change in it.
                changed = [key for key in value if key in before[name] and before[name][key] != value[key]]
                if not changed:
                    self.identity[name] = before[name] | value
                    continue
                name, value, before = changed[0], value[changed[0]], before[name]
            told = f"{name} was {before.get(name)!r} there and is {value!r} now"
            raise ValueError(f"--output: {self.folder} holds another run ({told}); name a new folder, or remove it")

    def remember(self, **told: Any) -> None:
        """Keep what the page of this folder tells."""
        self.told = self.told | told
        write_json(self.folder / SETTINGS_FILE, self.identity | {"told": self.told})

    def get(self, job: Job) -> dict[str, Any] | None:
        """The outcome of a job that was finished before; None if there is none, or it is damaged."""
        try:
            kept = json.loads((self._runs / job.name).read_text(encoding="utf-8"))
            outcome: dict[str, Any] = kept["outcome"]
            return outcome if kept["job"] == job.described else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, job: Job, outcome: dict[str, Any]) -> None:
        """Keep an outcome; a file is whole or not there."""
        write_json(self._runs / job.name, {"job": job.described, "outcome": outcome})


def run_jobs(
    jobs: Sequence[Job],
    ledger: Ledger,
    workers: Workers,
    progress: Callable[[float, float], None] | None = None,
) -> list[dict[str, Any]]:
    """The outcomes of all jobs, in their order: from the ledger where it has them, played where it has not.

    ``progress`` is told (work done, work in all). Each outcome is on disk before the next is waited for.
    """
    outcomes = [ledger.get(job) for job in jobs]
    missing = [place for place, outcome in enumerate(outcomes) if outcome is None]
    missing.sort(key=lambda place: -jobs[place].cost)  # the longest first, so that none is left over at the end
    ledger.reused, ledger.total = len(jobs) - len(missing), len(jobs)
    total = sum(jobs[place].cost for place in missing)
    done = 0.0
    RunPlan.for_this_process(time.time(), {job.name: job.cost for job in jobs}).write(ledger.folder)
    for number, outcome in workers.run(Job.run, [jobs[place] for place in missing]):
        place = missing[number]
        # What JSON makes of it, so that a run that goes on has the same figures as one that never stopped.
        ledger.put(jobs[place], outcome)
        outcomes[place] = ledger.get(jobs[place])
        done += jobs[place].cost
        if progress is not None:
            progress(done, total)
    return [outcome for outcome in outcomes if outcome is not None]
