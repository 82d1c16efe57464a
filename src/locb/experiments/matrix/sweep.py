"""Outcomes of a scenario matrix, which grow with each pass over the scenarios: settings, then measured repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from locb.evaluation.findings import Measurement
from locb.experiments.jobs import Job, Ledger, run_jobs
from locb.experiments.matrix.scenario_result import SettingResult
from locb.parallel.workers import Workers

Pair = tuple[str, str]  # name of a scenario, name of a policy
Setting = dict[str, float]
MakeJob = Callable[[Pair, list[Setting], int], Job]  # of the settings that one repeat plays on the same rounds
FINALISTS = 3  # settings of a policy that play the measured repeats if there are tuning repeats


@dataclass
class Sweep:
    """Outcomes by scenario, policy, setting and repeat.

    Parameters
    ----------
    make_job : callable
        Function of a pair, settings and a repeat that returns the job of these runs.
    ledger : Ledger
        Outcomes of finished jobs. New outcomes are added.
    workers : Workers
        Processes that run the jobs.
    progress : callable or None
        Called with (finished work, total work) after each job, in the unit of ``Job.cost``. The total contains the
        expected work of later passes.
    """

    make_job: MakeJob
    ledger: Ledger
    workers: Workers
    progress: Callable[[float, float], None] | None = None
    reused: int = 0  # jobs of all passes whose outcomes were in the ledger before the sweep
    _known: int = 0
    _finished_work: float = 0.0
    _jobs: list[tuple[Pair, list[Setting], int, Job]] = field(default_factory=list)
    _outcomes: dict[Pair, dict[str, dict[int, dict[str, Any]]]] = field(default_factory=dict)

    def play(self, wanted: Mapping[Pair, Iterable[Setting]], repeats: range, later_work: float = 0.0) -> float:
        """Run settings in several repeats, except those of earlier passes, and return the work of the pass.

        Parameters
        ----------
        wanted : dict
            Settings by pair.
        repeats : range
            Repeats of these settings.
        later_work : float, default 0
            Expected work of later passes.
        """
        added = []
        for pair, listed in wanted.items():
            for repeat in repeats:
                known = self._outcomes.get(pair, {})
                new = [one for one in listed if repeat not in known.get(_key(one), {})]
                if new:
                    added.append((pair, new, repeat, self.make_job(pair, new, repeat)))
        self._jobs += added
        # Outcomes of earlier passes are read from the ledger again, so that its plan of runs has all jobs.
        found = run_jobs([job for *_, job in self._jobs], self.ledger, self.workers, self._reporter(later_work))
        for (pair, played, repeat, _), outcome in zip(self._jobs, found, strict=True):
            for one, run in zip(played, outcome["runs"], strict=True):
                self._outcomes.setdefault(pair, {}).setdefault(_key(one), {})[repeat] = run
        self.reused += self.ledger.reused - self._known
        self._known = self.ledger.total
        work = sum(job.cost for *_, job in added)
        self._finished_work += work
        return work

    def result(self, pair: Pair, setting: Setting) -> SettingResult:
        """Return the result of a setting over its repeats."""
        by_repeat = self._outcomes[pair][_key(setting)]
        outcomes = [by_repeat[repeat] for repeat in sorted(by_repeat)]
        scores = [outcome["f1"] for outcome in outcomes if outcome["f1"] is not None]
        return SettingResult(
            pair[1],
            setting,
            np.array([outcome["regret"] for outcome in outcomes]),
            Measurement.from_values(scores) if scores else None,
            float(np.mean([outcome["microseconds_per_round"] for outcome in outcomes])),
        )

    def finalists(self, pair: Pair, listed: Iterable[Setting]) -> list[Setting]:
        """Return the settings with the lowest mean regret, at most ``FINALISTS``, in the order of ``listed``."""
        ordered = list(listed)
        best = sorted(ordered, key=lambda one: float(self.result(pair, one).regret.mean()))[:FINALISTS]
        return [one for one in ordered if one in best]

    def _reporter(self, later_work: float) -> Callable[[float, float], None] | None:
        if self.progress is None:
            return None
        report, finished = self.progress, self._finished_work
        return lambda done, total: report(finished + done, finished + total + later_work)


def _key(setting: Setting) -> str:
    return repr(sorted(setting.items()))
