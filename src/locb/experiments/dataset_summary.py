"""Summary of a data set: sizes, likes, distances between users and true groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locb.environments import Environment, Interactions, RecordedRewards
from locb.environments.recorded_users import RecordedUsers

MAX_GAMMA = 1e9  # above all distances; Interactions.scaled_gamma is infinite if no gamma suffices
FEATURES_FROM = {
    "other-half": "the half of the records that is not used in rounds",
    "all": "all records, including those used in rounds",
    "own": "the columns that describe the items",
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


def summarize_dataset(env: RecordedUsers) -> DatasetSummary:
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
        *_describe_values(env),
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


def _describe_values(env: RecordedUsers) -> list[tuple[str, str]]:
    """Return the share of likes; of recorded rewards, their limits and the rounds that the records give."""
    about = env.about
    if not isinstance(env, RecordedRewards):
        return [("share of likes", f"{about['share_of_likes']:.1%}")]
    low, mean, high = about["rewards"]
    order = "in the order of time" if about["has_times"] else "in the order of the table"
    return [
        ("rewards", f"{low:g} to {high:g}, mean {mean:.4g}"),
        ("rounds", f"{env.max_rounds:,}, one per record that is used in rounds, {order}"),
    ]


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
    if not isinstance(env, RecordedUsers) or env.about.get("features_from") != "all":
        return None
    values = "likes" if isinstance(env, Interactions) else "rewards"
    return (
        f"The item features contain the {values} that are used in rounds, so rewards are higher than with new {values}."
        " Use features_from='other-half' (--features-from other-half) to avoid this."
    )


def offer_note(env: Environment) -> str | None:
    """Return a note on what the rounds of a data set offer, and that rewards are no estimate of earnings."""
    if isinstance(env, Interactions):
        zeros = env.n_arms - 1
        offered = f"Each round offers one liked item and {zeros} item{'s' if zeros > 1 else ''} with reward 0"
    elif isinstance(env, RecordedRewards):
        offered = "Each round offers only items for which the user has a recorded reward"
    else:
        return None
    return (
        f"{offered}, so rewards are no estimate of what a policy would earn; locb evaluate estimates that from a log."
    )


def describe_group_map(n_users: int, gamma: float) -> str:
    """Return the subtitle of a map of users whose groups are the true groups at ``gamma``.

    If gamma is at least MAX_GAMMA, the groups are the K-means groups.
    """
    below = f"groups of users whose distances are below {gamma:.3g}"
    return f"θ of {n_users} users in two dimensions; {below if gamma < MAX_GAMMA else f'K-means groups: {NO_GAMMA}'}"
