"""What there is in a data set, before anything is played on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.environments import Interactions


class Survey(NamedTuple):
    """Facts about a world made of records, ready to be shown."""

    facts: list[tuple[str, str]]
    gamma: float  # at which the ground truth groups hold half of the users
    groups: list[list[int]]  # the ground truth at that gamma


def survey(env: Interactions) -> Survey:
    """Sizes, likes, distances between the users' θ, and the gamma at which there are groups worth finding."""
    about = env.about
    upper = np.triu_indices(env.n_users, 1)
    apart = np.linalg.norm(env.theta[:, None] - env.theta[None, :], axis=2)[upper]
    gamma = env.scaled_gamma()
    groups = [cluster.tolist() for cluster in env.true_clusters(min(gamma, 1e9))]
    at_papers = [len(cluster) for cluster in env.true_clusters(0.2)]
    records = env.records_per_user
    facts = [
        ("records", f"{about['records']:,}"),
        ("users", f"{about['users']:,}"),
        ("items", f"{about['items']:,}"),
        ("share of likes", f"{about['share_of_likes']:.1%}"),
        *((f"left out: {reason}", f"{count:,}") for reason, count in about["skipped"].items()),
        *((f"users left out: {reason}", f"{count:,}") for reason, count in env.left_out.items()),
        ("users in the pool", f"{env.n_users:,}"),
        ("records a user in the pool", f"{records.min():,} to {records.max():,}, median {np.median(records):,.0f}"),
        ("features of an item", f"{env.dim}"),
    ]
    if apart.size:
        low, middle, high = np.quantile(apart, [0.05, 0.5, 0.95])
        facts.append(("distance between two users' θ", f"median {middle:.2f}, 90% from {low:.2f} to {high:.2f}"))
    facts += [
        ("ground truth groups at gamma 0.2", ", ".join(map(str, at_papers)) + " users"),
        (f"at gamma {gamma:.3g} (half of the users)", ", ".join(str(len(group)) for group in groups) + " users"),
    ]
    return Survey(facts, gamma, groups)
