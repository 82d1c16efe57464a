"""Batches of bandit rounds: the user, the contexts of the arms and the rewards of every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.common.validation import MAX_REWARD, check_array


@dataclass(frozen=True)
class Rounds:
    """A batch of rounds with the rewards of all arms, so that every policy can play the same batch.

    Contiguous float64 arrays are stored without a copy. Do not change such an array afterwards.

    Parameters
    ----------
    users : (T,) array of int
        The user of each of T rounds, as an index from 0.
    contexts : (T, k, d) array of float
        The d features of each of the k arms that a round offers. Absolute values are at most 1e6.
    rewards : (T, k) array of float
        The reward that each arm would give. Absolute values are at most 1e100.
    means : (T, k) array of float, default None
        The expected reward of each arm, if it is known. ``regret`` uses ``means`` if given, otherwise ``rewards``.

    Raises
    ------
    ValueError
        If the shapes do not match, or a value is negative (``users``), not finite, or too large.

    Examples
    --------
    >>> rounds = Rounds(users=[0, 1], contexts=[[[1, 0], [0, 1]]] * 2, rewards=[[1, 0], [0, 1]])
    >>> len(rounds), rounds.n_arms, rounds.dim
    (2, 2, 2)
    >>> rounds.regret([0, 0]).tolist()
    [0.0, 1.0]
    """

    users: Ints
    contexts: Floats
    rewards: Floats
    means: Floats | None = None

    def __post_init__(self) -> None:
        """Check shapes and values, so that policies need not check each round."""
        users = np.asarray(self.users)
        if users.ndim != 1 or (users.size and users.dtype.kind not in "iu"):
            raise ValueError(
                f"users must be an array of one integer per round, not {users.dtype} of shape {users.shape}"
            )
        users = users.astype(np.int64)
        if users.size and users.min() < 0:
            raise ValueError(f"users must not be negative, but users[{users.argmin()}] is {users.min()}")
        same_length = f" because users has length {users.size}"
        contexts = check_array("contexts", self.contexts, (users.size, None, None), because=same_length)
        if contexts.shape[1] == 0 or contexts.shape[2] == 0:
            raise ValueError(f"contexts must have at least one arm and one feature, not shape {contexts.shape}")
        shape = (users.size, contexts.shape[1])
        object.__setattr__(self, "users", users)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "rewards", check_array("rewards", self.rewards, shape, MAX_REWARD))
        if self.means is not None:
            object.__setattr__(self, "means", check_array("means", self.means, shape, MAX_REWARD))

    def __len__(self) -> int:
        return int(self.users.size)

    def __repr__(self) -> str:
        means = "" if self.means is None else ", with expected rewards"
        return f"Rounds({len(self):,} rounds, {self.n_arms} arms, {self.dim} features{means})"

    @property
    def n_arms(self) -> int:
        """The number of arms per round."""
        return int(self.contexts.shape[1])

    @property
    def dim(self) -> int:
        """The number of features per arm."""
        return int(self.contexts.shape[2])

    def slice(self, start: int, stop: int) -> Rounds:
        """Return the rounds from ``start`` to ``stop`` − 1."""
        if start == 0 and stop >= len(self):
            return self
        means = None if self.means is None else self.means[start:stop]
        return Rounds(self.users[start:stop], self.contexts[start:stop], self.rewards[start:stop], means)

    def check_chosen(self, chosen: Any) -> Ints:
        """Return ``chosen`` as an array (T,) of arm indices, or raise a ValueError that names the first invalid arm."""
        arms = np.asarray(chosen)
        if arms.shape != self.users.shape or (arms.size and arms.dtype.kind not in "iu"):
            raise ValueError(
                f"chosen must have one arm index (integer) for each of {len(self)} rounds, not {arms.dtype} of shape "
                f"{arms.shape}"
            )
        wrong = np.flatnonzero((arms < 0) | (arms >= self.n_arms))
        if wrong.size:
            raise ValueError(f"chosen must be from 0 to {self.n_arms - 1}, but chosen[{wrong[0]}] is {arms[wrong[0]]}")
        return arms.astype(np.int64)

    def earned(self, chosen: Any) -> Floats:
        """Return the reward of the chosen arm in each round, (T,)."""
        arms = self.check_chosen(chosen)
        taken: Floats = np.take_along_axis(self.rewards, arms[:, None], axis=1)[:, 0]
        return taken

    def regret(self, chosen: Any) -> Floats:
        """Return the regret of each round: the expected reward of the best arm minus that of the chosen arm, (T,).

        If ``means`` is None, ``rewards`` are used in place of the expected rewards.
        """
        arms = self.check_chosen(chosen)
        value = self.rewards if self.means is None else self.means
        lost: Floats = value.max(axis=1) - np.take_along_axis(value, arms[:, None], axis=1)[:, 0]
        return lost
