"""Engine of the service: the engine of ``locb.recommender`` with JSON responses, HTTP problems and the event log."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

from locb.policies.base.policy import ServablePolicy
from locb.recommender.commands import CachedDecision
from locb.recommender.default_rewards import DefaultRewards
from locb.recommender.engine import Engine
from locb.recommender.user_index import UserIndex
from locb.service import errors
from locb.service.core.decision_encoding import DecisionEncoder
from locb.service.core.learning import learn
from locb.service.packed_responses import chosen_context
from locb.service.store.log import EventLog


class ServiceEngine(Engine):
    """Engine whose responses are JSON, whose problems are HTTP errors, and which reports rejected rewards as messages.

    The parameters are those of ``Engine``.
    """

    def __init__(
        self,
        policy: ServablePolicy,
        users: UserIndex,
        seq: int,
        *,
        default_rewards: DefaultRewards | None = None,
        cache_size: int,
    ) -> None:
        super().__init__(
            policy,
            users,
            seq,
            encoder=DecisionEncoder(users, policy.dim),
            problems=errors,
            learn=learn,
            default_rewards=default_rewards,
            cache_size=cache_size,
        )


def unrewarded_decisions(log: EventLog, dim: int) -> Iterator[tuple[str, CachedDecision]]:
    """Yield the id and the fields of each decision in the log that waits for a reward, in the order of ``active_at``.

    ``dim`` is the number of features per arm.
    """
    waiting = []  # without the requests and responses, which take more memory
    for row in (row for chunk in log.unrewarded_decisions() for row in chunk):
        context = chosen_context(row.request, row.response, dim)
        decision = CachedDecision(row.seq, row.user_index, context, row.time, row.active_at)
        waiting.append((row.active_at, row.id.decode(), decision))
    for _, decision_id, decision in sorted(waiting, key=itemgetter(0)):
        yield decision_id, decision
