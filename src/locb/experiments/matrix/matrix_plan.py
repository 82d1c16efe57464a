"""Plan and execution of a scenario matrix: every policy with every setting of its grid in every scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import locb
from locb.common.validation import ParameterError
from locb.evaluation.findings import Findings
from locb.evaluation.run_folder import code_digest
from locb.experiments import paper_values as paper
from locb.experiments.comparison.comparison_plan import check_settings
from locb.experiments.comparison.comparison_run import Task
from locb.experiments.comparison.environment_sources import settings_source
from locb.experiments.custom_policy import policy_source
from locb.experiments.environment_factory import make_environment
from locb.experiments.jobs import Job, Ledger, provenance
from locb.experiments.matrix.grids import ALPHAS, MAX_EXTENSIONS, Grid, extend, find_edges, initial_grid, settings
from locb.experiments.matrix.runs import run_scenario
from locb.experiments.matrix.scenario_result import ScenarioResult, SettingResult
from locb.experiments.matrix.summary import summarize
from locb.experiments.matrix.sweep import FINALISTS, Pair, Setting, Sweep
from locb.experiments.reproduce.data_set import open_data_set
from locb.experiments.scenarios import DEVELOPMENT, EVALUATION, Scenario, dataset_scenarios, select_scenarios
from locb.parallel.workers import Workers
from locb.policies import POLICIES, make_policy, policy_spec

MIN_ROUNDS = 100
EXTENSION_SHARE = 0.5  # expected work of a further pass with wider grids, relative to the pass before
Grids = dict[Pair, Grid]


@dataclass(frozen=True)
class MatrixPlan:
    """Plan of a scenario matrix with validated settings. See :func:`plan_matrix` for the settings."""

    scenarios: list[Scenario]
    policies: list[str]
    custom: dict[str, str]
    alphas: list[float]
    rounds: int | None
    repeats: int
    tuning_repeats: int
    seed: int
    sizes: dict[str, tuple[int, int, int]]  # scenario → numbers of users, features and arms
    truth_gammas: dict[str, float] = field(default_factory=dict)  # scenario of real data → gamma of the true clusters
    data: dict[str, str] = field(default_factory=dict)  # scenario of real data → digest of the data
    command: str = ""

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the planned policies that are baselines. Every policy is compared with the best of them.

        Baselines are the built-in policies that the registry marks as such. If none of them is planned, all planned
        policies are baselines.
        """
        known = tuple(name for name in self.policies if policy_spec(name).is_baseline and name not in self.custom)
        return known or tuple(self.policies)

    def prepare(self) -> None:
        """Compile the kernels of the planned built-in policies, or load them from the cache."""
        for name in self.policies:
            if name not in self.custom:
                make_policy(name, n_users=2, dim=2).prepare()

    def open_folder(self, folder: Path) -> Ledger:
        """Return the ledger of a folder, which holds the outcomes of finished runs.

        Raises
        ------
        ValueError
            If the folder has runs of another version of the source code or with other data.
        """
        return Ledger(folder, {"kind": "scenarios", "code": code_digest(), "data": self.data})

    def run(self, ledger: Ledger, workers: Workers, progress: Callable[[float, float], None] | None = None) -> Findings:
        """Run the jobs whose outcomes are not in the ledger, and return the tables, the heat map and the claims.

        Parameters
        ----------
        ledger : Ledger
            Outcomes of finished runs. New outcomes are added.
        workers : Workers
            Processes that run the jobs.
        progress : callable, optional
            Called with (finished work, total work) after each run, in the unit of ``Job.cost``.
        """
        last = self.seed + self.repeats - 1
        seeds = f"first random seed of each scenario (scenarios.csv), plus {self.seed} to {last}"
        origin = provenance(seeds=seeds, data=self.data, command=self.command)  # before the code can change
        grids: Grids = {
            (scenario.name, name): initial_grid(name, self.alphas)
            for scenario in self.scenarios
            for name in self.policies
        }
        scenarios = {scenario.name: scenario for scenario in self.scenarios}

        def make_job(pair: Pair, played: list[Setting], repeat: int) -> Job:
            return self._job(scenarios[pair[0]], pair[1], played, self.seed + repeat)

        sweep = Sweep(make_job, ledger, workers, progress)
        swept = range(self.tuning_repeats or self.repeats)
        measured = range(len(swept), self.repeats)
        measured_work = sum(
            make_job(pair, settings(grid)[:FINALISTS], repeat).cost
            for pair, grid in grids.items()
            for repeat in measured
        )
        later_work = 0.0
        for extensions in range(MAX_EXTENSIONS + 1):
            wanted = {pair: settings(grid) for pair, grid in grids.items()}
            work = sweep.play(wanted, swept, later_work + measured_work)
            results = [self._result(scenario, grids, sweep, wanted) for scenario in self.scenarios]
            edges = {(result.scenario.name, name): found for result in results for name, found in result.edges.items()}
            if extensions == MAX_EXTENSIONS or not edges:
                break
            grids |= {pair: extend(grids[pair], found) for pair, found in edges.items()}
            later_work = EXTENSION_SHARE * work if extensions + 1 < MAX_EXTENSIONS else 0.0
        if measured:
            chosen = {pair: sweep.finalists(pair, settings(grid)) for pair, grid in grids.items()}
            sweep.play(chosen, measured)
            results = [self._result(scenario, grids, sweep, chosen) for scenario in self.scenarios]
        ledger.reused = sweep.reused
        return replace(summarize(results, self.policies, self._settings()), provenance=origin)

    def _result(
        self, scenario: Scenario, grids: Grids, sweep: Sweep, chosen: Mapping[Pair, list[Setting]]
    ) -> ScenarioResult:
        """Return the result of a scenario, in which each policy may use its settings in ``chosen``."""
        played: list[SettingResult] = []
        dropped: list[SettingResult] = []
        for name in self.policies:
            pair = scenario.name, name
            for one in settings(grids[pair]):
                (played if one in chosen[pair] else dropped).append(sweep.result(pair, one))
        result = ScenarioResult(scenario, played, self.baselines, tuning=self.tuning_repeats, dropped=dropped)
        edges = {
            name: find_edges(grids[scenario.name, name], best.parameters)
            for name, best in result.best_per_policy.items()
        }
        return replace(result, edges={name: edge for name, edge in edges.items() if edge})

    def _settings(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "scenarios": [scenario.name for scenario in self.scenarios],
            "policies": self.policies,
            "baselines": list(self.baselines),
            "grids": {name: initial_grid(name, self.alphas) for name in self.policies},
            "rounds": self.rounds,
            "repeats": self.repeats,
            "tuning_repeats": self.tuning_repeats,
            "seed": self.seed,
            "locb": locb.__version__,
        }

    def _job(self, scenario: Scenario, policy: str, parameters: list[Setting], repeat: int) -> Job:
        rounds = scenario.rounds if self.rounds is None else self.rounds
        _, dim, n_arms = self.sizes[scenario.name]
        arguments = {
            "policy": policy,
            "rounds": rounds,
            "parameters": parameters,
            "truth_gamma": self.truth_gammas.get(scenario.name, paper.GAMMA),
            "source": policy_source(self.custom[policy]) if policy in self.custom else None,
        }
        round_cost = policy_spec(policy).cost_class.value
        cost = rounds * (0.03 * n_arms * dim + len(parameters) * round_cost * (dim / 6) ** 2)
        return Job(run_scenario, scenario.settings, scenario.seed(repeat), arguments, cost, data=scenario.name)


