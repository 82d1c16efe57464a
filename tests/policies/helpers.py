"""Small trained policies of every kind, and functions to compare their states."""

from typing import Any

import numpy as np

import locb

N, DIM, ARMS = 12, 3, 4
KINDS: dict[str, dict[str, Any]] = {
    "linucb-ind": {},
    "linucb-one": {},
    "club": {"alpha2": 0.6},
    "club-random": {"alpha2": 0.6, "graph": "erdos-renyi"},
    "sclub": {"alpha_theta": 0.7},
    "locb": {"n_seeds": 5, "gamma": 1.0},
    "locb-pooled": {"n_seeds": 5, "bonus": "pooled", "radius": "clustering"},
    "locb-theory": {"n_seeds": 5, "radius": "theory", "min_eigenvalue": 0.2},
    "locb-certificate": {"n_seeds": 5, "gamma": 3.0, "radius": "ellipsoid", "stop": "certificate"},
    "locb-random-ties": {"n_seeds": 5, "ties": "random"},
    "locb-safe": {"n_seeds": 5, "gamma": 4.0, "alpha": 0.2, "safe": True},  # final clusters of all users
    "club-safe": {"alpha2": 9.0, "alpha": 0.1, "safe": True},  # one component of all users
    "sclub-safe": {"alpha_theta": 9.0, "alpha_p": 9.0, "alpha": 0.1, "safe": True},  # one cluster of all users
    "eloc": {"n_seeds": 5},
    "lints-one": {"alpha": 0.2},
    "lints-ind": {"alpha": 0.2},
    "hybrid-linucb": {},
    "mixed-effects": {},
    "mixed-effects-thompson": {"explore": "thompson"},
    "dynucb": {"n_clusters": 3},
    "cab": {"alpha": 0.1, "gamma": 0.5},
    "rclumb": {"alpha2": 0.5},
    "linucb-ind-float32": {"dtype": "float32"},
    "locb-float32": {"n_seeds": 5, "gamma": 1.0, "dtype": "float32"},
    "eloc-float32": {"n_seeds": 5, "robust": False, "dtype": "float32"},
}

CORRECTED = [kind for kind in KINDS if kind != "cab"]  # CAB does not record which users have learned a reward
RANDOM = ("lints-one", "lints-ind", "mixed-effects-thompson")  # kinds that draw random numbers for each choice


def name_of(kind: str) -> str:
    """Return the name of the policy of a kind."""
    return max((name for name in locb.POLICIES if kind.startswith(name)), key=len)


def make_rounds(rounds: int = 300, seed: int = 1) -> locb.Rounds:
    return locb.Synthetic(n_users=N, n_clusters=2, raw_dim=DIM - 1, n_arms=ARMS, seed=5).rounds(rounds, seed=seed)


def make(kind: str, rounds: int = 300, **more: Any) -> Any:
    policy = locb.make_policy(name_of(kind), n_users=N, dim=DIM, seed=3, **KINDS[kind] | more)
    if rounds:
        policy.play(make_rounds(rounds))
    return policy


def state_of(policy: Any) -> dict[str, bytes]:
    """Return the bytes of each array of the state of a policy, by name."""
    return {name: array.tobytes() for name, array in policy._state._asdict().items()}


def contexts(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((ARMS, DIM))


class Popular(locb.Policy):
    """Custom policy without optional capabilities: chooses the arm with the largest first feature, sums the rewards."""

    def __init__(self, *, n_users: int, dim: int) -> None:
        super().__init__(n_users=n_users, dim=dim)
        self.earned = 0.0

    def recommend(self, user: int, contexts: Any) -> int:
        return int(np.argmax(contexts[:, 0]))

    def update(self, user: int, context: Any, reward: float) -> None:
        self.earned += reward
