"""Summary of a data set: sizes, likes, distances between users and true groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locb.environments import Environment, Interactions

MAX_GAMMA = 1e9  # above all distances; Interactions.scaled_gamma is infinite if no gamma suffices
FEATURES_FROM = {
    "other-half": "the half of the records that is not used in rounds",
    "all": "all records, including those used in rounds",
}
NO_GAMMA = "no gamma puts half of the users in groups of two or more users"


class DatasetSummary(NamedTuple):
    """Facts about a data set, formatted for display.

    The true groups are those of ``Interactions.true_clusters``. Gamma is the smallest gamma at which half of the users
    are in groups of two or more users (``Interactions.scaled_gamma``).
    """

    facts: list[tuple[str, str]]  # (name, value)
    groups: list[list[int]]  # user indices of each true group, for the map of users
    map_subtitle: str  # explanation of the map


def summarize_dataset(env: Interactions) -> DatasetSummary:
    """Return the summary of a data set that a reader of ``locb.datasets`` has loaded."""
    about = env.about
    upper = np.triu_indices(env.n_users, 1)
    distances = np.linalg.norm(env.theta[:, None] - env.theta[None, :], axis=2)[upper]
    gamma = env.scaled_gamma()
    groups = [cluster.tolist() for cluster in env.true_clusters(min(gamma, MAX_GAMMA))]
    paper_sizes = [len(cluster) for cluster in env.true_clusters(0.2)]
    records = env.records_per_user
    rule = describe_likes(about)
    facts = [
        ("records", f"{about['records']:,}"),
        ("users", f"{about['users']:,}"),
        ("items", f"{about['items']:,}"),
        *([("likes", rule)] if rule else []),
        ("share of likes", f"{about['share_of_likes']:.1%}"),
        *((f"skipped: {reason}", f"{count:,}") for reason, count in about["skipped"].items()),
        *((f"excluded users: {reason}", f"{count:,}") for reason, count in env.excluded_users.items()),
        ("users in the pool", f"{env.n_users:,}"),
        ("records per user in the pool", f"{records.min():,} to {records.max():,}, median {np.median(records):,.0f}"),
        ("features per item", f"{env.dim}"),
        *([("features from", FEATURES_FROM[about["features_from"]])] if about.get("features_from") else []),
    ]
    if distances.size:
        low, middle, high = np.quantile(distances, [0.05, 0.5, 0.95])
        facts.append(("distance between two users' θ", f"median {middle:.2f}, 90% from {low:.2f} to {high:.2f}"))
    facts.append(("true groups at gamma 0.2", ", ".join(map(str, paper_sizes)) + " users"))
    if gamma < MAX_GAMMA:
        sizes = ", ".join(str(len(group)) for group in groups)
        facts.append((f"true groups at gamma {gamma:.3g} (half of the users)", f"{sizes} users"))
    else:
        facts.append(("true groups of half of the users", NO_GAMMA))
    return DatasetSummary(facts, groups, describe_group_map(env.n_users, gamma))


def describe_likes(about: dict[str, Any]) -> str:
    """Return which ratings are likes, from the facts about a data set; an empty string if it has no ratings."""
    if about.get("like_above") is None:
        return ""
    origin = about["like_above_origin"]
    return f"ratings above {about['like_above']:g}" + (f" ({origin})" if origin else "")


def likes_note(env: Environment) -> str | None:
    """Return a sentence with the threshold of likes and the share of likes; None if the environment has no ratings."""
    if not isinstance(env, Interactions) or not (rule := describe_likes(env.about)):
        return None
    return f"Likes are {rule}: {env.about['share_of_likes']:.1%} of {env.about['records']:,} records."


def features_note(env: Environment) -> str | None:
    """Return a warning if the features of the items were computed from likes used in rounds; otherwise None."""
    if not isinstance(env, Interactions) or env.about.get("features_from") != "all":
        return None
    return (
        "The item features contain the likes that are used in rounds, so rewards are higher than with new likes. Use "
        "features_from='other-half' (--features-from other-half) to avoid this."
    )


def describe_group_map(n_users: int, gamma: float) -> str:
    """Return the subtitle of a map of users whose groups are the true groups at ``gamma``.

    If gamma is at least MAX_GAMMA, the groups are the K-means groups.
    """
    below = f"groups of users whose distances are below {gamma:.3g}"
    return f"θ of {n_users} users in two dimensions; {below if gamma < MAX_GAMMA else f'K-means groups: {NO_GAMMA}'}"