def plan_matrix(
    policies: Sequence[str],
    scenarios: Sequence[str] = ("all",),
    *,
    alphas: Sequence[float] = ALPHAS,
    rounds: int | None = None,
    repeats: int = 5,
    tuning_repeats: int = 0,
    seed: int = 0,
    data: dict[str, Any] | None = None,
    custom: Mapping[str, str] | None = None,
    command: str = "",
) -> MatrixPlan:
    """Check the settings of a scenario matrix and return its plan.

    Parameters
    ----------
    policies : sequence of str
        Names in ``locb.POLICIES``. Alpha and the threshold of a policy are tuned, see ``grids.THRESHOLDS``.
    scenarios : sequence of str, default ("all",)
        Names of scenarios; "development" and "evaluation" for all scenarios of that role, "all" for all scenarios.
    alphas : sequence of float, default (0.1, 0.3, 1.0)
        Initial values of alpha, the weight of the exploration bonus. A grid is extended if its best value is at an end.
    rounds : int, optional
        Rounds per run, at least 100. By default each scenario has its own number.
    repeats : int, default 5
        Number of runs per scenario, policy and setting, each with its own random seed.
    tuning_repeats : int, default 0
        Number of repeats at the start that run all settings. They only select the three best settings of each policy,
        which the other repeats run and measure. 0: all repeats run and measure all settings.
    seed : int, default 0
        Number of random seeds of each scenario to skip.
    data : dict, optional
        Settings of :func:`~locb.experiments.environment_factory.make_environment` for a data set. Its scenarios are
        added to ``scenarios``.
    custom : dict, optional
        Files of custom policies: name → ``file.py:Class``.
    command : str, default ""
        Command line to show in the report.
    """
    check_settings(policies, alphas, MIN_ROUNDS if rounds is None else rounds, repeats)
    if rounds is not None and rounds < MIN_ROUNDS:
        raise ParameterError("rounds", f" must be at least {MIN_ROUNDS}, not {rounds}")
    selected = select_scenarios(scenarios)
    _check_repeats(selected, seed, repeats, tuning_repeats)
    truth_gammas, digests = _add_data(selected, data)
    return MatrixPlan(
        scenarios=selected,
        policies=list(policies),
        custom=dict(custom or {}),
        alphas=[float(alpha) for alpha in alphas],
        rounds=rounds,
        repeats=repeats,
        tuning_repeats=tuning_repeats,
        seed=seed,
        sizes={scenario.name: _check_scenario(scenario, seed, policies, alphas) for scenario in selected},
        truth_gammas=truth_gammas,
        data=digests,
        command=command,
    )


