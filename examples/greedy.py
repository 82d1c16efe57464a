"""A policy of one's own: everyone has an estimate; most of the time show what it likes best, sometimes anything."""

from typing import Any

import numpy as np

import locb


class Greedy(locb.Policy):
    """Epsilon-greedy linear bandit, one a user.

    Parameters
    ----------
    n_users, dim : int
        Users and features.
    epsilon : float
        How often to try an arm at random.
    seed : int
        For the trying.
    """

    def __init__(self, *, n_users: int, dim: int, epsilon: float = 0.05, seed: int = 0) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self.epsilon = epsilon
        self.rng = np.random.default_rng(seed)
        self.gram = np.tile(np.eye(dim), (n_users, 1, 1))  # (n, d, d)
        self.vector = np.zeros((n_users, dim))  # (n, d)

    def recommend(self, user: int, contexts: Any) -> int:
        """The best arm by the user's own estimate, or any arm."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(len(contexts)))
        theta = np.linalg.solve(self.gram[user], self.vector[user])
        return int(np.argmax(contexts @ theta))

    def update(self, user: int, context: Any, reward: float) -> None:
        """Add the observation to the user's sums."""
        self.gram[user] += np.outer(context, context)
        self.vector[user] += reward * context
