"""Adapters for coba: policies of locb as learners, and environments in both directions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
from coba.primitives import Environment as BaseEnvironment
from coba.primitives import Learner, SimulatedInteraction

from locb.common.rounds import Rounds
from locb.common.validation import ParameterError
from locb.environments import Environment
from locb.environments.recorded import RecordedRounds
from locb.interop.policy_adapter import PolicyAdapter, split_context
from locb.policies import Policy


class CobaLearner(Learner):  # type: ignore[misc]  # the type of the base class is not known
    """Learner of coba that uses a policy of locb.

    The context of an interaction is the user (an integer or text), or a mapping with the key "user" and further
    features. Actions are sequences of ``dim`` numbers, or any other actions of coba, whose features are hashed.

    Users get the indices of the policy in the order in which they arrive, and users are added to the policy if there
    are none left. With ``n_users`` or a policy object, an integer below the number of users is the index itself.

    Parameters
    ----------
    policy : Policy or str
        A policy, which learns in place, or a name in ``locb.POLICIES``.
    dim : int, optional
        Number of features, for a name. By default, the length of the first action, if actions are sequences of numbers.
    n_users : int, optional
        Initial number of users, for a name. By default, users are added as they arrive, and the first ``n_seeds`` users
        (30 by default) become seed users if the policy has seed users, as in ``locb.Recommender``.
    **parameters
        Further parameters of the policy, for a name.

    Examples
    --------
    >>> from locb import Synthetic
    >>> env = CobaEnvironment(Synthetic(n_users=10, n_clusters=2, seed=7), rounds=3)
    >>> learner = CobaLearner("linucb-ind", dim=6, n_users=10)
    >>> interaction = next(env.read())
    >>> learner.predict(interaction["context"], interaction["actions"])["action_prob"][1]
    1.0
    """

    def __init__(
        self, policy: Policy | str, *, dim: int | None = None, n_users: int | None = None, **parameters: Any
    ) -> None:
        self._adapter = PolicyAdapter(policy, dim=dim, n_users=n_users, **parameters)

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self._adapter.policy

    @property
    def user_ids(self) -> list[Any]:
        """Id of the user at each index of the policy; None for an index without a user."""
        return self._adapter.user_ids

    @property
    def params(self) -> Mapping[str, Any]:
        """Name and parameters of the policy, for the results of an experiment."""
        described = self._adapter.name
        return {"family": f"locb {described.partition('(')[0]}", "policy": described}

    def score(self, context: Any, actions: Any, action: Any) -> float:
        """Return the probability of an action: 1 if the policy recommends the action, else 0."""
        return float(actions[self._adapter.choose(context, actions)] == action)

    def predict(self, context: Any, actions: Any) -> dict[str, tuple[Any, float]]:
        """Return the recommended action and its probability, 1."""
        return {"action_prob": (actions[self._adapter.choose(context, actions)], 1.0)}

    def learn(self, context: Any, action: Any, reward: float, probability: float, **kwargs: Any) -> None:
        """Learn the reward of an action. ``probability`` is not used."""
        del probability, kwargs
        self._adapter.learn(context, action, reward)


class CobaEnvironment(BaseEnvironment):  # type: ignore[misc]  # the type of the base class is not known
    """Environment of coba with the rounds of an environment of locb.

    The context of an interaction is the user, and each action is a tuple with the features of an arm.

    Parameters
    ----------
    env : Environment
        Environment of locb.
    rounds : int
        Number of rounds.
    seed : int, default 0
        Random seed of the rounds, as in ``locb.simulate``.
    """

    def __init__(self, env: Environment, *, rounds: int, seed: int = 0) -> None:
        self.env, self.rounds, self.seed = env, rounds, seed

    @property
    def params(self) -> Mapping[str, Any]:
        """Environment and random seed, for the results of an experiment."""
        return {"env_type": f"locb {type(self.env).__name__}", "rounds": self.rounds, "seed": self.seed}

    def read(self) -> Iterator[SimulatedInteraction]:
        """Yield one interaction per round. Raise a ValueError if a reward is missing."""
        for block in self.env.stream(self.rounds, seed=self.seed):
            rows = block.reward_rows(0, len(block)).tolist()
            for user, contexts, row in zip(block.users.tolist(), block.contexts, rows, strict=True):
                rewards = row[: len(contexts)]
                if any(math.isnan(reward) for reward in rewards):
                    raise ValueError(f"coba needs the rewards of all actions, but those of user {user} are {rewards}")
                yield SimulatedInteraction(user, [tuple(x) for x in contexts.tolist()], rewards)


def from_coba(environment: Any, *, dim: int | None = None, rounds: int | None = None) -> RecordedRounds:
    """Return an environment of locb with the rounds of an environment of coba.

    Parameters
    ----------
    environment : coba environment
        An environment of coba with simulated interactions. The numbers of actions can differ.
    dim : int, optional
        Number of features of an arm. Required if the context has features, or if actions are not sequences of numbers:
        features are then hashed. The default is the length of the first action, which all actions must have.
    rounds : int, optional
        Number of interactions to read. By default, all.

    Returns
    -------
    RecordedRounds
        Environment whose users are numbered in the order of their first interaction, unless all are integers.
    """
    interactions = list(islice(environment.read(), rounds))
    if not interactions:
        raise ParameterError("environment", " must have at least one interaction, not 0")
    split = [split_context(interaction["context"]) for interaction in interactions]
    first = interactions[0]["actions"][0]
    if dim is None:
        if split[0][1] or isinstance(first, str | Mapping) or not hasattr(first, "__len__"):
            raise ParameterError(
                "dim", " is required, because contexts have features or actions are not lists of numbers"
            )
        dim = len(first)
    ids = [user for user, _ in split]
    numbers = {user: index for index, user in enumerate(dict.fromkeys(ids))}
    if all(isinstance(user, int) and user >= 0 for user in numbers):
        numbers = {user: user for user in numbers}
    adapter = PolicyAdapter("linucb-one", dim=dim)  # encodes the features; it does not learn
    contexts = [adapter.encode(found[1], item["actions"]) for found, item in zip(split, interactions, strict=True)]
    given = [_rewards(interaction["rewards"], interaction["actions"]) for interaction in interactions]
    users, sizes = np.array([numbers[user] for user in ids]), np.array([len(offered) for offered in contexts])
    if sizes.min() == sizes.max():
        return RecordedRounds(Rounds(users, np.array(contexts), np.array(given)))
    is_arm = np.arange(sizes.max()) < sizes[:, None]
    arms, rewards = np.full(is_arm.shape, -1), np.full(is_arm.shape, np.nan)
    arms[is_arm], rewards[is_arm] = np.arange(sizes.sum()), np.concatenate(given)
    return RecordedRounds(Rounds.of_items(users, np.concatenate(contexts), rewards, arms=arms))


def _rewards(rewards: Any, actions: Any) -> list[float]:
    return [float(rewards(action)) for action in actions] if callable(rewards) else [float(value) for value in rewards]
