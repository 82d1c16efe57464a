"""Updates of the policy with observations: rewards, default rewards, and corrections of earlier rewards.

The same observations in the same order give the same policy, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any, TypeAlias, cast

import numpy as np

from locb.common.rounds import Rounds
from locb.policies import CompiledPolicy, Policy
from locb.policies.base.capabilities import SupportsCorrection, class_supports
from locb.recommender.events import CORRECTION

MIN_PLAYED = 5  # minimum number of observations for one call of ``play``; fewer are faster with ``update``
# Called with the policy, an observation that it rejects, and the error; None if it cannot learn corrections.
OnRejected: TypeAlias = Callable[[Policy, Any, Exception | None], None]
Watch: TypeAlias = Callable[[Sequence[Any]], AbstractContextManager[None]]


def _watch_nothing(_observations: Sequence[Any]) -> AbstractContextManager[None]:
    return nullcontext()


def learn(policy: Policy, observations: Sequence[Any], on_rejected: OnRejected, watch: Watch = _watch_nothing) -> None:
    """Update a policy with observations, in the given order.

    Parameters
    ----------
    policy : Policy
        The policy to update.
    observations : sequence of rows
        Rows with the columns seq, user_index, kind, previous_reward, reward and context.
    on_rejected : callable
        Called with the policy, an observation that it rejects, and the error. The error is None if the policy cannot
        learn corrections. If the call returns, the observation is skipped.
    watch : callable, optional
        Called with the observations of each call of the policy; the policy is called in the returned context.
    """
    for corrections, group in groupby(observations, lambda observation: observation.kind >= CORRECTION):
        run = list(group)
        if not corrections and len(run) >= MIN_PLAYED and isinstance(policy, CompiledPolicy):
            with watch(run):
                if _play(policy, run):
                    continue
        for observation in run:
            with watch([observation]):
                _learn_one(policy, observation, on_rejected)


def _play(policy: Policy, observations: Sequence[Any]) -> bool:
    """Learn many observations in one call: a round with a single arm has the effect of ``update``.

    Return False, and learn nothing, if the policy rejects one of the rewards.
    """
    users = np.array([observation.user_index for observation in observations])
    contexts = np.frombuffer(b"".join([observation.context for observation in observations]))
    rewards = np.array([[observation.reward] for observation in observations])
    try:
        policy.play(Rounds(users, contexts.reshape(len(observations), 1, policy.dim), rewards))
    except ValueError:  # raised before the first round
        return False
    return True


def _learn_one(policy: Policy, observation: Any, on_rejected: OnRejected) -> None:
    context = np.frombuffer(observation.context)
    try:
        if observation.kind >= CORRECTION:
            if not class_supports(type(policy), SupportsCorrection):
                on_rejected(policy, observation, None)
                return
            correctable = cast(SupportsCorrection, policy)
            correctable.correct(observation.user_index, context, observation.previous_reward, observation.reward)
        else:
            policy.update(observation.user_index, context, observation.reward)
    except Exception as error:  # a custom policy may raise any exception
        on_rejected(policy, observation, error)
