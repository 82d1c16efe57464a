"""Adapter for Gymnasium: an environment of locb with the interface ``reset`` and ``step``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from locb.common.validation import MAX_CONTEXT, ParameterError, check_int
from locb.environments import Environment


class GymnasiumEnvironment(gymnasium.Env):  # type: ignore[misc]  # the type of the base class is not known
    """Environment of Gymnasium with the rounds of an environment of locb.

    An observation has the keys "user", the user of the round, and "arms", the features of each arm (k, d). The action
    is an arm. An episode ends, as ``truncated``, after ``rounds`` rounds.

    Parameters
    ----------
    env : Environment
        Environment of locb.
    rounds : int
        Number of rounds per episode, at least 1.
    seed : int, default 0
        Random seed of the rounds of the first episode, as in ``locb.simulate``. ``reset(seed=…)`` sets another seed;
        each ``reset`` without a seed increases the seed by 1.

    Examples
    --------
    >>> from locb import Synthetic
    >>> env = GymnasiumEnvironment(Synthetic(n_users=10, n_clusters=2, n_arms=4, seed=7), rounds=100)
    >>> observation, info = env.reset(seed=1)
    >>> observation["arms"].shape, env.action_space
    ((4, 6), Discrete(4))
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as in the base class

    def __init__(self, env: Environment, *, rounds: int, seed: int = 0) -> None:
        self.env, self.n_rounds = env, check_int("rounds", rounds, 1)
        self._next_seed, self._round = check_int("seed", seed, 0), 0
        self._rounds = env.rounds(0)
        arms = gymnasium.spaces.Box(-MAX_CONTEXT, MAX_CONTEXT, (env.n_arms, env.dim), np.float64)
        self.observation_space = gymnasium.spaces.Dict({"user": gymnasium.spaces.Discrete(env.n_users), "arms": arms})
        self.action_space = gymnasium.spaces.Discrete(env.n_arms)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode, and return its first observation. ``options`` is not used."""
        super().reset(seed=seed, options=options)
        used = self._next_seed if seed is None else seed
        self._next_seed = used + 1
        self._rounds, self._round = self.env.rounds(self.n_rounds, seed=used), 0
        if self._rounds.sizes is not None:
            raise ParameterError("env", " must have the same number of arms in all rounds, for a fixed action space")
        return self._observation(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Return the next observation, the reward of the chosen arm, and its regret in ``info``."""
        if self._round >= len(self._rounds):
            raise RuntimeError("step was called before reset, or after the end of the episode; call reset first")
        arm, t = check_int("action", action, 0, self.env.n_arms - 1), self._round
        one = self._rounds.slice(t, t + 1)
        reward, regret = one.reward(0, arm), float(one.regret(np.array([arm]))[0])
        self._round += 1
        ends = self._round == len(self._rounds)
        return self._observation(), reward, False, ends, {"regret": regret}

    def _observation(self) -> dict[str, Any]:
        """Return the observation of the current round; after the last round, that of the last round."""
        t = min(self._round, len(self._rounds) - 1)
        return {"user": np.int64(self._rounds.users[t]), "arms": self._rounds.contexts[t]}
