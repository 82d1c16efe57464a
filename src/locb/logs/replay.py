"""Replay of a learning policy on a log, by rejection sampling with propensities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.confidence_intervals import ci_half_width
from locb.logs.bootstrap import Interval, random_stream
from locb.logs.log import Log
from locb.logs.saved_replays import SavedReplays
from locb.logs.targets import LearningTarget

MAX_CACHED_OFFERS = 10_000  # lists of arms whose contexts are computed once
PROGRESS_STEP = 2048  # decisions between two reports of progress

Progress = Callable[[float], None]


class Terms(NamedTuple):
    """Numerator and denominator of an estimator for each decision: the value is the ratio of their sums."""

    numerator: Floats
    denominator: Floats


@dataclass(frozen=True)
class ReplayRun:
    """Result of the replay of a learning policy.

    Attributes
    ----------
    accepted : (accepted,) ints
        Decisions that were accepted, as if the policy had made them itself, in the order of time.
    rate : float
        Expected share of accepted decisions: the smallest propensity.
    value, difference : Interval
        Mean reward of the accepted decisions, and its difference from the baseline.
    """

    accepted: Ints
    rate: float
    value: Interval
    difference: Interval


def replay(
    log: Log,
    target: LearningTarget,
    baseline: Terms,
    samples: int,
    seed: int,
    progress: Progress | None = None,
    saved: SavedReplays | None = None,
) -> ReplayRun:
    """Let a new policy make the decisions of a log, and learn from those in which it chooses the logged arm.

    A decision with propensity p is used with probability M / p, where M is the smallest propensity of the log. If the
    policy then chooses the logged arm, the decision is accepted: the policy learns its reward. Whatever the policy
    chooses, the probability of acceptance is M. Accepted decisions therefore have the same distribution as decisions
    that the policy makes itself, and their mean reward is an unbiased estimate.

    What a policy learns influences all later decisions. The interval therefore comes from replays of new policies on
    bootstrap samples of users: it is the 95% interval of Student's t with the standard deviation of their results.

    Parameters
    ----------
    log : Log
        Log in which all rewards and propensities are known, in the order of time.
    target : LearningTarget
        The policy.
    baseline : Terms
        Terms of the baseline, for the difference.
    samples : int
        Number of bootstrap samples, at least 2.
    seed : int
        Random seed of rejections, samples and policies.
    progress : callable, optional
        Called with the share of finished work.
    saved : SavedReplays, optional
        Finished replays, which are not computed again.
    """
    smallest = float(log.propensities.min())
    rng = random_stream(seed, "replay")
    values, differences = [], []
    accepted = np.empty(0, np.int64)
    clusters = _decisions_by_user(log)
    for number in range(samples + 1):
        rows, users = np.arange(len(log)), log.users
        if number:
            rows, users = _sample_users(log, clusters, rng)
        used = np.flatnonzero(rng.random(len(rows)) < smallest / log.propensities[rows])
        report = None if progress is None else _scaled(progress, number, samples + 1)
        taken = rows[used[_replay_once(log, target, seed + number, rows[used], users[used], report, saved)]]
        if number == 0:
            accepted = taken
        if taken.size:
            base = baseline.numerator[rows].sum() / baseline.denominator[rows].sum()
            values.append(float(log.rewards[taken].mean()))
            differences.append(values[-1] - float(base))
    return ReplayRun(accepted, smallest, _interval(accepted, values), _interval(accepted, differences))


def replay_accepted(log: Log, target: LearningTarget, rows: Ints, seed: int, saved: SavedReplays | None = None) -> Ints:
    """Return the decisions that are accepted if a new policy makes only the decisions ``rows``; see ``replay``."""
    rng = random_stream(seed, "replay")
    used = rows[rng.random(len(rows)) < float(log.propensities.min()) / log.propensities[rows]]
    return used[_replay_once(log, target, seed, used, log.users[used], None, saved)]


def _interval(accepted: Ints, values: list[float]) -> Interval:
    """Return the first value, with an interval from the standard deviation of the other values."""
    if not accepted.size:
        return Interval(math.nan)
    spread = float(ci_half_width(values[1:])) * math.sqrt(max(len(values) - 1, 1))  # of one value, not of the mean
    return Interval(values[0], values[0] - spread, values[0] + spread)


def _scaled(progress: Progress, number: int, count: int) -> Progress:
    return lambda share: progress((number + share) / count)


def _decisions_by_user(log: Log) -> list[Ints]:
    """Return the decisions of each user; an empty list if the log has no user ids."""
    if not log.has_users:
        return []
    order = np.argsort(log.users, kind="stable")
    ends = np.flatnonzero(np.diff(log.users[order])) + 1
    return np.split(order, ends)


def _sample_users(log: Log, clusters: list[Ints], rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return decisions of users who are drawn with replacement, in the order of time, and their new user indices."""
    if not clusters:
        rows = np.sort(rng.integers(len(log), size=len(log)))
        return rows, log.users[rows]
    drawn = rng.integers(len(clusters), size=len(clusters))
    rows = np.concatenate([clusters[user] for user in drawn])
    users = np.repeat(np.arange(len(drawn)), [len(clusters[user]) for user in drawn])
    order = np.argsort(rows, kind="stable")
    return rows[order], users[order]


def _replay_once(
    log: Log,
    target: LearningTarget,
    seed: int,
    rows: Ints,
    users: Ints,
    progress: Progress | None,
    saved: SavedReplays | None,
) -> Ints:
    """Return the positions in ``rows`` of the accepted decisions."""
    if saved is None or target.identity is None:
        return _compute_replay(log, target, seed, rows, users, progress)
    key = saved.key(target.identity, seed, rows, users)
    accepted = saved.get(key)
    if accepted is None:
        accepted = _compute_replay(log, target, seed, rows, users, progress)
        saved.put(key, accepted)
    return accepted


def _compute_replay(
    log: Log, target: LearningTarget, seed: int, rows: Ints, users: Ints, progress: Progress | None
) -> Ints:
    policy = target.make(seed)
    contexts: list[Floats] | None = None
    if len(log.offers) <= MAX_CACHED_OFFERS:
        parts = np.split(log.offers.rows, log.offers.offsets[1:-1])
        contexts = [np.ascontiguousarray(log.features[part]) for part in parts]
    offer, chosen, rewards = log.offer[rows].tolist(), log.chosen[rows].tolist(), log.rewards[rows].tolist()
    accepted = []
    for index, (t, user) in enumerate(zip(rows.tolist(), users.tolist(), strict=True)):
        offered = log.contexts(t) if contexts is None else contexts[offer[index]]
        arm = chosen[index]
        if policy.recommend(user, offered) == arm:
            policy.update(user, offered[arm], rewards[index])
            accepted.append(index)
        if progress is not None and index % PROGRESS_STEP == 0:
            progress(index / len(rows))
    return np.array(accepted, np.int64)


def learning_curve(rewards: Floats, points: int = 100) -> list[tuple[int, float]]:
    """Return the number of decisions, and their mean reward so far, at some points."""
    if not len(rewards):
        return []
    means = np.cumsum(rewards) / np.arange(1, len(rewards) + 1)
    at = np.unique(np.linspace(0, len(rewards) - 1, min(points, len(rewards))).astype(int))
    return [(int(index) + 1, float(means[index])) for index in at]
