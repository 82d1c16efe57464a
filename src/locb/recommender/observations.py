"""Updates of the policy with observations: rewards, default rewards, and corrections of earlier rewards.

The same observations in the same order give the same policy, bit for bit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from locb.common.rounds import Rounds
from locb.policies import CompiledPolicy, Policy
from locb.policies.base.capabilities import SupportsCorrection, class_supports
from locb.policies.base.reward_scale import report_problems_to
from locb.service.store.schema import CORRECTION

MIN_PLAYED = 5  # minimum number of observations for one call of ``play``; fewer are faster with ``update``
_log = logging.getLogger("locb.service")


def learn(
    policy: Policy, observations: Sequence[Any], request_ids: Mapping[int, str | None] = MappingProxyType({})
) -> None:
    """Update a policy with observations, in the given order.

    An observation that the policy rejects is already in the event log. It is skipped, with a log message.

    Parameters
    ----------
    policy : Policy
        The policy to update.
    observations : sequence of rows
        Rows with the columns seq, user_index, kind, previous_reward, reward and context.
    request_ids : mapping of int to str or None
        Id of the request that sent each reward, for log messages, by the sequence number of the observation.
    """
    with report_problems_to(_log_scale_problem):
        _learn_all(policy, observations, request_ids)


def _log_scale_problem(problem: str) -> None:
    _log.warning(
        "%s, but the policy assumes rewards of about 0 to 1, and its choices may be poor: start the service with a new "
        "store and with --reward-range low,high, the lowest and the highest reward",
        problem,
    )


def _learn_all(policy: Policy, observations: Sequence[Any], request_ids: Mapping[int, str | None]) -> None:
    for corrections, group in groupby(observations, lambda observation: observation.kind >= CORRECTION):
        run = list(group)
        if corrections or len(run) < MIN_PLAYED or not isinstance(policy, CompiledPolicy) or not _play(policy, run):
            for observation in run:
                _learn_one(policy, observation, request_ids)


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


def _learn_one(policy: Policy, observation: Any, request_ids: Mapping[int, str | None]) -> None:
    context = np.frombuffer(observation.context)
    try:
        if observation.kind >= CORRECTION:
            if not class_supports(type(policy), SupportsCorrection):
                _log.warning(
                    "the policy did not learn the correction of a reward: %s has no method correct(); the reward is "
                    "stored. To learn corrections, implement correct()",
                    type(policy).__name__,
                    extra={"request_id": request_ids.get(observation.seq)},
                )
                return
            correctable = cast(SupportsCorrection, policy)
            correctable.correct(observation.user_index, context, observation.previous_reward, observation.reward)
        else:
            policy.update(observation.user_index, context, observation.reward)
    except Exception:
        _log.exception(
            "the policy rejected a reward of %g, which stays in the log but is not learned",
            observation.reward,
            extra={"request_id": request_ids.get(observation.seq)},
        )
