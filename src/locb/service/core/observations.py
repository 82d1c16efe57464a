"""Teaching a policy what stands in the log: the same lessons in the same order leave the same policy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np

from locb.common.rounds import Rounds
from locb.policies import CompiledPolicy, Policy
from locb.policies.base.capabilities import SupportsCorrection, class_supports
from locb.service.store.schema import CORRECTION

FEW = 4  # so few lessons are learned one by one
_log = logging.getLogger("locb.service")


def learn(policy: Policy, observations: Sequence[Any]) -> None:
    """Learn all, in this order: rows with place, kind, learned, reward and context.

    A policy that cannot take one goes on without it: it is in the log already.
    """
    for correcting, run in groupby(observations, lambda observation: observation.kind == CORRECTION):
        some = list(run)
        if correcting or len(some) <= FEW or not isinstance(policy, CompiledPolicy):
            for observation in some:
                _learn_one(policy, observation)
        else:
            _learn_rounds(policy, some)


def _learn_rounds(policy: Policy, observations: Sequence[Any]) -> None:
    """Rounds of one arm each are what ``update`` does, many at a time."""
    users = np.array([observation.user_index for observation in observations])
    contexts = np.frombuffer(b"".join([observation.context for observation in observations]))
    rewards = np.array([[observation.reward] for observation in observations])
    policy.play(Rounds(users, contexts.reshape(len(observations), 1, policy.dim), rewards))


def _learn_one(policy: Policy, observation: Any) -> None:
    context = np.frombuffer(observation.context)
    try:
        if observation.kind == CORRECTION:
            if not class_supports(type(policy), SupportsCorrection):
                _log.warning("a late reward is not learned: %s cannot correct rewards", type(policy).__name__)
                return
            correctable = cast(SupportsCorrection, policy)
            correctable.correct(observation.user_index, context, observation.previous_reward, observation.reward)
        else:
            policy.update(observation.user_index, context, observation.reward)
    except Exception:
        _log.exception("the policy could not learn a reward of %g", observation.reward)
