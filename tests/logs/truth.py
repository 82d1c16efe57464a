"""Simulated logs whose truth is known: the value of a policy is computed from the environment, not from the log.

Every log has its own users, who are drawn from the users of one environment. Decisions of different users are therefore
independent, which the intervals assume.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import locb
from locb.common.arrays import Floats, Ints

N_USERS, N_ARMS, DECISIONS = 60, 5, 1500
LOGGING = np.array([0.9, -0.7, 0.6, -0.2, 0.0])  # weights of the logging policy
TARGET = np.array([-0.5, 1.0, 0.4, 0.8, 0.0])  # weights of the fixed policy that is evaluated


@cache
def environment() -> locb.Synthetic:
    return locb.Synthetic(n_users=2000, n_clusters=6, raw_dim=4, n_arms=N_ARMS, noise="bernoulli", seed=3)


def draw_rounds(seed: int, count: int = DECISIONS) -> locb.Rounds:
    """Return rounds of ``N_USERS`` users who are drawn from the environment, with rewards of 0 and 1."""
    env, rng = environment(), np.random.default_rng((seed, 1))
    contexts = env.rounds(count, seed=seed).contexts
    people = rng.integers(env.n_users, size=N_USERS)
    users = rng.integers(N_USERS, size=count)
    means = np.einsum("tkd,td->tk", contexts, env.theta[people[users]])
    return locb.Rounds(users, contexts, (rng.random(means.shape) < means).astype(float), means)


def logging_probabilities(contexts: Floats) -> Floats:
    """Return the probability of each arm by the logging policy: a softmax, mixed with the uniform distribution."""
    scores = np.exp(2.0 * contexts @ LOGGING)
    softmax: Floats = scores / scores.sum(axis=1, keepdims=True)
    return 0.5 * softmax + 0.5 / contexts.shape[1]


def draw_log(seed: int, uniform: bool = False) -> locb.Log:
    """Return the log of the logging policy, or of a policy that chooses uniformly."""
    rounds = draw_rounds(seed)
    probabilities = logging_probabilities(rounds.contexts)
    if uniform:
        probabilities[:] = 1.0 / N_ARMS
    rng = np.random.default_rng((seed, 2))
    chosen = (rng.random(len(rounds))[:, None] > np.cumsum(probabilities, axis=1)).sum(axis=1).clip(max=N_ARMS - 1)
    return locb.Log.from_rounds(rounds, chosen, probabilities[np.arange(len(rounds)), chosen])


def target_choice(contexts: Floats) -> Ints:
    """Return the arm of the fixed policy for each round."""
    choice: Ints = np.argmax(contexts @ TARGET, axis=-1)
    return choice


def choose(user: str, arms: Any, contexts: Floats) -> int:
    return int(target_choice(contexts))


@cache
def true_value() -> float:
    """Return the mean reward of the fixed policy, over all users and 400,000 rounds of the environment."""
    env = environment()
    total = 0.0
    for seed in range(10_000, 10_004):
        contexts = env.rounds(100_000, seed=seed).contexts
        total += float((contexts[np.arange(len(contexts)), target_choice(contexts)] @ env.theta.mean(axis=0)).mean())
    return total / 4


@cache
def true_logged_value() -> float:
    """Return the mean reward of the logging policy."""
    env = environment()
    contexts = env.rounds(100_000, seed=20_000).contexts
    means = contexts @ env.theta.mean(axis=0)
    return float((logging_probabilities(contexts) * means).sum(axis=1).mean())


def play_online(name: str, seed: int, count: int) -> float:
    """Return the mean reward of a learning policy that plays ``count`` rounds of new users itself."""
    rounds = draw_rounds(seed, count)
    policy = locb.make_policy(name, n_users=N_USERS, dim=rounds.dim)
    return float(rounds.earned(policy.play(rounds)).mean())
