"""Estimators of the value of a fixed policy: IPS, SNIPS, direct method, doubly robust and replay."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.evaluation.confidence_intervals import student_quantile
from locb.logs.bootstrap import (
    MAX_GROUPS,
    Interval,
    bootstrap_ratio,
    draw_counts,
    make_groups,
    random_stream,
    sum_by_group,
)
from locb.logs.log import Log
from locb.logs.replay import Terms
from locb.logs.results import Weights
from locb.logs.targets import FixedTarget

FOLDS = 5  # folds of users for the model of rewards; the model of a fold is fitted on the other folds
RIDGE = 1.0  # penalty of the model of rewards
MAX_CELLS = 10_000_000  # entries of a table of groups and rows of features
MAX_MODEL_GROUPS = 500  # groups of users in the bootstrap of the direct method, which fits the model in each replicate


class FixedEstimators:
    """Estimators of fixed policies on one log.

    Parameters
    ----------
    log : Log
        Log in which all rewards are known.
    replicates : int
        Number of bootstrap replicates.
    seed : int
        Random seed of folds and replicates.
    """

    def __init__(self, log: Log, replicates: int, seed: int) -> None:
        self.log, self.replicates, self.seed = log, replicates, seed
        self._clusters = log.users if log.has_users else np.arange(len(log))
        self.groups, self.n_groups = make_groups(self._clusters, MAX_GROUPS, seed)

    # Reward model

    @cached_property
    def _folds(self) -> Ints:
        names, indices = np.unique(self._clusters, return_inverse=True)
        order = random_stream(self.seed, "folds").permutation(len(names))
        return (order % min(FOLDS, len(names)))[indices]

    @cached_property
    def _design(self) -> Floats:
        """Features of all rows, and a constant."""
        return np.hstack([self.log.features, np.ones((len(self.log.features), 1))])

    @cached_property
    def _predictions(self) -> Floats:
        """Predicted reward (folds, rows) of each row of features, by a model fitted without the users of the fold."""
        rows, design = self.log.rows_of(self.log.chosen), self._design
        n_folds, n_rows = int(self._folds.max()) + 1, len(design)
        cells = self._folds * n_rows + rows
        counts = np.bincount(cells, minlength=n_folds * n_rows).reshape(n_folds, n_rows)
        sums = np.bincount(cells, weights=self.log.rewards, minlength=n_folds * n_rows).reshape(n_folds, n_rows)
        grams = np.stack([(design * weight[:, None]).T @ design for weight in counts.astype(np.float64)])
        moments = sums @ design
        if n_folds > 1:
            grams, moments = grams.sum(axis=0) - grams, moments.sum(axis=0) - moments
        theta = _solve(grams, moments)
        return theta @ design.T

    def _predict(self, target: FixedTarget | None) -> Floats:
        """Return the predicted reward of each decision: of the logged arm, or of the choice of ``target`` if given."""
        predicted = np.empty(len(self.log))
        rows = self.log.rows_of(self.log.chosen)
        for fold, values in enumerate(self._predictions):
            inside = self._folds == fold
            if target is None:
                predicted[inside] = values[rows[inside]]
            else:
                predicted[inside] = target.expect(self.log, values)[inside]
        return predicted

    # Estimators

    def weights(self, target: FixedTarget) -> Floats:
        """Return the weight of each decision: probability of the logged arm by the policy / propensity."""
        return target.probability_of_chosen(self.log) / self.log.propensities

    def terms(self, estimator: str, target: FixedTarget) -> Terms:
        """Return the terms of "ips", "snips", "dr" or "replay"."""
        rewards, ones = self.log.rewards, np.ones(len(self.log))
        if estimator == "replay":
            match = target.probability_of_chosen(self.log)
            return Terms(match * rewards, match)
        weights = self.weights(target)
        if estimator == "dr":
            return Terms(self._predict(target) + weights * (rewards - self._predict(None)), ones)
        return Terms(weights * rewards, weights if estimator == "snips" else ones)

    def interval(self, terms: Terms, baseline: Terms | None = None) -> Interval:
        """Return the value of an estimator, or its difference from that of the baseline, with its 95% interval."""
        columns = [*terms, *(() if baseline is None else baseline)]
        sums = sum_by_group(self.groups, self.n_groups, *columns)
        return bootstrap_ratio(sums, self.replicates, self.seed)

    def direct_method(self, target: FixedTarget, baseline: Terms | None) -> tuple[Interval, Interval | None]:
        """Return the value by the direct method, and its difference from the baseline, with 95% intervals.

        A linear model is fitted to all rewards, and again in each bootstrap replicate. The intervals hold only if the
        expected reward is linear in the features of an arm.
        """
        log, design = self.log, self._design
        groups, n_groups = make_groups(self._clusters, MAX_MODEL_GROUPS, self.seed)
        width = design.shape[1]
        rows = log.rows_of(log.chosen)
        grams = _gram_sums(groups, n_groups, rows, design)
        moments = np.stack([_sums(groups, n_groups, log.rewards * column[rows]) for column in design.T], axis=1)
        features = np.stack([_sums(groups, n_groups, target.expect(log, column)) for column in design.T], axis=1)
        base = np.zeros((n_groups, 2)) if baseline is None else sum_by_group(groups, n_groups, *baseline)
        counts = draw_counts(n_groups, self.replicates, random_stream(self.seed, "replicates"))
        counts = np.concatenate([np.ones((1, n_groups)), counts])
        theta = _solve((counts @ grams).reshape(-1, width, width), counts @ moments)
        sums = counts @ features
        values = (theta * sums).sum(axis=1) / sums[:, -1]
        value = _symmetric(values, n_groups)
        if baseline is None:
            return value, None
        totals = counts @ base
        return value, _symmetric(values - totals[:, 0] / totals[:, 1], n_groups)

    def diagnose(self, target: FixedTarget) -> Weights:
        """Return the diagnostics of the weights of a policy."""
        log, weights = self.log, self.weights(target)
        squares = float((weights**2).sum())
        unsupported = 0.0
        if log.arm_ids:
            never = np.bincount(log.arms_of(log.chosen), minlength=len(log.arm_ids)) == 0
            counts = target.arm_counts(log)
            unsupported = float(counts[never].sum() / counts.sum())
        return Weights(
            int((weights > 0).sum()),
            float(weights.sum()) ** 2 / squares if squares else 0.0,
            float(weights.max(initial=0.0)),
            float(weights.sum()),
            self.interval(Terms(weights, np.ones(len(log)))),
            unsupported,
        )


def _sums(groups: Ints, n_groups: int, values: Floats) -> Floats:
    return sum_by_group(groups, n_groups, values)[:, 0]


def _gram_sums(groups: Ints, n_groups: int, rows: IndexArray, design: Floats) -> Floats:
    """Return the sum of x xᵀ over the decisions of each group, as rows of an array (groups, d²).

    If there are few distinct rows x of features, they are counted first. Otherwise, the entries of x xᵀ are summed one
    by one, so that only one number per decision is in memory.
    """
    n_rows, width = design.shape
    if n_rows * max(n_groups, width * width) <= MAX_CELLS:
        counts = np.bincount(groups * n_rows + rows, minlength=n_groups * n_rows).reshape(n_groups, n_rows)
        products = (design[:, :, None] * design[:, None, :]).reshape(n_rows, width * width)
        found: Floats = counts.astype(np.float64) @ products
        return found
    grams = np.empty((n_groups, width, width))
    for first in range(width):
        for second in range(first + 1):
            sums = _sums(groups, n_groups, design[rows, first] * design[rows, second])
            grams[:, first, second] = grams[:, second, first] = sums
    return grams.reshape(n_groups, width * width)


def _solve(grams: Floats, moments: Floats) -> Floats:
    """Return the ridge estimates of several problems, (problems, d)."""
    penalty: Floats = RIDGE * np.eye(grams.shape[-1])
    penalty[-1, -1] = 1e-6  # the constant is not penalized
    return np.linalg.solve(grams + penalty, moments[..., None])[..., 0].astype(np.float64)


def _symmetric(values: Floats, n_groups: int) -> Interval:
    """Return the interval of an estimate, ``values[0]``, from the standard deviation of its replicates."""
    if n_groups < 2:
        return Interval(float(values[0]))
    margin = student_quantile(n_groups - 1) * float(np.std(values[1:], ddof=1)) * math.sqrt(n_groups / (n_groups - 1))
    return Interval(float(values[0]), float(values[0]) - margin, float(values[0]) + margin)
