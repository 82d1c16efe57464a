"""Summary of a data set: sizes, share of likes, distances between users and true groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.environments import Interactions


class DatasetSummary(NamedTuple):
    """Facts about a data set, formatted for display.

    A true group at a gamma is a set of users whose θ (the ridge estimate from all records) are closer to each other
    than gamma.
    """

    facts: list[tuple[str, str]]  # (name, value)
    gamma: float  # smallest gamma at which half of the users are in true groups of two or more
    groups: list[list[int]]  # user indices of the true groups at that gamma


def summarize_dataset(env: Interactions) -> DatasetSummary:
    """Return the sizes of a data set, its share of likes, the distances between users, and the true groups."""
    about = env.about
    upper = np.triu_indices(env.n_users, 1)
    distances = np.linalg.norm(env.theta[:, None] - env.theta[None, :], axis=2)[upper]
    gamma = env.scaled_gamma()
    groups = [cluster.tolist() for cluster in env.true_clusters(min(gamma, 1e9))]
    paper_sizes = [len(cluster) for cluster in env.true_clusters(0.2)]
    records = env.records_per_user
    facts = [
        ("records", f"{about['records']:,}"),
        ("users", f"{about['users']:,}"),
        ("items", f"{about['items']:,}"),
        ("share of likes", f"{about['share_of_likes']:.1%}"),
        *((f"skipped: {reason}", f"{count:,}") for reason, count in about["skipped"].items()),
        *((f"excluded users: {reason}", f"{count:,}") for reason, count in env.excluded_users.items()),
        ("users in the pool", f"{env.n_users:,}"),
        ("records per user in the pool", f"{records.min():,} to {records.max():,}, median {np.median(records):,.0f}"),
        ("features per item", f"{env.dim}"),
    ]
    if distances.size:
        low, middle, high = np.quantile(distances, [0.05, 0.5, 0.95])
        facts.append(("distance between two users' θ", f"median {middle:.2f}, 90% from {low:.2f} to {high:.2f}"))
    facts += [
        ("true groups at gamma 0.2", ", ".join(map(str, paper_sizes)) + " users"),
        (
            f"true groups at gamma {gamma:.3g} (half of the users)",
            ", ".join(str(len(group)) for group in groups) + " users",
        ),
    ]
    return DatasetSummary(facts, gamma, groups)
