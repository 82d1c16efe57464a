"""Learning in the service: an observation that the policy rejects is in the log, so it is skipped and reported."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import Any

from locb.policies import Policy
from locb.policies.base.reward_scale import HIGHEST, LOWEST, report_problems_to
from locb.recommender import observations as core

_log = logging.getLogger("locb.service")


def learn(
    policy: Policy, observations: Sequence[Any], request_ids: Mapping[int, str | None] = MappingProxyType({})
) -> None:
    """Update a policy with observations from the event log, in the given order.

    Parameters
    ----------
    policy : Policy
        The policy to update.
    observations : sequence of rows
        Rows with the columns seq, user_index, kind, previous_reward, reward and context.
    request_ids : mapping of int to str or None
        Id of the request that sent each reward, for log messages, by the sequence number of the observation.
    """

    def log_rejected(policy: Policy, observation: Any, error: Exception | None) -> None:
        extra = {"request_id": request_ids.get(observation.seq)}
        if error is None:
            _log.warning(
                "the policy did not learn the correction of a reward: %s has no method correct(); the reward is "
                "stored. To learn corrections, implement correct()",
                type(policy).__name__,
                extra=extra,
            )
            return
        text = "the policy rejected a reward of %g, which stays in the log but is not learned"
        _log.error(text, observation.reward, exc_info=error, extra=extra)

    def watch(observations: Sequence[Any]) -> AbstractContextManager[None]:
        return report_problems_to(partial(_log_scale_problem, observations, request_ids))

    core.learn(policy, observations, log_rejected, watch)


def _log_scale_problem(observations: Sequence[Any], request_ids: Mapping[int, str | None], problem: str) -> None:
    """Log a problem of the scale of rewards, with the ids of the requests that sent the rewards out of range, if any.

    A problem of other rewards, which are all too small, has the ids of all these observations.
    """
    out_of_range = [row for row in observations if not LOWEST <= row.reward <= HIGHEST]
    found = dict.fromkeys(request_ids.get(row.seq) for row in out_of_range or observations)
    senders = [request_id for request_id in found if request_id is not None]
    _log.warning(
        "%s, but the policy assumes rewards of about 0 to 1, and its choices may be poor: start the service with a new "
        "store and with --reward-range low,high, the lowest and the highest reward",
        problem,
        extra={"request_ids": senders} if senders else None,
    )
