"""Result types of simulations and comparisons, which experiments fill and reports read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.frames import make_frame, rows_to_columns
from locb.common.presentation import presenter
from locb.common.validation import ParameterError
from locb.evaluation.confidence_intervals import describe_gap

MAX_MAP_USERS = 500  # maximum number of users on an interactive map


@dataclass(frozen=True)
class Run:
    """Result of one policy on one sequence of T rounds.

    Attributes
    ----------
    regret : (T,) floats
        Cumulative regret after each round, summed over the rounds whose regret is known; NaN if that is no round. The
        regret of a round is known if the rewards, or the expected rewards, of all its arms are known.
    rewards : (T,) floats
        Reward of each round; NaN if it was not observed.
    chosen : (T,) ints
        Arm chosen in each round.
    seconds : float
        Time in seconds that the policy took to choose and to learn. The time to generate rounds is not included.
    policy : Policy
        The policy after the last round.
    known_regrets : int or None
        Number of rounds whose regret is known; None if all are.
    names : dict of str to list
        Name of the user and of the chosen arm of each round, under "user" and "arm", if the rounds have names.
    """

    regret: Floats
    rewards: Floats
    chosen: Ints
    seconds: float
    policy: Any
    known_regrets: int | None = None
    names: dict[str, list[Any]] = field(default_factory=dict)

    def summary(self) -> dict[str, str]:
        """Return the main numbers of the run as text, by name."""
        count = len(self.rewards)
        facts = {"rounds": f"{count:,}"}
        if count:
            known = count if self.known_regrets is None else self.known_regrets
            observed = int(np.count_nonzero(~np.isnan(self.rewards)))
            regret = f"{self.regret[-1]:,.1f}" if known else "not known"
            reward = f"{np.nanmean(self.rewards):.4f}" if observed else "not observed"
            facts["regret"] = regret + (f" (known in {known:,} rounds)" if 0 < known < count else "")
            facts["reward per round"] = reward + (f" (observed in {observed:,} rounds)" if 0 < observed < count else "")
            facts["time"] = f"{self.seconds:.3g} s, {1e6 * self.seconds / count:.3g} µs per round"
        return facts

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self.summary().items())
        return f"Run({type(self.policy).__name__}: {facts})"

    def _repr_html_(self) -> str:
        return str(presenter().html_of_run(self))

    def plot_regret(self) -> Any:
        """Return an Altair chart of the cumulative regret over the rounds.

        The sum of such charts, ``run.plot_regret() + other.plot_regret()``, compares runs of several policies.
        """
        return presenter().plot_regret(self)

    def to_frame(self, library: str = "polars") -> Any:
        """Return a data frame with one row per round: round, names, chosen arm, reward and cumulative regret."""
        rounds = np.arange(1, len(self.rewards) + 1)
        columns = {"chosen": self.chosen, "reward": self.rewards, "regret": self.regret}
        return make_frame({"round": rounds, **self.names, **columns}, library)


@dataclass(frozen=True)
class ClusterHistory:
    """Clusters of a policy after each of the rounds in ``Comparison.cluster_checkpoints``."""

    count: Ints  # (repeats, checkpoints) number of distinct clusters
    f1: Floats  # (repeats, checkpoints) F1 score against the true clusters; NaN where there are no clusters
    clusters: list[list[Ints]]  # first repeat: distinct clusters per checkpoint, reduced to the users of sample_users

    def __repr__(self) -> str:
        return f"ClusterHistory({self.count.shape[0]} repeats, {self.count.shape[1]} checkpoints)"


@dataclass(frozen=True)
class PolicyResult:
    """Result of one policy with one set of parameters in one environment of a comparison, over all repeats.

    Attributes
    ----------
    policy : str
        Name of the policy.
    alpha : float or None
        Weight of the exploration bonus; None for a policy without this parameter.
    regret : (repeats, points) floats
        Cumulative regret of each repeat after each of the rounds in ``Comparison.checkpoints``.
    reward : (repeats,) floats
        Mean reward per round.
    n_clusters : (repeats,) ints
        Number of distinct clusters after the last round.
    f1 : (repeats,) floats
        F1 score of these clusters against the true clusters; NaN for a policy without clusters.
    microseconds_per_round : (repeats,) floats
        Computation time per round.
    cumulative_reward : (repeats, points) floats or None
        Sum of the rewards at the checkpoints; None if not recorded.
    cluster_history : ClusterHistory or None
        Clusters during the run; None for a policy without clusters.
    parameters : dict
        Alpha, and the parameters of the grid, by name.
    environment : str
        Name of the environment.
    """

    policy: str
    alpha: float | None
    regret: Floats
    reward: Floats
    n_clusters: Ints
    f1: Floats
    microseconds_per_round: Floats
    cumulative_reward: Floats | None = None
    cluster_history: ClusterHistory | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    environment: str = "synthetic"

    def __post_init__(self) -> None:
        if not self.parameters and self.alpha is not None:
            object.__setattr__(self, "parameters", {"alpha": self.alpha})

    def __repr__(self) -> str:
        repeats = f"{len(self.reward)} repeat{'s' if len(self.reward) > 1 else ''}"
        name = self.label(self.parameters)
        return f"PolicyResult({name}, {self.environment}: regret {self.final_regret.mean():,.1f}, {repeats})"

    @property
    def final_regret(self) -> Floats:
        """Cumulative regret after the last round, (repeats,)."""
        return self.regret[:, -1]

    def label(self, names: Collection[str]) -> str:
        """Return the name of the policy, followed by the values of the parameters ``names`` that it has."""
        shown = [(name, value) for name, value in self.parameters.items() if name in names]
        texts = [f"{'α' if name == 'alpha' else name} = {format_value(value)}" for name, value in shown]
        return f"{self.policy} ({', '.join(texts)})" if texts else self.policy


@dataclass(frozen=True)
class UserMap:
    """Users with their true clusters and the clusters that a policy found, in the first repeat of a comparison."""

    policy: str
    theta: Floats  # (n, d) true preferences of each user
    truth: list[list[int]]  # users of each true cluster
    found: list[list[int]]  # users of each found cluster

    def __repr__(self) -> str:
        return f"UserMap({self.policy}: {len(self.theta)} users, {len(self.truth)} true and {len(self.found)} found)"


def format_value(value: Any) -> str:
    """Return the value of a parameter as short text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def sample_users(count: int) -> Ints:
    """Return the users to show on an interactive map, in ascending order.

    Of more than ``MAX_MAP_USERS`` users, a random sample is shown. The sample depends on ``count`` only.
    """
    if count <= MAX_MAP_USERS:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, MAX_MAP_USERS, replace=False))


