"""Choice of a policy and its parameters on a log: ``tune``."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.common.validation import ParameterError, check_int
from locb.evaluation.confidence_intervals import student_quantile
from locb.logs.bootstrap import Interval, mean_limits, random_stream
from locb.logs.estimators import FixedEstimators
from locb.logs.evaluate import MIN_EFFECTIVE, check_choices, explain_no_propensities, usable_decisions
from locb.logs.log import Log
from locb.logs.replay import Terms, replay_accepted
from locb.logs.results import PolicyValue, Tuning, TuningCandidate, decide
from locb.logs.row_arrays import blocks, number_distinct, take
from locb.logs.saved_replays import SavedReplays
from locb.logs.targets import LOGGED, LearningTarget, make_target
from locb.policies import POLICIES

DEFAULT_POLICIES = ("eloc", "locb", "linucb-one", "linucb-ind")
DEFAULT_GRID: dict[str, tuple[Any, ...]] = {"alpha": (0.1, 0.3, 1.0), "beta": (0.5, 1.0, 2.0), "gamma": (0.2, 0.5)}
MAX_CANDIDATES = 200
MAX_GROUPS = 500  # groups of users in a fold for the bootstrap; more users are merged at random


@dataclass
class _Entry:
    """Candidate during a search."""

    name: str
    policy: str
    parameters: dict[str, Any]


class _Sums(NamedTuple):
    """Sums of groups of users: (folds, groups, candidates + 1). The last candidate is the policy of the log."""

    rewards: Floats
    counts: Floats

    def values(self, weights: Floats) -> Floats:
        """Return mean rewards per decision (folds, candidates + 1), with group g of fold f ``weights[f, g]`` times."""
        rewards = (weights[..., None] * self.rewards).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            values: Floats = rewards / (weights[..., None] * self.counts).sum(axis=1)
        return values


class _Choice(NamedTuple):
    """Result of choosing a candidate for each fold with the other folds."""

    chosen: Ints  # (folds,)
    selecting: float  # mean estimate with which the candidates were chosen
    held_out: float  # mean value on the held-out folds
    difference: float  # ``held_out`` minus the value of the log


def tune(
    log: Log,
    policies: Sequence[str] = DEFAULT_POLICIES,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 5,
    replays: int = 3,
    replicates: int = 200,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Tuning:
    """Choose a policy and its parameters on a log, and estimate what the choice earns without the winner's curse.

    The best of many estimates is too high on average, because chance contributes to being the best: the *winner's
    curse*. Users are split into folds. Each candidate is evaluated on each fold alone, as by :func:`locb.evaluate`. For
    each fold, the candidate with the highest mean value on the other folds is chosen, and evaluated on the fold. The
    mean of these held-out values is an unbiased estimate of what the choice earns.

    Parameters
    ----------
    log : Log
        Decisions with rewards and propensities.
    policies : sequence of str
        Learning policies, such as "eloc", and fixed policies: "first", "random", "arm:ID".
    grid : mapping of str to sequence, optional
        Values of parameters. Each policy uses the parameters that it has, in all combinations. By default, alpha is
        0.1, 0.3 or 1; beta is 0.5, 1 or 2; gamma is 0.2 or 0.5.
    folds : int, default 5
        Number of folds of users, at least 3.
    replays : int, default 3
        Number of replays of a learning policy per fold, which differ in the decisions that are rejected.
    replicates : int, default 200
        Number of bootstrap replicates for the intervals, at least 20. The choice is repeated in each replicate.
    seed : int, default 0
        Seed of folds, replays, replicates and policies.
    folder : path, optional
        Folder to which each replay is written when it ends. A later call with the same folder reuses finished replays,
        for example after an interruption. You can delete the folder at any time.
    progress : callable, optional
        Called with the finished share of the search.

    Returns
    -------
    Tuning
        Candidates with their estimates, the winner, and the unbiased estimate.

    Raises
    ------
    ValueError
        If the log has no rewards, propensities or users, or an argument is invalid.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(2, size=600)
    >>> rows = {"user": rng.integers(40, size=600), "arm": arm, "reward": 1.0 * (rng.random(600) < 0.2 + 0.4 * arm)}
    >>> tuning = tune(Log.read(rows, propensity="uniform"), ["arm:0", "arm:1"])
    >>> tuning.winner.name, tuning.verdict
    ('arm:1', 'better')
    """
    folds, replays = check_int("folds", folds, 3), check_int("replays", replays, 1)
    replicates = check_int("replicates", replicates, 20)
    seed = check_int("seed", seed, 0)
    notes: list[str] = []
    used = usable_decisions(log, notes)
    if not used.has_propensities:
        raise ParameterError("propensity", f" must be known to tune a policy: {explain_no_propensities(used)}")
    if not used.has_users:
        raise ParameterError(
            "user", " must name the column of users: the log has no user ids, and a fold is a set of users"
        )
    if (count := number_distinct(used.users)[1]) < folds:
        raise ParameterError("folds", f" must be at most {count}, the number of users in the log, not {folds}")
    entries = make_candidates(policies, DEFAULT_GRID if grid is None else grid)
    fold_of, group_of = assign_folds(used.users, folds, seed)
    targets = [make_target(entry.name, entry.policy, used, True, entry.parameters) for entry in entries]
    saved = None if folder is None else SavedReplays(folder, used)
    sums = _Sums(*np.zeros((2, folds, int(group_of.max()) + 1, len(entries) + 1)))
    for number, target in enumerate(targets):
        for fold in range(folds):
            rows = np.flatnonzero(fold_of == fold)
            for taken, terms in _fold_terms(used, target, entries[number], rows, replays, seed, saved):
                np.add.at(sums.rewards[fold, :, number], group_of[taken], terms.numerator)
                np.add.at(sums.counts[fold, :, number], group_of[taken], terms.denominator)
            if progress is not None:
                progress((number + (fold + 1) / folds) / len(entries))
    for span in blocks(len(used)):
        np.add.at(sums.rewards[..., -1], (fold_of[span], group_of[span]), used.rewards[span])
        np.add.at(sums.counts[..., -1], (fold_of[span], group_of[span]), 1.0)
    settings = {"policies": list(policies), "grid": dict(grid or DEFAULT_GRID), "folds": folds}
    settings |= {"replays": replays, "replicates": replicates, "seed": seed}
    return _summarize(entries, sums, used, notes, settings)


def _fold_terms(
    log: Log, target: Any, entry: _Entry, rows: Ints, replays: int, seed: int, saved: SavedReplays | None
) -> Iterator[tuple[Ints, Terms]]:
    """Return the decisions of one fold from which a candidate is evaluated, with their terms."""
    if isinstance(target, LearningTarget):
        for repeat in range(replays):
            taken = replay_accepted(log, target, rows, seed + repeat, saved)
            yield taken, Terms(log.rewards[taken] / replays, np.broadcast_to(1.0 / replays, len(taken)))
    else:
        part = log.select(rows)
        fixed = make_target(entry.name, entry.policy, part, True, {})
        yield rows, FixedEstimators(part, 100, seed).terms("dr", fixed)  # type: ignore[arg-type]  # it does not learn


def make_candidates(policies: Sequence[str], grid: Mapping[str, Sequence[Any]]) -> list[_Entry]:
    """Return each policy with each combination of the values of its parameters."""
    if isinstance(policies, str) or not policies:
        raise ParameterError("policies", f" must be a list of at least one policy, not {policies!r}")
    accepted = {
        name: set(inspect.signature(POLICIES[name]).parameters) if name in POLICIES else set() for name in policies
    }
    for parameter, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
            raise ParameterError("grid", f": {parameter} must have a list of at least one value, not {values!r}")
        if grid is not DEFAULT_GRID and not any(parameter in names for names in accepted.values()):
            known = {name for names in accepted.values() for name in names}
            allowed = ", ".join(sorted(known.difference(("n_users", "dim", "seed"))))
            advice = f"choose from {allowed}" if allowed else "add a learning policy"
            found = f"none of the policies ({', '.join(policies)}) has the parameter {parameter!r}"
            raise ParameterError("grid", f": {found}; {advice}")
    entries = []
    for policy in dict.fromkeys(policies):
        own = {parameter: values for parameter, values in grid.items() if parameter in accepted[policy]}
        for combination in product(*own.values()):
            parameters = dict(zip(own, combination, strict=True))
            label = " ".join([policy, *(f"{name}={value}" for name, value in parameters.items())])
            entries.append(_Entry(label, policy, parameters))
    if len(entries) > MAX_CANDIDATES:
        raise ParameterError("grid", f" must give at most {MAX_CANDIDATES} candidates, not {len(entries)}")
    return entries


def assign_folds(users: Ints | IndexArray, folds: int, seed: int) -> tuple[IndexArray, IndexArray]:
    """Return the fold of each decision, and a group of users within the fold. A user is in one group."""
    indices, count = number_distinct(users)
    order = random_stream(seed, "tuning folds").permutation(count).astype(np.int32)
    return take(order % folds, indices), take(order // folds % MAX_GROUPS, indices)


def choose(values: Floats) -> _Choice:
    """Choose, for each fold, the candidate with the highest mean value on the other folds.

    ``values`` (folds, candidates + 1) has the value of the policy of the log in the last column.
    """
    folds = len(values)
    scores = np.where(np.isfinite(values[:, :-1]).all(axis=0), values[:, :-1], -np.inf)
    others = (scores.sum(axis=0) - scores) / (folds - 1)
    if not np.isfinite(scores).any():
        return _Choice(np.zeros(folds, np.int64), math.nan, math.nan, math.nan)
    others[:, ~np.isfinite(scores[0])] = -np.inf
    chosen, rows = others.argmax(axis=1), np.arange(folds)
    held_out = values[rows, chosen]
    difference = float((held_out - values[:, -1]).mean())
    return _Choice(chosen, float(others[rows, chosen].mean()), float(held_out.mean()), difference)


def _margins(sums: _Sums, values: Floats, found: _Choice, replicates: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return the half widths of 95% intervals: of the choice (value, difference), of candidates, of their differences.

    A half width is the larger one of those of two intervals. A bootstrap draws users within folds and repeats the
    choice, so it contains the variation of the choice. Student's t interval of the folds contains the variation of what
    policies learn.
    """
    folds, groups, _ = sums.rewards.shape
    sizes = (sums.counts[..., -1] > 0).sum(axis=1)
    rng = random_stream(seed, "tuning replicates")
    means, choices = [], []
    for _ in range(replicates):
        weights = np.zeros((folds, groups))
        for fold, size in enumerate(sizes.tolist()):
            weights[fold, :size] = np.bincount(rng.integers(size, size=size), minlength=size)
        again = sums.values(weights)
        means.append(again.mean(axis=0))
        choices.append(choose(again)[2:])
    held_out = values[np.arange(folds), found.chosen]
    drawn = np.array(means)
    of_choice = _half_width(np.array(choices), np.stack([held_out, held_out - values[:, -1]], axis=1), sizes)
    of_candidates = _half_width(drawn, values, sizes)
    return of_choice, of_candidates, _half_width(drawn - drawn[:, -1:], values - values[:, -1:], sizes)


