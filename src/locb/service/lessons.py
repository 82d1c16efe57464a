"""Teaching a policy what stands in the log: the same lessons in the same order leave the same policy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from locb.policies import CompiledPolicy, Policy
from locb.rounds import Rounds
from locb.service.store.tables import CORRECTION

FEW = 4  # so few lessons are learned one by one
_log = logging.getLogger("locb.service")


def learn(policy: Policy, lessons: Sequence[Any]) -> None:
    """Learn all, in this order: rows with place, kind, learned, reward and context.

    A policy that cannot take one goes on without it: it is in the log already.
    """
    for correcting, run in groupby(lessons, lambda lesson: lesson.kind == CORRECTION):
        some = list(run)
        if correcting or len(some) <= FEW or not isinstance(policy, CompiledPolicy):
            for lesson in some:
                _learn_one(policy, lesson)
        else:
            _learn_rounds(policy, some)


def _learn_rounds(policy: Policy, lessons: Sequence[Any]) -> None:
    """Rounds of one arm each are what ``update`` does, many at a time."""
    users = np.array([lesson.place for lesson in lessons])
    contexts = np.frombuffer(b"".join([lesson.context for lesson in lessons]))
    rewards = np.array([[lesson.reward] for lesson in lessons])
    policy.play(Rounds(users, contexts.reshape(len(lessons), 1, policy.dim), rewards))


def _learn_one(policy: Policy, lesson: Any) -> None:
    context = np.frombuffer(lesson.context)
    try:
        if lesson.kind == CORRECTION:
            policy.correct(lesson.place, context, lesson.learned, lesson.reward)
        else:
            policy.update(lesson.place, context, lesson.reward)
    except Exception:
        _log.exception("the policy could not learn a reward of %g", lesson.reward)