@dataclass(frozen=True)
class Comparison:
    """Result of several policies on the same environments and the same rounds.

    Attributes
    ----------
    settings : dict
        Arguments of :func:`locb.compare`.
    checkpoints : (points,) ints
        Rounds after which regret and reward are recorded.
    results : list of PolicyResult
        One element per environment, policy and set of parameters.
    user_map : UserMap or None
        Users and clusters of the first policy that finds clusters; None if no policy does.
    seeds : list of int
        Random seed of each repeat.
    versions : dict
        Versions of the packages that influence the results, by package name.
    notes : list of str
        Limitations of the data that a reader of the results must know.
    cluster_checkpoints : (checkpoints,) ints
        Rounds after which clusters are recorded; empty with several environments.
    parts : dict
        The comparison in each environment, by name of the environment; empty with a single environment.
    """

    settings: dict[str, Any]
    checkpoints: Ints
    results: list[PolicyResult]
    user_map: UserMap | None
    seeds: list[int]
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    cluster_checkpoints: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    parts: dict[str, Comparison] = field(default_factory=dict)

    def __repr__(self) -> str:
        environments = list(dict.fromkeys(result.environment for result in self.results))
        where = environments[0] if len(environments) == 1 else f"{len(environments)} environments"
        policies = len({result.policy for result in self.results})
        sets = f"{policies} {'policies' if policies > 1 else 'policy'}, {len(self.results)} results"
        best = "" if self.parts else f"; lowest regret: {self.best().label(self.varied_parameters)}"
        return f"Comparison({where}: {sets}, {len(self.seeds)} × {self.checkpoints[-1]:,} rounds{best})"

    def __str__(self) -> str:
        return str(presenter().text_of_comparison(self))

    def _repr_html_(self) -> str:
        return str(presenter().html_of_comparison(self))

    def plot(self) -> Any:
        """Return an Altair chart of the cumulative regret of each policy over the rounds, with its best parameters."""
        return presenter().plot_comparison(self)

    @property
    def varied_parameters(self) -> list[str]:
        """Parameters of which a policy has several values in the results."""
        values: dict[tuple[str, str], set[str]] = {}
        for result in self.results:
            for name, value in result.parameters.items():
                values.setdefault((name, result.policy), set()).add(repr(value))
        return list(dict.fromkeys(name for (name, _), found in values.items() if len(found) > 1))

    def best(self, policy: str | None = None, *, environment: str | None = None) -> PolicyResult:
        """Return the result with the lowest mean regret.

        Parameters
        ----------
        policy : str, optional
            Name of a policy, of which the best parameters are returned. By default, all policies.
        environment : str, optional
            Name of an environment. Required if there are several, because their regrets cannot be compared.
        """
        if environment is None and self.parts:
            raise ParameterError("environment", f" is required: choose from {', '.join(self.parts)}")
        results = self.results
        for name, wanted in (("environment", environment), ("policy", policy)):
            known = list(dict.fromkeys(getattr(result, name) for result in results))
            if wanted is not None and wanted not in known:
                raise ParameterError(name, f" must be one of {', '.join(known)}, not {wanted!r}")
            results = [result for result in results if wanted in (None, getattr(result, name))]
        return min(results, key=lambda result: float(result.final_regret.mean()))

    def to_frame(self, library: str = "polars", *, curves: bool = False) -> Any:
        """Return the results as a data frame with one row per environment, policy, parameters and repeat.

        Parameters
        ----------
        library : {"polars", "pandas"}, default "polars"
            Library of the data frame, which must be installed.
        curves : bool, default False
            Whether to return one row per checkpoint instead, with the columns ``round`` and ``regret`` (cumulative).
        """
        rows = []
        for result in self.results:
            first = {"environment": result.environment, "policy": result.policy, **result.parameters}
            for repeat, seed in enumerate(self.seeds[: len(result.reward)]):
                key = first | {"repeat": repeat, "seed": seed}
                if curves:
                    points = zip(self.checkpoints.tolist(), result.regret[repeat].tolist(), strict=True)
                    rows += [key | {"round": t, "regret": regret} for t, regret in points]
                    continue
                names = {"regret": "final_regret", "reward": "reward", "clusters": "n_clusters", "f1": "f1"}
                names["microseconds_per_round"] = "microseconds_per_round"
                rows.append(key | {name: getattr(result, field)[repeat].item() for name, field in names.items()})
        parameters = dict.fromkeys(name for result in self.results for name in result.parameters)
        return make_frame(rows_to_columns(rows, ["environment", "policy", *parameters]), library)

    def to_pandas(self, *, curves: bool = False) -> Any:
        """Return ``to_frame`` as a pandas data frame."""
        return self.to_frame("pandas", curves=curves)

    def best_per_policy(self) -> list[PolicyResult]:
        """Return, for each environment and policy, the result with the lowest mean regret over its parameters."""
        best: dict[tuple[str, str], PolicyResult] = {}
        for result in self.results:
            key = result.environment, result.policy
            known = best.get(key)
            if known is None or result.final_regret.mean() < known.final_regret.mean():
                best[key] = result
        return list(best.values())

    def verdict(self) -> str:
        """Return a sentence that compares the two policies with the lowest regret, one for each environment.

        If there is only one policy, it compares the two sets of parameters with the lowest regret. The difference of
        the regrets and its 95% interval are paired: they are computed from the difference in each repeat. The margin is
        half of the width of the interval.
        """
        if self.parts:
            return " ".join(f"{name}: {part.verdict()}" for name, part in self.parts.items())
        single = len({result.policy for result in self.results}) == 1
        compared = self.results if single else self.best_per_policy()
        ranked = sorted(compared, key=lambda result: float(result.final_regret.mean()))
        names = [result.label(self.varied_parameters if single else ()) for result in ranked[:2]]
        if len(ranked) == 1:
            return f"Only {names[0]} was run, so there is no comparison."
        first, second = ranked[:2]
        gap = second.final_regret - first.final_regret
        if not gap.any():
            return f"{names[0]} and {names[1]} have the same regret, {first.final_regret.mean():,.0f}."
        return f"{names[0]} has the lowest regret, {describe_gap(gap, f'below {names[1]}')}"


def combine_environments(parts: dict[str, Comparison]) -> Comparison:
    """Return one comparison with the results of several environments, by name of the environment."""
    first = next(iter(parts.values()))
    environments = {name: part.settings["environment"] for name, part in parts.items()}
    longest = max(parts.values(), key=lambda part: len(part.seeds))  # an environment of fixed rounds has one repeat
    return replace(
        first,
        settings=longest.settings | {"environment": environments},
        seeds=longest.seeds,
        results=[result for part in parts.values() for result in part.results],
        user_map=None,
        notes=[f"{name}: {note}" for name, part in parts.items() for note in part.notes],
        cluster_checkpoints=np.empty(0, np.int64),
        parts=parts,
    )