def _check_repeats(scenarios: Sequence[Scenario], seed: int, repeats: int, tuning_repeats: int) -> None:
    """Raise a ValueError if a scenario has too few random seeds, or if there are too many tuning repeats."""
    if not 0 <= tuning_repeats < repeats:
        limit = f"repeats ({repeats})"
        raise ParameterError("tuning_repeats", f" must be at least 0 and below {limit}, not {tuning_repeats}")
    for scenario in scenarios:
        scenario.seed(seed)
        scenario.seed(seed + repeats - 1)


def _add_data(selected: list[Scenario], data: dict[str, Any] | None) -> tuple[dict[str, float], dict[str, str]]:
    """Add the scenarios of a data set to ``selected``.

    Return two dictionaries by the name of the scenario: the gamma of its true clusters, and the digest of its data.
    """
    gammas: dict[str, float] = {}
    digests: dict[str, str] = {}
    if data is not None:
        role = EVALUATION if any(scenario.role == EVALUATION for scenario in selected) else DEVELOPMENT
        for scenario in dataset_scenarios(data, role):
            data_set = open_data_set(str(data["data"]), scenario.settings, 0)
            gammas[scenario.name] = paper.GAMMA if data_set.scaled is None else data_set.scaled
            digests[scenario.name] = data_set.digest
            selected.append(scenario)
        selected.sort(key=lambda scenario: scenario.role != EVALUATION)
    return gammas, digests


def _check_scenario(
    scenario: Scenario, seed: int, policies: Sequence[str], alphas: Sequence[float]
) -> tuple[int, int, int]:
    """Return the number of users, features per arm and arms per round of a scenario.

    Raise a ValueError if a policy cannot be created for these numbers.
    """
    env = make_environment(scenario.settings, scenario.seed(seed), warn=False)
    for name in policies:
        for parameters in settings(initial_grid(name, alphas)):
            Task(name, POLICIES[name], parameters, settings_source({}), 0, 0, 0.0).make_policy(
                n_users=env.n_users, dim=env.dim
            )
    return env.n_users, env.dim, env.n_arms