def _half_width(replicates: Floats, by_fold: Floats, sizes: Ints) -> Floats:
    folds = len(by_fold)
    bootstrap = student_quantile(max(int(sizes.sum()) - folds, 1)) * np.nanstd(replicates, axis=0, ddof=1)
    width: Floats = np.maximum(bootstrap, student_quantile(folds - 1) * by_fold.std(axis=0, ddof=1) / math.sqrt(folds))
    return width


def _summarize(entries: list[_Entry], sums: _Sums, log: Log, notes: list[str], settings: dict[str, Any]) -> Tuning:
    folds = len(sums.counts)
    values = sums.values((sums.counts[..., -1] > 0).astype(np.float64))
    usable: list[bool] = np.asarray(np.isfinite(values[:, :-1]).all(axis=0)).tolist()
    for entry, known in zip(entries, usable, strict=True):
        if not known:
            notes.append(f"{entry.name} cannot be chosen, because it agrees with no decision of at least one fold")
    if not any(usable):
        raise ValueError(
            "every candidate has a fold in which it agrees with no decision; use fewer folds, or a larger log"
        )
    found = choose(values)
    of_choice, errors, differences = _margins(sums, values, found, settings["replicates"], settings["seed"])
    low, high = mean_limits(log.rewards)
    value, difference = _interval(found.held_out, of_choice[0]), _interval(found.difference, of_choice[1])
    accepted = float(sums.counts.sum(axis=1)[np.arange(folds), found.chosen].sum())
    problems = check_choices(FixedEstimators(log, 100, settings["seed"]), notes)
    if accepted < MIN_EFFECTIVE:
        problems.append(
            f"only {accepted:.0f} decisions agree with the choice, and at least {MIN_EFFECTIVE} are required"
        )
    estimate = PolicyValue("held-out", value, difference)
    verdict, sentence = decide("the choice", LOGGED, estimate, len(log), problems, largest=high - low)
    notes.append(
        f"each estimate is that of a policy that starts without knowledge and sees one fold of users, about "
        f"{len(log) // folds:,} decisions; in longer use, policies that learn slowly gain more"
    )
    mean = values.mean(axis=0)
    candidates = [
        TuningCandidate(
            entries[c].name,
            entries[c].policy,
            entries[c].parameters,
            _interval(mean[c], errors[c]).clip(low, high),
            _interval(mean[c] - mean[-1], differences[c]).clip(low - high, high - low),
            float(sums.counts[..., c].sum()),
        )
        for c in np.argsort(-np.where(usable, mean[:-1], -np.inf), kind="stable").tolist()
    ]
    return Tuning(
        candidates=candidates,
        chosen=[entries[choice].name for choice in found.chosen.tolist()],
        logged=_interval(mean[-1], errors[-1]).clip(low, high),
        selecting_value=found.selecting,
        value=value.clip(low, high),
        difference=difference.clip(low - high, high - low),
        verdict=verdict,
        sentence=sentence,
        log=log.summary(),
        notes=notes,
        settings=settings,
    )


def _interval(value: float, margin: float) -> Interval:
    return Interval(float(value), float(value - margin), float(value + margin))
