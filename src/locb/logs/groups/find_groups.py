"""Groups of users with similar preferences in a log: ``find_groups``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_choice, check_float, check_int
from locb.logs.bootstrap import random_stream
from locb.logs.groups.assignment import (
    Assignment,
    Estimates,
    assign_by_evidence,
    assign_certified,
    assign_connected,
    estimate_users,
    order_by_size,
    refine,
)
from locb.logs.groups.gamma_choice import (
    MAX_COMPARED,
    MIN_USERS,
    GammaScore,
    choose_gamma,
    default_gamma,
    describe_choice,
    score_gammas,
)
from locb.logs.groups.mixture import (
    Mixture,
    Population,
    choose_norm_bound,
    compute_evidence,
    describe_merge,
    estimate_noise,
    find_alike,
    fit_mixture,
    fit_population,
    within_variance,
)
from locb.logs.groups.result_frames import make_user_groups
from locb.logs.groups.row_source import DEFAULT_BATCH, open_rows
from locb.logs.groups.stability import draw_noise, measure_stability, ridge_solutions
from locb.logs.groups.sum_pass import require_files, sum_by_user
from locb.logs.groups.user_groups import UserGroups
from locb.logs.groups.user_sums import UserSums
from locb.parallel.task_graphs import open_tasks

METHODS = ("eloc", "locb", "off-club")
MAX_TRAINING = 20_000  # maximum number of users to whom groups are fitted
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Settings:
    """Arguments of ``find_groups``. They are checked when the object is created."""

    method: str
    gamma: float | None
    max_groups: int
    min_probability: float
    alpha: float
    sigma: float | None
    delta: float
    norm_bound: float | None
    robust: bool
    replicates: int
    seed: int

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        if self.gamma is not None:
            check_float("gamma", self.gamma, 0.0, open_ends=True)
        elif self.method == "locb":
            raise ParameterError("gamma", " is required for method='locb', for example 0.5")
        check_int("max_groups", self.max_groups, 1, 1000)
        check_float("min_probability", self.min_probability, 0.0, 1.0, open_ends=True)
        check_float("alpha", self.alpha, 0.0, open_ends=True)
        if self.sigma is not None:
            check_float("sigma", self.sigma, 0.0)
        check_float("delta", self.delta, 0.0, 1.0, open_ends=True)
        if self.norm_bound is not None:
            check_float("norm_bound", self.norm_bound, 0.0, open_ends=True)
        if not isinstance(self.robust, bool):
            raise ParameterError("robust", f" must be True or False, not {self.robust!r}")
        check_int("replicates", self.replicates, 0)
        check_int("seed", self.seed, 0)


def find_groups(
    log: Any,
    *,
    method: str = "eloc",
    gamma: float | None = None,
    max_groups: int = 50,
    min_probability: float = 0.5,
    alpha: float = 1.0,
    sigma: float | None = None,
    delta: float = 0.1,
    norm_bound: float | None = None,
    robust: bool = True,
    replicates: int = 20,
    batch_rows: int = DEFAULT_BATCH,
    max_memory: float = 4.0,
    seed: int = 0,
    on: str | None = None,
    progress: Progress | None = None,
    format: str = "auto",  # noqa: A002 - as in Log.read
    **options: Any,
) -> UserGroups:
    """Find groups of users with similar preferences in a log, with membership probabilities.

    Rows are read once, in batches, or twice if rewards have outliers (``robust``). If features are arms or text, an
    additional first pass reads these columns to collect their values.

    Parameters
    ----------
    log : Log, path, list of paths, or data frame
        Rows with a user, a reward, and features of what the user was shown. Tables are read as by :meth:`Log.read`, but
        in batches, so that a log may be larger than the memory.
    method : {"eloc", "locb", "off-club"}, default "eloc"
        "eloc": groups with probabilities, by how well each group explains the rows of a user. "locb": local clustering
        with the ``ellipsoid`` radius; with a probability of at least 1 − delta, the distance between any two members of
        a group is at most ``gamma``. "off-club": connected components of users whose confidence regions overlap.
    gamma : float, optional
        "eloc", "locb": intended largest distance between two users of a group. By default, "eloc" chooses it; "locb"
        requires it.
    max_groups : int, default 50
        "eloc", "locb": largest number of groups; for "eloc", also the number of seed users.
    min_probability : float, default 0.5
        "eloc": smallest probability with which a user belongs to a group.
    alpha : float, default 1.0
        "off-club": factor of the confidence radii. Two users are connected if the distance between their estimates is
        at most ``alpha`` times the sum of their radii.
    sigma, delta, norm_bound : float, optional
        Certificates: scale of the noise (by default, half of the range of the rewards), maximum probability that any
        certificate is too small, and assumed upper bound on the norm of a preference vector (by default 1; if the
        largest norm of a fitted group centre is above 1: 1.2 times this norm, rounded up to one decimal).
    robust : bool, default True
        Whether rewards beyond a limit are replaced by the limit if they have at least 10% of the variance. The distance
        of the limit from the median is twice the 97.5% quantile of the distances of the rewards that differ from the
        median. Rewards with at most 20 different values are not limited. If rewards are limited, the log is read again.
    replicates : int, default 20
        Bootstrap samples of users, with further noise of rewards, for the stability. 0: it is not computed.
    batch_rows : int, default 500,000
        Rows that are read at a time. The result does not depend on it.
    max_memory : float, default 4.0
        Largest size of the sums of all users, in GiB.
    seed : int, default 0
        Random seed.
    on : str, optional
        Where to sum the rows of each user: "dask://HOST:PORT" or "ray://HOST:PORT" for a cluster, "dask" or "ray" for
        workers on this machine. All workers must have the files of the log under the same path. By default, this
        process. The result does not depend on it, to the last bit.
    progress : callable, optional
        Function of a step and a number: the rows that were read, or the share of the step that is done.
    format : str, default "auto"
        Format of the log, as in :meth:`Log.read`.
    **options
        Columns and formats of a table, as in :meth:`Log.read`: ``user``, ``reward``, ``features`` (columns that
        describe what was shown: numbers, text or lists of numbers), ``chosen`` (the arm, used if there are no
        features), ``missing_reward``, ``decimal``, ``separator``, ``header``.

    Returns
    -------
    UserGroups
        Groups, users with their groups and probabilities, and what the members of each group like.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If the log has no usable row, lacks a column, has too many users for ``max_memory``, or an argument is invalid.
    OSError
        If the workers of a cluster fail repeatedly.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> user, shown = rng.integers(40, size=8000), rng.integers(2, size=8000)
    >>> liked = rng.random(8000) < np.where(user % 2 == shown, 0.9, 0.2)  # even users like tea, odd users like coffee
    >>> found = find_groups({"user": user, "item": np.array(["tea", "coffee"])[shown], "reward": liked.astype(float)})
    >>> found.groups["users"].to_list(), sorted({user % 2 for user in found.members(0)["user"]})
    ([20, 20], [1])
    """
    settings = Settings(
        method=method,
        gamma=gamma,
        max_groups=max_groups,
        min_probability=min_probability,
        alpha=alpha,
        sigma=sigma,
        delta=delta,
        norm_bound=norm_bound,
        robust=robust,
        replicates=replicates,
        seed=seed,
    )
    check_int("batch_rows", batch_rows, 1)
    check_float("max_memory", max_memory, 0.0, open_ends=True)
    report: Progress = progress or _ignore
    cluster = None if on is None else open_tasks(on)
    try:
        source = open_rows(log, format, {name: value for name, value in options.items() if value is not None})
    except ModuleNotFoundError as error:
        raise ValueError(f"logs need the package {error.name}: run pip install 'locb[data]'") from error
    if cluster is not None:
        require_files(source)
    from threadpoolctl import threadpool_limits

    # The matrices are small, and results do not depend on the number of cores.
    with threadpool_limits(1, "blas"):
        with cluster or nullcontext() as tasks:
            sums = sum_by_user(
                source,
                batch_rows=batch_rows,
                max_memory=max_memory,
                robust=robust,
                progress=lambda rows: report("rows", float(rows)),
                tasks=tasks,
            )
        return _Search(sums, settings, report).run(source.columns, source.skipped)


def _ignore(step: str, amount: float) -> None:
    """Report no progress."""


class _Search:
    """Search for groups, after the pass over the log."""

    def __init__(self, sums: UserSums, settings: Settings, report: Progress) -> None:
        self.sums, self.settings, self.report = sums, settings, report
        self.notes: list[str] = [] if sums.limits is None else [sums.limits.describe()]
        rng = random_stream(settings.seed, "training users")
        informed = np.flatnonzero(sums.counts >= sums.dim)
        pool = informed if len(informed) >= MIN_USERS else np.arange(len(sums))
        self.training: Ints = np.sort(rng.permutation(pool)[:MAX_TRAINING])
        self.noise = estimate_noise(sums)
        rows = sums.block(self.training)
        self.population: Population = fit_population(rows, self.noise, sums.dim)
        self.compared = rng.permutation(self.training)[:MAX_COMPARED]
        self.scores: list[GammaScore] = []

    def run(self, columns: dict[str, str], skipped: Any) -> UserGroups:
        """Return the groups."""
        settings, sums = self.settings, self.sums
        is_fixed = settings.method == "off-club"  # off-club has no gamma; only the fit for the norm bound needs one
        gamma = settings.gamma or (default_gamma(self.population) if is_fixed else self._choose_gamma())
        mixture = None
        norm_bound = settings.norm_bound
        if settings.method == "eloc" or norm_bound is None:
            mixture = self._fit(sums.block(self.training), gamma, self.population)
        if norm_bound is None:
            assert mixture is not None  # noqa: S101 - fitted above
            norm_bound, notes = choose_norm_bound(mixture)
            self.notes += notes
        sigma = sums.sigma if settings.sigma is None else settings.sigma
        self.report("estimates", 0.0)
        estimates = estimate_users(sums, sigma, settings.delta, norm_bound)
        if settings.method == "eloc":
            assert mixture is not None  # noqa: S101 - fitted above
            found = self._assign_by_evidence(refine(mixture, sums, self.population), sums, self.population)
            self.notes += describe_merge(len(mixture.centres), len(found.centres))
        else:
            found = self._assign(estimates, gamma)
        found = order_by_size(found)
        if not len(found.centres) and settings.method == "eloc":
            self.notes.append(
                "no groups were found: no user is in a group with a probability of at least "
                f"{settings.min_probability:g}. More rows per user may show groups"
            )
        if self.scores:
            self.notes += describe_choice(self.scores, gamma, len(found.centres))
        stability = self._stability(found, estimates, gamma)
        record = {name: value for name, value in vars(settings).items() if value is not None}
        record |= {} if is_fixed else {"gamma": gamma}
        record |= {"sigma": sigma, "norm_bound": norm_bound, "noise": self.noise**0.5, "scale": sums.scale}
        return make_user_groups(
            sums, found, estimates, stability, self.scores, record, columns, tuple(skipped), tuple(self.notes)
        )

    def _fit(self, rows: Floats, gamma: float, population: Population) -> Mixture:
        evidence = compute_evidence(rows, population, within_variance(gamma, self.sums.dim), self.sums.dim)
        rng = random_stream(self.settings.seed, "groups")
        return fit_mixture(evidence, population, gamma, self.settings.max_groups, rng)

    def _assign_by_evidence(self, mixture: Mixture, sums: UserSums, population: Population) -> Assignment:
        """Assign users to groups, in which components that are alike are merged."""
        rows = sums.block(slice(None) if len(sums) <= MAX_TRAINING else self.training)
        evidence = compute_evidence(rows, population, mixture.variance, sums.dim)
        groups = find_alike(mixture, rows, evidence)
        return assign_by_evidence(mixture, groups, sums, population, self.settings.min_probability)

    def _choose_gamma(self) -> float:
        self.report("gamma", 0.0)
        if len(self.compared) < MIN_USERS:
            few = f"{len(self.compared)} users are too few to choose gamma, and at least {MIN_USERS} are required"
            gamma = default_gamma(self.population)
            self.notes.append(f"{few}: gamma is {gamma:g}")
            return gamma
        settings = self.settings
        self.scores = score_gammas(
            self.sums.block(self.compared),
            self.population,
            self.sums.dim,
            max_groups=settings.max_groups,
            min_probability=settings.min_probability,
            seed=settings.seed,
        )
        return choose_gamma(self.scores)

    def _assign(self, estimates: Estimates, gamma: float) -> Assignment:
        settings = self.settings
        if settings.method == "locb":
            return assign_certified(estimates, gamma, settings.max_groups, settings.delta)
        return assign_connected(estimates, settings.alpha)

    def _stability(self, found: Assignment, estimates: Estimates, gamma: float) -> Floats:
        settings, sums = self.settings, self.sums
        done = 0

        rng = random_stream(settings.seed, "rewards")

        def cluster(users: Ints) -> Ints:
            nonlocal done
            done += 1
            self.report("stability", done / settings.replicates)
            rows = sums.block(users)
            noise = draw_noise(rows, sums.dim, self.noise, rng)
            if settings.method != "eloc":
                theta = estimates.theta[users] + ridge_solutions(rows, noise)
                return self._assign(Estimates(theta, estimates.radii[users]), gamma).labels
            rows[:, : sums.dim] += noise
            part = dataclasses.replace(sums, counts=sums.counts[users], rows=rows)
            noisy = self.population._replace(noise=2.0 * self.noise)
            return self._assign_by_evidence(self._fit(rows, gamma, noisy), part, noisy).labels

        if not len(found.centres) or not settings.replicates:
            return np.full(len(found.centres), np.nan)
        return measure_stability(
            found.labels, len(found.centres), cluster, self.compared, settings.replicates, settings.seed
        )
