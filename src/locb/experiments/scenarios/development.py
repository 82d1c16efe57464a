"""Development scenarios, on which the constants of policies may be set.

The position in ``DEVELOPMENT_KINDS`` determines the random seeds of a scenario. Append new kinds to the end, so that
the others keep their random seeds. Settings that are not listed are the defaults of :class:`locb.Synthetic`, or those
of :class:`locb.Categorical` with the key ``categories``.
"""

from __future__ import annotations

from locb.experiments.scenarios.kinds import (
    ARRIVALS,
    CATEGORIES,
    COMMON_KINDS,
    CONTEXTS,
    DRIFT,
    MANY_ROUNDS,
    NOISE,
    REWARDS,
    SIZE,
    STRUCTURE,
    Kind,
    ScaledCopy,
)

DEVELOPMENT_KINDS = [
    *(kind._replace(name=f"dev-{kind.name}") for kind in COMMON_KINDS),
    Kind("dev-arms-30", "30 arms per round.", SIZE, {"n_arms": 30}),
    Kind("dev-features-15", "15 features per arm.", SIZE, {"raw_dim": 14}),
    Kind(
        "dev-unequal-noise",
        "Gaussian noise; the standard deviation of each user is between 0.1 and 0.8.",
        NOISE,
        {"noise": (0.1, 0.8)},
    ),
    Kind(
        "dev-student-t",
        "Student's t noise with 2.5 degrees of freedom and standard deviation 0.5.",
        NOISE,
        {"noise": 0.5, "degrees_of_freedom": 2.5},
    ),
    Kind(
        "dev-outliers",
        "Gaussian noise with standard deviation 0.2; 20 times larger in 3% of the rewards.",
        NOISE,
        {"noise": 0.2, "outlier_share": 0.03, "outlier_factor": 20.0},
    ),
    Kind(
        "dev-late-users",
        "100 users in 5 clusters; 40% of the users arrive only after 25,000 rounds.",
        ARRIVALS,
        {"late_share": 0.4},
    ),
    Kind(
        "dev-no-structure-long",
        "60 users, each in a cluster of its own; 150,000 rounds.",
        STRUCTURE,
        {"n_users": 60, "n_clusters": 60},
        groups=False,
        rounds=MANY_ROUNDS,
    ),
    Kind(
        "dev-one-cluster-long",
        "60 users in one cluster; 150,000 rounds.",
        STRUCTURE,
        {"n_users": 60, "n_clusters": 1},
        groups=False,
        rounds=MANY_ROUNDS,
    ),
    Kind("dev-catalogue", "Catalogue of 50 items with fixed features.", CONTEXTS, {"catalogue": 50}),
    Kind(
        "dev-correlated",
        "Neighbouring features have correlation 0.8.",
        CONTEXTS,
        {"correlation": 0.8},
    ),
    Kind("dev-drift-clusters", "Each cluster drifts as a whole, 0.2 radians per 10,000 rounds.", DRIFT, {"drift": 0.2}),
    Kind(
        "dev-drift-users",
        "Each user drifts independently, 0.2 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.2, "drifters": "users"},
    ),
    Kind(
        "dev-one-hot",
        "One-hot arms: 10 categories; 60 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 10, "n_users": 60, "n_clusters": 60},
        groups=False,
    ),
    Kind(
        "dev-one-hot-groups",
        "One-hot arms: 10 categories; 60 users in 4 clusters.",
        CATEGORIES,
        {"categories": 10, "n_users": 60, "n_clusters": 4},
    ),
    Kind(
        "dev-one-hot-constant",
        "One-hot arms and a constant feature: 10 categories; 60 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 10, "constant": True, "n_users": 60, "n_clusters": 60},
        groups=False,
    ),
    Kind(
        "dev-one-hot-constant-groups",
        "One-hot arms and a constant feature: 10 categories; 60 users in 4 clusters.",
        CATEGORIES,
        {"categories": 10, "constant": True, "n_users": 60, "n_clusters": 4},
    ),
    Kind(
        "dev-one-hot-available",
        "One-hot arms: 10 arms of 30 categories per round; 60 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 30, "n_users": 60, "n_clusters": 60},
        groups=False,
    ),
    Kind(
        "dev-one-hot-available-groups",
        "One-hot arms: 10 arms of 30 categories per round; 60 users in 4 clusters.",
        CATEGORIES,
        {"categories": 30, "n_users": 60, "n_clusters": 4},
    ),
    Kind(
        "dev-two-categories",
        "Items of 6 brands and 4 colours, one-hot; 60 users in 4 clusters.",
        CATEGORIES,
        {"categories": (6, 4), "n_users": 60, "n_clusters": 4},
    ),
    Kind("dev-low-rates", "Click rates of 1% to 5%.", REWARDS, {"mean_range": (0.01, 0.05)}),
    Kind(
        "dev-drift-clusters-fast",
        "Each cluster drifts as a whole, 0.4 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.4},
    ),
    Kind(
        "dev-drift-users-fast",
        "Each user drifts independently, 0.4 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.4, "drifters": "users"},
    ),
    Kind(
        "dev-drift-gaussian",
        "Each cluster drifts as a whole, 0.2 radians per 10,000 rounds; Gaussian noise with standard deviation 0.1.",
        DRIFT,
        {"drift": 0.2, "noise": 0.1},
    ),
    Kind(
        "dev-drift-no-structure",
        "Each user is in a cluster of its own and drifts independently, 0.2 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.2, "n_clusters": 100},
        groups=False,
    ),
    Kind(
        "dev-drift-one-cluster",
        "All users are in one cluster, which drifts by 0.2 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.2, "n_clusters": 1},
        groups=False,
    ),
]

DEVELOPMENT_COPIES = [
    ScaledCopy("dev-scaled-bernoulli", "dev-bernoulli-100", 100.0, 5.0),
    ScaledCopy("dev-scaled-gaussian", "dev-gaussian-0.1", 0.01, 0.0),
]
