"""Replay of a learning policy on a log, by rejection sampling with propensities."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, IndexArray, Ints
from locb.evaluation.confidence_intervals import ci_half_width
from locb.logs.bootstrap import Interval, random_stream
from locb.logs.log import Log
from locb.logs.row_arrays import RowBuffer, blocks, by_block, find, number_distinct, store, take
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
    clusters = number_distinct(log.users) if log.has_users else None
    for number in range(samples + 1):
        rows, users = by_block(np.int64, len(log), lambda span: np.arange(span.start, span.stop)), log.users
        if number:
            rows, users = _sample_users(log, clusters, rng)
        used = _draw_used(log, rows, smallest, rng)
        report = None if progress is None else _scaled(progress, number, samples + 1)
        replayed = take(rows, used)
        taken = replayed[_replay_once(log, target, seed + number, replayed, take(users, used), report, saved)]
        if number == 0:
            accepted = taken
        if taken.size:
            base = take(baseline.numerator, rows).sum() / take(baseline.denominator, rows).sum()
            values.append(float(log.rewards[taken].mean()))
            differences.append(values[-1] - float(base))
    return ReplayRun(accepted, smallest, _interval(accepted, values), _interval(accepted, differences))


def replay_accepted(log: Log, target: LearningTarget, rows: Ints, seed: int, saved: SavedReplays | None = None) -> Ints:
    """Return the decisions that are accepted if a new policy makes only the decisions ``rows``; see ``replay``."""
    rng = random_stream(seed, "replay")
    used = take(rows, _draw_used(log, rows, float(log.propensities.min()), rng))
    accepted: Ints = used[_replay_once(log, target, seed, used, take(log.users, used), None, saved)]
    return accepted


def _draw_used(log: Log, rows: Ints, smallest: float, rng: np.random.Generator) -> Ints:
    """Return the positions in ``rows`` of decisions that are used, each with the probability M / p."""
    return find(
        len(rows),
        lambda span: rng.random(span.stop - span.start) < smallest / log.propensities[rows[span]],
    )


def _interval(accepted: Ints, values: list[float]) -> Interval:
    """Return the first value, with an interval from the standard deviation of the other values."""
    if not accepted.size:
        return Interval(math.nan)
    spread = float(ci_half_width(values[1:])) * math.sqrt(max(len(values) - 1, 1))  # of one value, not of the mean
    return Interval(values[0], values[0] - spread, values[0] + spread)


def _scaled(progress: Progress, number: int, count: int) -> Progress:
    return lambda share: progress((number + share) / count)


def _sample_users(log: Log, clusters: tuple[IndexArray, int] | None, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return decisions of users who are drawn with replacement, in the order of time, and their new user indices.

    ``clusters`` are the users, numbered without gaps, and their number; None if the log has no user ids.
    """
    count = len(log)
    if clusters is None:
        times_drawn = np.zeros(count, np.int32)
        for span in blocks(count):
            np.add.at(times_drawn, rng.integers(count, size=span.stop - span.start), 1)
        parts = (np.repeat(np.arange(span.start, span.stop), times_drawn[span]) for span in blocks(count))
        rows = store(np.int64, parts)
        return rows, take(log.users, rows)
    cluster_of, n_clusters = clusters
    drawn = rng.integers(n_clusters, size=n_clusters)
    draws = np.argsort(drawn, kind="stable")  # draws of the first user, of the second user, …
    times = np.bincount(drawn, minlength=n_clusters)
    starts = np.cumsum(times) - times
    row_buffer, user_buffer = RowBuffer(np.int64), RowBuffer(np.int64)
    for span in blocks(count):
        cluster = cluster_of[span]
        copies = times[cluster]
        row_buffer.append(np.repeat(np.arange(span.start, span.stop), copies))
        number = np.arange(int(copies.sum())) - np.repeat(np.cumsum(copies) - copies, copies)  # of the copy of a row
        user_buffer.append(draws[np.repeat(starts[cluster], copies) + number])
    return row_buffer.build(), user_buffer.build()


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
    accepted = array("q")
    for start in range(0, len(rows), PROGRESS_STEP):
        if progress is not None:
            progress(start / len(rows))
        part, indices = slice(start, start + PROGRESS_STEP), rows[start : start + PROGRESS_STEP]
        columns = indices, users[part], log.offer[indices], log.chosen[indices], log.rewards[indices]
        values = zip(*(column.tolist() for column in columns), strict=True)
        for index, (t, user, offer, arm, reward) in enumerate(values, start):
            offered = log.contexts(t) if contexts is None else contexts[offer]
            if policy.recommend(user, offered) == arm:
                policy.update(user, offered[arm], reward)
                accepted.append(index)
    return np.array(accepted, np.int64)


def learning_curve(rewards: Floats, points: int = 100) -> list[tuple[int, float]]:
    """Return the number of decisions, and their mean reward so far, at some points."""
    if not len(rewards):
        return []
    means = np.cumsum(rewards) / np.arange(1, len(rewards) + 1)
    at = np.unique(np.linspace(0, len(rewards) - 1, min(points, len(rewards))).astype(int))
    return [(int(index) + 1, float(means[index])) for index in at]
