"""Rounds of a run after which regret and clusters are recorded: the points of the curves in reports."""

from __future__ import annotations

import numpy as np

from locb.common.arrays import Ints

MAX_CHECKPOINTS = 200
MIN_CLUSTER_CHECKPOINTS, MAX_CLUSTER_CHECKPOINTS = 12, 24


def regret_checkpoints(rounds: int) -> Ints:
    """Return the rounds after which regret is recorded: at most ``MAX_CHECKPOINTS``, from the first to the last."""
    return np.unique(np.linspace(1, rounds, min(MAX_CHECKPOINTS, rounds)).round().astype(np.int64))


def cluster_checkpoints(rounds: int, n_users: int) -> tuple[int, ...]:
    """Return the rounds after which clusters are recorded: 12 to 24, denser at the start, including the last round.

    The time to record clusters grows with the number of users, and the time of a run grows with its rounds. Therefore
    the number of checkpoints grows with the number of rounds per user. Runs of few rounds have fewer than 12.
    """
    count = min(rounds, MAX_CLUSTER_CHECKPOINTS, max(MIN_CLUSTER_CHECKPOINTS, rounds // n_users))
    return tuple(np.unique(np.ceil(rounds * (np.arange(1, count + 1) / count) ** 2).astype(np.int64)).tolist())
