"""Rounds sampled from interaction records: one liked item, and k − 1 items with reward 0."""

from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.arm_scoring import next_random
from locb.kernels.common.bit_sets import has_bit

ANY, RATED = 0, 1  # source of items with reward 0: all items that are not blocked for the user, or the user's records
MAX_ATTEMPTS = 64  # draws to find an item that is not yet in the round; after that, an item may appear twice


class InteractionPool(NamedTuple):
    """The interaction records of n users, grouped by user."""

    liked_start: Ints  # (n + 1,) start of each user's range in liked_items
    liked_items: Ints  # (pairs,) items with a positive reward
    liked_weight: Ints  # (pairs,) cumulative numbers of occurrences, which restart at each user
    zero_start: Ints  # this and the next two arrays: the same for recorded items with reward 0
    zero_items: Ints
    zero_weight: Ints
    blocked_bits: Words  # (n, ⌈items/64⌉) bit sets of the blocked items: liked, or excluded from the rounds
    features: Floats  # (items, d)


@inline
def random_below(generator: Words, limit: int) -> int:
    """Return a random integer from 0 to limit − 1; ``limit`` is at most 2³¹."""
    number: Any = np.int64(((next_random(generator) >> np.uint64(33)) * np.uint64(limit)) >> np.uint64(31))
    return int(number)


@inline
def random_weighted_index(generator: Words, cumulative: Ints, start: int, stop: int) -> int:
    """Return a random index from start to stop − 1 with probability proportional to its weight.

    ``cumulative`` holds the cumulative weights, which restart at each ``start``.
    """
    total = cumulative[stop - 1]
    if total == stop - start:  # all weights are 1
        return start + random_below(generator, total)
    target = random_below(generator, total)
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def random_not_blocked(generator: Words, blocked_bits: Words, user: int, n_items: int) -> int:
    """Return a random item that is not blocked for the user (see ``blocked_bits``). There must be at least one.

    All these items are equally likely, unless nearly all items are blocked and ``MAX_ATTEMPTS`` draws fail.
    """
    for _ in range(MAX_ATTEMPTS):
        item = random_below(generator, n_items)
        if not has_bit(blocked_bits, user, item):
            return item
    item = random_below(generator, n_items)  # start of a search for the next item that is not blocked
    while has_bit(blocked_bits, user, item):
        item = item + 1 if item + 1 < n_items else 0
    return item


@no_alloc
def fill_rounds(
    generator: Words, zeros: int, pool: InteractionPool, users: Ints, contexts: Floats, rewards: Floats, shown: Ints
) -> None:
    """Fill users (T,), contexts (T, k, d) and rewards (T, k) with random rounds of k arms.

    One arm, at a random position, is an item that the user likes. The other k − 1 arms are items with reward 0.
    ``shown`` (k,) is a work array for the items of a round.
    """
    n_users = pool.liked_start.size - 1
    n_rounds, n_arms, d = contexts.shape
    liked_start, liked_items, liked_weight = pool.liked_start, pool.liked_items, pool.liked_weight
    zero_start, zero_items, zero_weight = pool.zero_start, pool.zero_items, pool.zero_weight
    features = pool.features
    for t in range(n_rounds):
        user = random_below(generator, n_users)
        users[t] = user
        liked_arm = random_below(generator, n_arms)
        liked = liked_items[random_weighted_index(generator, liked_weight, liked_start[user], liked_start[user + 1])]
        for a in range(n_arms):
            item = liked
            if a != liked_arm:
                for _ in range(MAX_ATTEMPTS):
                    if zeros == ANY:
                        item = random_not_blocked(generator, pool.blocked_bits, user, features.shape[0])
                    else:
                        start, stop = zero_start[user], zero_start[user + 1]
                        item = zero_items[random_weighted_index(generator, zero_weight, start, stop)]
                    is_new = item != liked
                    for b in range(a):
                        is_new = is_new and shown[b] != item
                    if is_new:
                        break
            shown[a] = item
            rewards[t, a] = 1.0 if a == liked_arm else 0.0
            for q in range(d):
                contexts[t, a, q] = features[item, q]


@entry_point
def draw_rounds(
    generator: Words, zeros: int, pool: InteractionPool, users: Ints, contexts: Floats, rewards: Floats
) -> None:
    """Fill the arrays as ``fill_rounds`` does, and allocate its work array. Python calls this function."""
    fill_rounds(generator, zeros, pool, users, contexts, rewards, np.empty(contexts.shape[1], np.int64))
