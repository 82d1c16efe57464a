"""Custom policy: an epsilon-greedy linear bandit with one model per user."""

from typing import Annotated, Any

import numpy as np

import locb
from locb.policies.parameters import Dim, NUsers, Seed

Epsilon = Annotated[float, locb.Parameter("Probability of showing a random arm.", minimum=0.0, maximum=1.0)]


class Greedy(locb.Policy):
    """Policy that shows a random arm with probability epsilon, otherwise the arm with the highest estimated reward."""

    @locb.validate_parameters
    def __init__(self, *, n_users: NUsers, dim: Dim, epsilon: Epsilon = 0.05, seed: Seed = 0) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self.epsilon = epsilon
        self.rng = np.random.default_rng(seed)
        self.gram = np.tile(np.eye(dim), (n_users, 1, 1))  # I + sum of x xᵀ, one matrix per user
        self.vector = np.zeros((n_users, dim))  # sum of reward · x, one vector per user

    def recommend(self, user: int, contexts: Any) -> int:
        """Return the index of a random arm with probability epsilon, otherwise of the arm with the highest estimate."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(len(contexts)))
        theta = np.linalg.solve(self.gram[user], self.vector[user])
        return int(np.argmax(contexts @ theta))

    def update(self, user: int, context: Any, reward: float) -> None:
        """Add the observation to the sums of the user."""
        self.gram[user] += np.outer(context, context)
        self.vector[user] += reward * context
