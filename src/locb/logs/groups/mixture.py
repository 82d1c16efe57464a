"""Mixture of groups for a fixed log, fitted by expectation maximization.

It is similar to the model of ELOC, but has a parameter gamma and no component for everyone. The parameter vector of a
user is drawn from a group, N(μ_s, w I), or from the population of all users, N(μ_0, Σ_0). The variance w follows from
gamma, the intended largest distance between two users of a group: w = γ² / (4 D) for D features. The evidence is
described in ``locb.kernels.groups.evidence``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.common.linear_algebra import unpack_symmetric
from locb.kernels.groups.evidence import evidence_forms, population_terms, residual_sums
from locb.logs.groups.user_sums import UserSums

POPULATION_FLOOR = 0.005  # smallest mixing weight of the population
POPULATION_ROUNDS, ROUNDS, MERGE_ROUNDS = 15, 12, 3  # iterations: of the population, of a fit, between merges
LINE_ROUNDS = 50  # iterations for two distributions on a line
MIN_NOISE = 1e-6  # smallest variance of the noise, relative to the mean squared reward


class Population(NamedTuple):
    """Distribution N(μ_0, Σ_0) of the parameter vectors of all users, and the variance σ² of the noise."""

    prior: Floats  # (2, D + p): rows (Σ_0⁻¹ μ_0, Σ_0⁻¹ packed) and (μ_0, unused)
    log_det: float  # log det Σ_0⁻¹
    noise: float
    spread: float  # root mean square distance between the parameter vectors of two users, √(2 tr Σ_0)


class Evidence(NamedTuple):
    """Evidence of u users: quadratic forms of centres, and under the population."""

    forms: Floats  # (u, D + p)
    constants: Floats  # (u,)
    population: Floats  # (u,)
    means: Floats  # (u, D): posterior means under the population

    def select(self, users: slice) -> Evidence:
        """Return the evidence of some of the users."""
        return Evidence(*(part[users] for part in self))


class Mixture(NamedTuple):
    """Centres of K groups, and mixing weights (K + 1,): of the groups, and of the population."""

    centres: Floats
    weights: Floats
    variance: float


def within_variance(gamma: float, dim: int) -> float:
    """Return w, the variance of an entry of the parameter vectors of a group."""
    return gamma**2 / (4.0 * dim)


def estimate_noise(sums: UserSums) -> float:
    """Return the variance of the noise: of residuals around each user's own fit, or around one fit for all users."""
    total, freedom = 0.0, 0.0
    for start in range(0, len(sums), 65_536):
        part = slice(start, start + 65_536)
        squared, degrees = residual_sums(sums.block(part), sums.squares[part], sums.counts[part], sums.dim)
        total, freedom = total + squared, freedom + degrees
    if freedom < 10 * sums.dim:
        pooled = sums.block(slice(None)).sum(axis=0)
        gram = unpack_symmetric(pooled[sums.dim :], sums.dim) + 1e-9 * np.eye(sums.dim)
        explained = pooled[: sums.dim] @ np.linalg.solve(gram, pooled[: sums.dim])
        total, freedom = sums.squares.sum() - explained, max(sums.counts.sum() - sums.dim, 1.0)
    squares = sums.squares.sum() / max(sums.counts.sum(), 1.0)
    return max(total / freedom, MIN_NOISE * float(squares), 1e-300)


def fit_population(rows: Floats, noise: float, dim: int) -> Population:
    """Fit N(μ_0, Σ_0) to the sums (b, G) of a sample of users by expectation maximization."""
    pooled = rows.sum(axis=0)
    mean = np.linalg.solve(unpack_symmetric(pooled[dim:], dim) + noise * np.eye(dim), pooled[:dim])
    covariance = np.eye(dim) / dim
    upper = np.triu_indices(dim)
    means, evidence, second = np.empty((len(rows), dim)), np.empty(len(rows)), np.empty(len(upper[0]))
    population = _population(mean, covariance, noise)
    for _ in range(POPULATION_ROUNDS):
        population_terms(rows, noise, population.prior, population.log_det, means, evidence, second)
        covariance = unpack_symmetric(second / len(rows), dim)
        shift = means.mean(axis=0) - mean
        mean = mean + shift
        covariance = covariance - np.outer(shift, shift)
        covariance += (1e-4 * np.trace(covariance) / dim + 1e-15) * np.eye(dim)
        population = _population(mean, covariance, noise)
    return population


