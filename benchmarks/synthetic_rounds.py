"""Generator of synthetic rounds whose cost does not depend on the number of users."""

import numpy as np

import locb

N_CLUSTERS = 5


def make_block(rounds: int, users: int, arms: int, features: int, seed: int) -> locb.Rounds:
    """Return random rounds. Each arm has a random unit vector of features.

    Users belong to five clusters, and each cluster has its own preference vector. The probability of reward 1 is linear
    in the inner product of the features and the preferences.
    """
    rng = np.random.default_rng([users, seed])
    x = rng.standard_normal((rounds, arms, features))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    preferences = np.random.default_rng(0).standard_normal((N_CLUSTERS, features))
    preferences /= np.linalg.norm(preferences, axis=1, keepdims=True)
    served = rng.integers(users, size=rounds)
    means = 0.5 + 0.5 * np.einsum("tkd,td->tk", x, preferences[served % N_CLUSTERS])
    return locb.Rounds(served, x, (rng.random(means.shape) < means).astype(float))
