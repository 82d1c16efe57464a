"""Conversion between rounds, which a policy can play, and the log of the decisions of a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.item_contexts import NO_ARM, ItemContexts
from locb.common.rounds import Rounds
from locb.common.validation import check_array
from locb.logs.log import Log, Offers, check_propensities


def rounds_to_log(rounds: Rounds, chosen: Any, propensities: Any = None) -> Log:
    """Return the log of a policy that chose ``chosen`` in ``rounds``; see :meth:`locb.Log.from_rounds`."""
    count, k, d = rounds.contexts.shape
    chosen = rounds.check_chosen(chosen)
    known = np.full(count, np.nan) if propensities is None else check_array("propensities", propensities, (count,))
    check_propensities(known)
    offer, named = np.arange(count), np.tile(np.arange(k, dtype=np.int32), count)
    sizes = np.full(count, k) if rounds.sizes is None else rounds.sizes
    if isinstance(rounds.contexts, ItemContexts):
        features, arms = rounds.contexts.items, rounds.contexts.arms
        if arms.strides[0] == 0 and count:  # one list for all rounds
            arms, sizes, offer = arms[:1], sizes[:1], np.zeros(count, np.int64)
        rows = named = arms[arms >= 0].astype(np.int32)
    else:
        features, rows = rounds.contexts.reshape(count * k, d), np.arange(count * k, dtype=np.int32)
    if rounds.arm_ids is None:
        named = np.full(len(rows), -1, np.int32)
    user_ids = range(int(rounds.users.max(initial=-1)) + 1) if rounds.user_ids is None else rounds.user_ids
    return Log(
        users=rounds.users,
        user_ids=[str(user) for user in user_ids],
        offer=offer,
        offers=Offers(np.concatenate([[0], np.cumsum(sizes)]), named, rows),
        arm_ids=() if rounds.arm_ids is None else [str(arm) for arm in rounds.arm_ids],
        features=features,
        chosen=chosen,
        rewards=rounds.earned(chosen),
        propensities=known,
    )


def log_to_rounds(log: Log) -> Rounds:
    """Return the decisions of a log as rounds; see :meth:`locb.Log.to_rounds`."""
    offers, sizes = log.offers, log.offers.sizes
    is_arm = np.arange(sizes.max(initial=1)) < sizes[:, None]
    lists = np.full(is_arm.shape, NO_ARM, np.int32)
    lists[is_arm] = offers.rows
    names = None
    if len(log.arm_ids):
        arm_of_row = np.full(len(log.features), -1)
        arm_of_row[offers.rows] = offers.arms
        if np.array_equal(arm_of_row[offers.rows], offers.arms):  # not if different arms have the same features
            names = ["" if arm < 0 else log.arm_ids[arm] for arm in arm_of_row.tolist()]
    return Rounds.of_items(
        log.users,
        log.features,
        log.rewards,
        arms=lists[0] if len(lists) == 1 else lists[log.offer],
        observed=log.chosen,
        user_ids=log.user_ids,
        arm_ids=names,
    )
