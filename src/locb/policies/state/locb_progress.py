"""Progress of LOCB's clusters towards being final. See ``LOCB.group_summary`` for the definitions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.kernels.common.bit_sets import pack_bits, unpack_bits

CLUSTERS_PER_STEP = 100  # clusters per step, which takes about 1 ms with 100,000 users


def share_of_close_members(policy: Any, limit: float) -> Generator[None, None, Floats]:
    """Compute, for each cluster, the share of the members who were served and whose radius is below ``limit``.

    The generator yields after every ``CLUSTERS_PER_STEP`` clusters, so that a service can handle other requests.
    """
    is_close = (policy.served > 0) & (policy._user_radii(np.arange(policy.n_users)) < limit)
    bits = pack_bits(is_close[None])[0]
    shares = np.zeros(len(policy._state.seeds))
    for start in range(0, len(shares), CLUSTERS_PER_STEP):
        state = policy._state  # read again, because the policy may have grown since the last step
        for s in range(start, min(start + CLUSTERS_PER_STEP, len(shares))):
            shares[s] = np.bitwise_count(state.members[s, : len(bits)] & bits).sum() / state.sizes[s]
        yield
    return shares


def certificate_progress(policy: Any, gamma: float) -> Generator[None, None, Floats]:
    """Compute the progress of each cluster with ``stop="certificate"``; 0 for a final cluster.

    The generator yields after each batch of users, so that a service can handle other requests.
    """
    progress = np.zeros(len(policy._state.seeds))
    for s in range(len(progress)):
        state = policy._state  # read again, because the policy may have grown since the last step
        if not (state.returned[s] or state.unserved[s]):
            reach = yield from _largest_reach(policy, state, s)
            progress[s] = min(1.0, gamma / reach)
    return progress


def _largest_reach(policy: Any, state: Any, s: int) -> Generator[None, None, float]:
    """Compute, in steps, the sum of the two largest values of ``reach`` among the members of cluster s.

    The reach of a member is the distance between its estimate and that of the seed user, plus its radius.
    """
    dim, block = policy.dim, policy.user_batch_size
    members = np.flatnonzero(unpack_bits(state.members[s, None], policy.n_users)[0])
    seed = state.estimates[state.seeds[s], :dim]
    largest = np.zeros(0)
    for start in range(0, len(members), block):
        users = members[start : start + block]
        reach = np.linalg.norm(state.estimates[users, :dim] - seed, axis=1) + policy._user_radii(users)
        largest = np.sort(np.concatenate([largest, reach]))[-2:]
        yield
    return float(largest.sum())