def _population(mean: Floats, covariance: Floats, noise: float) -> Population:
    dim = len(mean)
    precision = np.linalg.inv(covariance)
    precision = 0.5 * (precision + precision.T)
    prior = np.zeros((2, dim + dim * (dim + 1) // 2))
    prior[0, :dim], prior[0, dim:], prior[1, :dim] = precision @ mean, precision[np.triu_indices(dim)], mean
    return Population(prior, float(np.linalg.slogdet(precision)[1]), noise, math.sqrt(2.0 * np.trace(covariance)))


def compute_evidence(rows: Floats, population: Population, variance: float, dim: int) -> Evidence:
    """Return the evidence of users with the sums ``rows`` (b, G), for groups with the within-variance w."""
    forms, constants = np.empty_like(rows), np.empty(len(rows))
    means, under_population = np.empty((len(rows), dim)), np.empty(len(rows))
    evidence_forms(rows, population.noise, variance, forms, constants)
    second = np.empty(rows.shape[1] - dim)
    population_terms(rows, population.noise, population.prior, population.log_det, means, under_population, second)
    return Evidence(forms, constants, under_population, means)


def group_evidence(evidence: Evidence, centres: Floats) -> Floats:
    """Return the log evidence of each user (rows) for each group (columns), and, in a last column, the population."""
    first, second = np.triu_indices(centres.shape[1])
    products = centres[:, first] * centres[:, second] * np.where(first == second, -0.5, -1.0)
    logs = np.empty((len(evidence.constants), len(centres) + 1))
    logs[:, :-1] = evidence.forms @ np.hstack([centres, products]).T
    logs[:, :-1] += evidence.constants[:, None]
    logs[:, -1] = evidence.population
    return logs


def normalize(logs: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of the columns from their logarithms, and the log of their sum for each row."""
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    return shares, (top + np.log(total))[:, 0]


def update(mixture: Mixture, shares: Floats, pooled: Floats, population: Population) -> Mixture:
    """Return the mixture after one step of expectation maximization.

    ``shares`` (K + 1,) are the sums of the users' probabilities. ``pooled`` (K, D + p) are the sums of the users'
    ``forms``, weighted by the probabilities of the groups.
    """
    dim = mixture.centres.shape[1]
    pooled = pooled + population.prior[0]
    solved = np.linalg.solve(unpack_symmetric(pooled[:, dim:], dim), pooled[:, :dim, None])
    centres = np.asarray(solved[..., 0], np.float64)
    weights: Floats = (shares + 1.0) / (shares + 1.0).sum()
    weights[-1] = max(weights[-1], POPULATION_FLOOR)
    return Mixture(centres, weights / weights.sum(), mixture.variance)


def improve(mixture: Mixture, evidence: Evidence, population: Population, rounds: int) -> Mixture:
    """Return the mixture after ``rounds`` rounds of expectation maximization."""
    for _ in range(rounds):
        shares, _ = normalize(group_evidence(evidence, mixture.centres) + np.log(mixture.weights))
        pooled = shares[:, :-1].T @ evidence.forms
        mixture = update(mixture, shares.sum(axis=0), pooled, population)
    return mixture


def fit_mixture(
    evidence: Evidence, population: Population, gamma: float, max_groups: int, rng: np.random.Generator
) -> Mixture:
    """Fit a mixture to a sample of users: seeds, expectation maximization, and merging of groups.

    Seeds are drawn like those of k-means++: a user is drawn with a probability proportional to the evidence that no
    seed so far explains. Two groups are merged if their centres are closer than γ / 2, or if the merge decreases the
    log evidence of the sample by less than ``penalty``. Then groups are removed without which the log evidence
    decreases by less than ``penalty``.
    """
    variance = within_variance(gamma, evidence.means.shape[1])
    centres = _draw_seeds(evidence, max_groups, rng)
    mixture = Mixture(centres, np.full(len(centres) + 1, 1.0 / (len(centres) + 1)), variance)
    mixture = improve(mixture, evidence, population, ROUNDS)
    while (merged := _merge(mixture, evidence, gamma)) is not None:
        mixture = improve(merged, evidence, population, MERGE_ROUNDS)
    while (kept := _prune(mixture, evidence)) is not None:
        mixture = improve(kept, evidence, population, MERGE_ROUNDS)
    return improve(mixture, evidence, population, ROUNDS)


def penalty(evidence: Evidence) -> float:
    """Return the loss of log evidence below which a group is merged or removed: half of (D + 1) log(users)."""
    users, dim = evidence.means.shape
    loss: float = 0.5 * (dim + 1) * math.log(max(users, 2))
    return loss


def _draw_seeds(evidence: Evidence, count: int, rng: np.random.Generator) -> Floats:
    means = evidence.means
    first, second = np.triu_indices(means.shape[1])
    products = means[:, first] * means[:, second] * np.where(first == second, -0.5, -1.0)
    own = (evidence.forms * np.hstack([means, products])).sum(axis=1) + evidence.constants
    best = evidence.population.copy()
    chosen: list[int] = []
    for _ in range(min(count, len(means))):
        gap = np.maximum(own - best, 0.0)
        gap[chosen] = 0.0
        total = gap.sum()
        if not total > 0.0:
            break
        chosen.append(int(rng.choice(len(gap), p=gap / total)))
        best = np.maximum(best, group_evidence(evidence, means[chosen[-1:]])[:, 0])
    return means[chosen] if chosen else means[:1].copy()


def _merge(mixture: Mixture, evidence: Evidence, gamma: float) -> Mixture | None:
    """Return the mixture after merging the pairs of groups that ``fit_mixture`` describes; None without such pairs."""
    centres, weights = mixture.centres, mixture.weights
    count = len(centres)
    if count < 2:
        return None
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    logs = group_evidence(evidence, centres) + np.log(weights)
    shares, totals = normalize(logs)
    candidates = []
    for s in range(count):
        t = int(distances[s].argmin())
        if distances[t].argmin() == s and t < s:
            continue  # the same pair
        middle = (weights[s] * centres[s] + weights[t] * centres[t]) / (weights[s] + weights[t])
        single = group_evidence(evidence, middle[None])[:, 0] + math.log(weights[s] + weights[t])
        rest = np.maximum(1.0 - shares[:, s] - shares[:, t], 1e-300)
        loss = float((totals - np.logaddexp(np.log(rest) + totals, single)).sum())
        if distances[s, t] < 0.5 * gamma or loss < penalty(evidence):
            candidates.append((loss, s, t, middle))
    used: set[int] = set()
    merged, removed = centres.copy(), []
    new_weights = weights.copy()
    for _, s, t, middle in sorted(candidates, key=lambda entry: entry[0]):
        if s not in used and t not in used:
            used |= {s, t}
            merged[s] = middle
            new_weights[s] += new_weights[t]
            removed.append(t)
    if not removed:
        return None
    return Mixture(np.delete(merged, removed, axis=0), np.delete(new_weights, removed), mixture.variance)


def _prune(mixture: Mixture, evidence: Evidence) -> Mixture | None:
    """Return the mixture without the group that explains least; None if no group is to be removed (``penalty``)."""
    if len(mixture.centres) < 2:
        return None
    shares, _ = normalize(group_evidence(evidence, mixture.centres) + np.log(mixture.weights))
    losses = -np.log1p(-np.minimum(shares[:, :-1], 1.0 - 1e-12)).sum(axis=0)
    worst = int(losses.argmin())
    if losses[worst] >= penalty(evidence):
        return None
    weights = np.delete(mixture.weights, worst)
    return Mixture(np.delete(mixture.centres, worst, axis=0), weights / weights.sum(), mixture.variance)


def find_alike(mixture: Mixture, rows: Floats, evidence: Evidence) -> Ints:
    """Return the group (K,) of each component of a mixture: components that cannot be distinguished are one group.

    The variance of the noise can differ between rows, for example if some arms have larger rewards. Then, the rewards
    of the members of one group vary more than the model expects, and several components share them. Each component is
    compared with the nearest one, along the line through both centres. The position of a user on this line has a
    precision that is proportional to g = δᵀGδ, for δ = μ_s − μ_t. If one normal distribution, with a variance that is
    fitted to the positions, explains them as well as two, the components are one group; see ``separation``.
    """
    centres, count = mixture.centres, len(mixture.centres)
    shares, _ = normalize(group_evidence(evidence, centres) + np.log(mixture.weights))
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    groups = np.arange(count)
    for s in range(count if count > 1 else 0):
        t = int(distances[s].argmin())
        if groups[s] != groups[t]:
            users = shares[:, s] + shares[:, t] >= 0.5
            position, precision = line_positions(rows, centres[s], centres[t])
            if separation(position[users], precision[users]) < 0.0:
                groups[groups == groups[s]] = groups[t]
    return np.asarray(np.unique(groups, return_inverse=True)[1], np.int64)


def line_positions(rows: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the positions of users on the line through two centres (½: first, −½: second), and their precisions.

    ``rows`` are the sums (b, G) of the users. A precision is in units of 1 / σ².
    """
    dim, line, middle = len(first), first - second, 0.5 * (first + second)
    i, j = np.triu_indices(dim)
    grams = rows[:, dim:]
    precision = grams @ (line[i] * line[j] * np.where(i == j, 1.0, 2.0))
    pulled = grams @ np.where(i == j, line[i] * middle[i], line[i] * middle[j] + line[j] * middle[i])
    return (rows[:, :dim] @ line - pulled) / np.maximum(precision, 1e-300), precision


def separation(position: Floats, precision: Floats) -> float:
    """Return by how much two normal distributions explain the positions of users on a line better than one.

    The variance of a user is proportional to 1 / precision, with a common factor that is fitted. The result is the
    difference of the log likelihoods, minus 2 log(users): twice the Bayesian information criterion of two parameters.
    """
    known = precision > 1e-12 * precision.max(initial=1e-300)
    position, precision = position[known], precision[known]
    count = len(precision)
    if count < 2:
        return 0.0
    centre = precision @ position / precision.sum()
    variance = max(float((precision * (position - centre) ** 2).mean()), 1e-300)
    single = -0.5 * count * (math.log(variance) + 1.0)
    means, share, variance = np.array([0.5, -0.5]), 0.5, 0.5 * variance
    double = -math.inf
    for _ in range(LINE_ROUNDS):
        logs = -0.5 * precision[:, None] * (position[:, None] - means) ** 2 / variance + np.log([share, 1.0 - share])
        parts, total = normalize(logs)
        weights = parts * precision[:, None]
        means = weights.T @ position / np.maximum(weights.sum(axis=0), 1e-300)
        fitted = float((weights * (position[:, None] - means) ** 2).sum()) / count
        double = float(total.sum()) - 0.5 * count * math.log(variance)
        variance, share = max(fitted, 1e-300), float(np.clip(parts[:, 0].mean(), 0.5 / count, 1.0 - 0.5 / count))
    return double - single - 2.0 * math.log(count)


def describe_merge(components: int, groups: int) -> list[str]:
    """Return a note if components of the mixture were merged into groups."""
    if groups == components:
        return []
    reason = "the rewards of the members of merged groups differ no more than rewards within one group"
    return [f"{components} groups were merged into {groups}: {reason}"]


def choose_norm_bound(mixture: Mixture) -> tuple[float, list[str]]:
    """Return the default of ``norm_bound``, and a note if it is above 1."""
    largest = float(np.linalg.norm(mixture.centres, axis=1).max())
    if largest <= 1.0:
        return 1.0, []
    bound = float(np.ceil(12.0 * largest) / 10.0)
    assumed = f"certificates assume that no preference vector has a norm above {bound:g} (norm_bound)"
    return bound, [f"{assumed}, which is 20% above the largest norm of the centre of a group"]
