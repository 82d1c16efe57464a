"""Rounds drawn from records of who liked what, in one compiled loop."""

from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints, Words
from locb.common.jit import entry_point, inline, no_alloc
from locb.kernels.common.bit_sets import has_bit
from locb.kernels.common.linear_algebra import next_random

ANY, RATED = 0, 1  # where zero items come from
TRIES = 64  # draws for an item that the round does not have yet, before one is shown twice


class Pool(NamedTuple):
    """The records of the users who are played, grouped by user."""

    liked_start: Ints  # (n + 1,) where each user's liked items begin
    liked_items: Ints
    liked_weight: Ints  # how often, added up within the user
    zero_start: Ints  # the same for zero items
    zero_items: Ints
    zero_weight: Ints
    liked_bits: Words  # (n, ⌈items/64⌉) bits: what each user likes
    features: Floats  # (items, d)


@inline
def below(generator: Words, limit: int) -> int:
    """A whole number from 0 to limit − 1, limit at most 2³¹."""
    number: Any = np.int64(((next_random(generator) >> np.uint64(33)) * np.uint64(limit)) >> np.uint64(31))
    return int(number)


@inline
def weighted(generator: Words, cumulative: Ints, start: int, stop: int) -> int:
    """A place from start to stop − 1, as often as its weight says; ``cumulative`` restarts at each start."""
    total = cumulative[stop - 1]
    if total == stop - start:  # all weights are 1
        return start + below(generator, total)
    target = below(generator, total)
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def not_liked(generator: Words, liked_bits: Words, user: int, n_items: int) -> int:
    """An item that the user does not like, all alike; there is at least one."""
    for _ in range(TRIES):
        item = below(generator, n_items)
        if not has_bit(liked_bits, user, item):
            return item
    item = below(generator, n_items)  # nearly everything is liked: the next one that is not
    while has_bit(liked_bits, user, item):
        item = item + 1 if item + 1 < n_items else 0
    return item


@no_alloc
def draw_rounds(
    generator: Words, zeros: int, pool: Pool, users: Ints, contexts: Floats, rewards: Floats, shown: Ints
) -> None:
    """Fill users (T,), contexts (T, k, d) and rewards (T, k): one liked item among k − 1 that are not, anywhere."""
    n_users = pool.liked_start.size - 1
    n_rounds, n_arms, d = contexts.shape
    liked_start, liked_items, liked_weight = pool.liked_start, pool.liked_items, pool.liked_weight
    zero_start, zero_items, zero_weight = pool.zero_start, pool.zero_items, pool.zero_weight
    features = pool.features
    for t in range(n_rounds):
        user = below(generator, n_users)
        users[t] = user
        place = below(generator, n_arms)
        liked = liked_items[weighted(generator, liked_weight, liked_start[user], liked_start[user + 1])]
        for a in range(n_arms):
            item = liked
            if a != place:
                for _ in range(TRIES):
                    if zeros == ANY:
                        item = not_liked(generator, pool.liked_bits, user, features.shape[0])
                    else:
                        item = zero_items[weighted(generator, zero_weight, zero_start[user], zero_start[user + 1])]
                    fresh = item != liked
                    for b in range(a):
                        fresh = fresh and shown[b] != item
                    if fresh:
                        break
            shown[a] = item
            rewards[t, a] = 1.0 if a == place else 0.0
            for q in range(d):
                contexts[t, a, q] = features[item, q]


@entry_point
def draw(generator: Words, zeros: int, pool: Pool, users: Ints, contexts: Floats, rewards: Floats) -> None:
    """As ``draw_rounds``, called from Python."""
    draw_rounds(generator, zeros, pool, users, contexts, rewards, np.empty(contexts.shape[1], np.int64))
