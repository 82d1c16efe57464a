"""Estimators of the value of a fixed policy: IPS, SNIPS, direct method, doubly robust and replay."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, IndexArray
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
from locb.logs.row_arrays import RowBuffer, blocks, by_block, number_distinct, store, take
from locb.logs.targets import FixedTarget

FOLDS = 5  # folds of users for the model of rewards; the model of a fold is fitted on the other folds
RIDGE = 1.0  # penalty of the model of rewards
MAX_CELLS = 10_000_000  # entries of a table of groups and rows of features
MAX_ARM_CELLS = 1_000_000  # entries of a table of groups and arms
MIN_ARM_GROUPS = 20  # minimum size of this table, in groups
FALSE_ALARM = 0.01  # maximum probability that the mean weight of an arm exceeds its margin by chance
MAX_MODEL_GROUPS = 500  # groups of users in the bootstrap of the direct method, which fits the model in each replicate


class ArmWeights(NamedTuple):
    """Weights 1 / propensity of the decisions in which an arm was chosen, one entry per arm.

    If all propensities are right, the expected sum of these weights is the number of decisions in which the arm had a
    probability above 0.
    """

    offers: Floats  # decisions that offer the arm
    chosen: Floats  # decisions in which the arm was chosen
    uniform: Floats  # expected number of these decisions if all offered arms are equally probable
    mean: Floats  # sum of the weights, divided by ``offers``
    margin: Floats  # distance of the mean weight from 1 that can be due to chance


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
        self._clusters, self._n_clusters = decision_clusters(log)
        self.groups, self.n_groups = make_groups(self._clusters, self._n_clusters, MAX_GROUPS, seed)

    # Reward model

    @cached_property
    def _folds(self) -> NDArray[np.int8]:
        count = self._n_clusters
        fold_of = (random_stream(self.seed, "folds").permutation(count) % min(FOLDS, count)).astype(np.int8)
        folds: NDArray[np.int8] = take(fold_of, self._clusters)
        return folds

    @cached_property
    def _design(self) -> Floats:
        """Features of all rows, and a constant."""
        return np.hstack([self.log.features, np.ones((len(self.log.features), 1))])

    @cached_property
    def _predictions(self) -> Floats:
        """Predicted reward (folds, rows) of each row of features, by a model fitted without the users of the fold."""
        design = self._design
        n_folds = int(self._folds.max()) + 1
        counts, sums = np.zeros((2, n_folds, len(design)))
        for span in blocks(len(self.log)):
            log = self.log.select(span)
            cells = self._folds[span], log.rows_of(log.chosen)
            np.add.at(counts, cells, 1.0)
            np.add.at(sums, cells, log.rewards)
        grams = np.stack([(design * weight[:, None]).T @ design for weight in counts])
        moments = sums @ design
        if n_folds > 1:
            grams, moments = grams.sum(axis=0) - grams, moments.sum(axis=0) - moments
        theta = _solve(grams, moments)
        return theta @ design.T

    def _predict(self, span: slice, log: Log, target: FixedTarget) -> Floats:
        """Return the predicted reward of the choice of a policy in a block of decisions."""
        folds = self._folds[span]
        predicted = np.empty(len(log))
        for fold, values in enumerate(self._predictions):
            inside = folds == fold
            predicted[inside] = target.expect(log, values)[inside]
        return predicted

    # Estimators

    def weights(self, target: FixedTarget) -> Floats:
        """Return the weight of each decision: probability of the logged arm by the policy / propensity."""
        parts = (part.probability_of_chosen(log) / log.propensities for _, log, part in target.blocks(self.log))
        weights: Floats = store(np.float64, parts)
        return weights

    def terms(self, estimator: str, target: FixedTarget) -> Terms:
        """Return the terms of "ips", "snips", "dr" or "replay"."""
        ones = np.broadcast_to(1.0, len(self.log))
        if estimator == "replay":
            match = store(np.float64, (part.probability_of_chosen(log) for _, log, part in target.blocks(self.log)))
            return Terms(self._times_rewards(match), match)
        weights = self.weights(target)
        if estimator == "dr":
            values = RowBuffer(np.float64)
            for span, log, part in target.blocks(self.log):
                logged = FixedTarget("logged", log.chosen)
                residuals = log.rewards - self._predict(span, log, logged)
                values.append(self._predict(span, log, part) + weights[span] * residuals)
            return Terms(values.build(), ones)
        return Terms(self._times_rewards(weights), weights if estimator == "snips" else ones)

    def _times_rewards(self, weights: Floats) -> Floats:
        product: Floats = by_block(np.float64, len(weights), lambda span: weights[span] * self.log.rewards[span])
        return product

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
        groups, n_groups = make_groups(self._clusters, self._n_clusters, MAX_MODEL_GROUPS, self.seed)
        width = design.shape[1]
        grams = _gram_sums(groups, n_groups, log, design)
        moments, features = np.zeros((2, n_groups, width))
        for span, part, choices in target.blocks(log):
            rows = part.rows_of(part.chosen)
            for number, column in enumerate(design.T):
                np.add.at(moments[:, number], groups[span], part.rewards * column[rows])
                np.add.at(features[:, number], groups[span], choices.expect(part, column))
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

    def arm_weights(self) -> ArmWeights:
        """Return the weights of the arms of the log. All arms must have ids.

        The margin is that of Bernstein's inequality for all arms together. The variance of 1 / propensity is at most
        1 / (smallest propensity) − 1 per decision. If the choices for a user depend on each other, the variance is
        multiplied by the design effect: the sum of squared deviations of users, divided by that of independent choices.
        """
        from scipy import sparse

        log, sizes, n_arms = self.log, self.log.offers.sizes, len(self.log.arm_ids)
        maximum = max(MIN_ARM_GROUPS, MAX_ARM_CELLS // n_arms)
        groups, n_groups = make_groups(self._clusters, self._n_clusters, maximum, self.seed)
        arms = np.ones(len(log.offers.arms), np.int8), log.offers.arms, log.offers.offsets
        offered = sparse.csr_matrix(arms, shape=(len(sizes), n_arms))
        deviations, lists = np.zeros((n_groups, n_arms)), np.zeros(len(sizes))
        chosen, totals = np.zeros((2, n_arms))
        for span in blocks(len(log)):
            part = log.select(span)
            group, arm, weight = groups[span], part.arms_of(part.chosen), 1.0 / part.propensities
            used, index = np.unique(part.offer, return_inverse=True)
            cells = sparse.csr_matrix((np.ones(len(part)), (group, index)), shape=(n_groups, len(used)))
            deviations -= (cells @ offered[used]).toarray()
            np.add.at(deviations, (group, arm), weight)
            np.add.at(totals, arm, weight)
            np.add.at(chosen, arm, 1.0)
            lists += np.bincount(part.offer, minlength=len(sizes))
        offers = lists @ offered
        smallest = float(log.propensities.min())
        variance = (lists * (sizes - 1.0 if log.is_uniform else 1.0 / smallest - 1.0)) @ offered
        squares = (deviations**2).sum(axis=0)
        effect = max(1.0, float(squares.sum() / max(variance.sum(), 1e-100)))
        log_level = math.log(2 * n_arms / FALSE_ALARM)
        largest = effect / smallest * log_level / 3
        margin = largest + np.sqrt(largest**2 + 2 * log_level * np.maximum(effect * variance, squares))
        known = np.maximum(offers, 1.0)
        return ArmWeights(offers, chosen, (lists / sizes) @ offered, totals / known, margin / known)

    def diagnose(self, target: FixedTarget) -> Weights:
        """Return the diagnostics of the weights of a policy."""
        log, weights = self.log, self.weights(target)
        squares = float(by_block(np.float64, len(weights), lambda span: weights[span] ** 2).sum())
        unsupported = 0.0
        if log.arm_ids:
            never = FixedTarget("logged", log.chosen).arm_counts(log) == 0
            counts = target.arm_counts(log)
            unsupported = float(counts[never].sum() / counts.sum())
        return Weights(
            int((weights > 0).sum()),
            float(weights.sum()) ** 2 / squares if squares else 0.0,
            float(weights.max(initial=0.0)),
            float(weights.sum()),
            self.interval(Terms(weights, np.broadcast_to(1.0, len(log)))),
            unsupported,
        )


def decision_clusters(log: Log) -> tuple[IndexArray, int]:
    """Return the cluster of each decision for the bootstrap, and the number of clusters.

    A cluster has the decisions of a user, or one decision if the log has no user ids.
    """
    if log.has_users:
        return number_distinct(log.users)
    return by_block(np.int32, len(log), lambda span: np.arange(span.start, span.stop)), len(log)


def _gram_sums(groups: IndexArray, n_groups: int, log: Log, design: Floats) -> Floats:
    """Return the sum of x xᵀ over the decisions of each group, as rows of an array (groups, d²).

    The vector x of a decision is the row of ``design`` of the logged arm. If there are few distinct rows, they are
    counted first. Otherwise, the entries of x xᵀ are summed one by one.
    """
    n_rows, width = design.shape
    is_counted = n_rows * max(n_groups, width * width) <= MAX_CELLS
    counts = np.zeros((n_groups, n_rows if is_counted else 0))
    grams = np.zeros((n_groups, width, width))
    for span in blocks(len(log)):
        part, group = log.select(span), groups[span]
        rows = part.rows_of(part.chosen)
        if is_counted:
            np.add.at(counts, (group, rows), 1.0)
            continue
        for first in range(width):
            for second in range(first + 1):
                np.add.at(grams[:, first, second], group, design[rows, first] * design[rows, second])
    if is_counted:
        products = (design[:, :, None] * design[:, None, :]).reshape(n_rows, width * width)
        found: Floats = counts @ products
        return found
    lower = np.tril(grams, -1)
    return (grams + lower.transpose(0, 2, 1)).reshape(n_groups, width * width)


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
