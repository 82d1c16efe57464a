"""Evaluation scenarios, which were not used to set the constants of any policy.

The position in ``EVALUATION_KINDS`` determines the random seeds of a scenario. Append new kinds to the end, so that the
others keep their random seeds. Settings that are not listed are the defaults of :class:`locb.Synthetic`, or those of
:class:`locb.Categorical` with the key ``categories``.

All kinds were written before the constants of the present ELOC (ELOC 2, docs/decisions/0018) were set. Those from
``bernoulli-100`` to ``drift-users`` had already been used to evaluate the first version of ELOC; those from ``one-hot``
to the end of the list were new. Results of evaluation scenarios are never used to set constants.
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

EVALUATION_KINDS = [
    *(kind._replace(development=f"dev-{kind.name}") for kind in COMMON_KINDS),
    Kind("two-clusters", "2 clusters.", STRUCTURE, {"n_clusters": 2}),
    Kind("many-clusters", "300 users in 50 clusters.", STRUCTURE, {"n_users": 300, "n_clusters": 50}),
    Kind(
        "hierarchy",
        "120 users in 12 clusters, which form 3 families.",
        STRUCTURE,
        {"n_users": 120, "n_clusters": 12, "families": 3},
    ),
    Kind("overlap", "30% of the users lie between two clusters.", STRUCTURE, {"overlap": 0.3}),
    Kind("arms-3", "3 arms per round.", SIZE, {"n_arms": 3}),
    Kind("arms-50", "50 arms per round.", SIZE, {"n_arms": 50}, development="dev-arms-30"),
    Kind("features-20", "20 features per arm.", SIZE, {"raw_dim": 19}, development="dev-features-15"),
    Kind(
        "unequal-noise",
        "Gaussian noise; the standard deviation of each user is between 0.05 and 1.",
        NOISE,
        {"noise": (0.05, 1.0)},
        development="dev-unequal-noise",
    ),
    Kind("mixed-norms", "Feature vectors with a Euclidean norm from 0.2 to 1.", CONTEXTS, {"norms": (0.2, 1.0)}),
    Kind(
        "drift-clusters",
        "Each cluster drifts as a whole, 0.1 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.1},
        development="dev-drift-clusters",
    ),
    Kind(
        "drift-users",
        "Each user drifts independently, 0.1 radians per 10,000 rounds.",
        DRIFT,
        {"drift": 0.1, "drifters": "users"},
        development="dev-drift-users",
    ),
    Kind(
        "one-hot",
        "One-hot arms: 12 categories; 80 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 12, "n_arms": 12, "n_users": 80, "n_clusters": 80},
        groups=False,
        development="dev-one-hot",
    ),
    Kind(
        "one-hot-groups",
        "One-hot arms: 12 categories; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": 12, "n_arms": 12, "n_users": 80, "n_clusters": 5},
        development="dev-one-hot-groups",
    ),
    Kind(
        "one-hot-constant",
        "One-hot arms and a constant feature: 12 categories; 80 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 12, "constant": True, "n_arms": 12, "n_users": 80, "n_clusters": 80},
        groups=False,
        development="dev-one-hot-constant",
    ),
    Kind(
        "one-hot-constant-groups",
        "One-hot arms and a constant feature: 12 categories; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": 12, "constant": True, "n_arms": 12, "n_users": 80, "n_clusters": 5},
        development="dev-one-hot-constant-groups",
    ),
    Kind(
        "one-hot-available",
        "One-hot arms: 8 arms of 40 categories per round; 80 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": 40, "n_arms": 8, "n_users": 80, "n_clusters": 80},
        groups=False,
        development="dev-one-hot-available",
    ),
    Kind(
        "one-hot-available-groups",
        "One-hot arms: 8 arms of 40 categories per round; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": 40, "n_arms": 8, "n_users": 80, "n_clusters": 5},
        development="dev-one-hot-available-groups",
    ),
    Kind(
        "two-categories",
        "Items of 8 brands and 5 colours, one-hot; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": (8, 5), "n_arms": 12, "n_users": 80, "n_clusters": 5},
        development="dev-two-categories",
    ),
    Kind(
        "three-categories",
        "Items of 6 brands, 5 colours and 4 sizes, one-hot; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": (6, 5, 4), "n_users": 80, "n_clusters": 5},
    ),
    Kind(
        "three-categories-no-groups",
        "Items of 6 brands, 5 colours and 4 sizes, one-hot; 80 users, each in a cluster of its own.",
        CATEGORIES,
        {"categories": (6, 5, 4), "n_users": 80, "n_clusters": 80},
        groups=False,
    ),
    Kind(
        "hashed",
        "Items of 8 brands, 6 colours and 4 sizes, hashed with signs into 32 columns, and a constant feature; "
        "80 users in 5 clusters.",
        CATEGORIES,
        {"categories": (8, 6, 4), "hash_dim": 32, "constant": True, "n_users": 80, "n_clusters": 5},
    ),
    Kind(
        "hashed-unsigned",
        "Items of 8 brands, 6 colours and 4 sizes, hashed without signs into 16 columns; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": (8, 6, 4), "hash_dim": 16, "signed": False, "n_users": 80, "n_clusters": 5},
    ),
    Kind(
        "one-hot-zipf",
        "One-hot arms: 15 categories; 200 users in 6 clusters with Zipf arrivals.",
        CATEGORIES,
        {"categories": 15, "n_arms": 15, "n_users": 200, "n_clusters": 6, "arrivals": "zipf"},
    ),
    Kind(
        "catalogue",
        "Catalogue of 200 items with fixed features; 120 users in 6 clusters.",
        CONTEXTS,
        {"catalogue": 200, "n_users": 120, "n_clusters": 6},
        development="dev-catalogue",
    ),
    Kind(
        "catalogue-categories",
        "Catalogue of 60 items of 10 brands, 6 colours and 5 sizes, one-hot; 80 users in 5 clusters.",
        CATEGORIES,
        {"categories": (10, 6, 5), "catalogue": 60, "n_users": 80, "n_clusters": 5},
    ),
    Kind(
        "correlated",
        "10 features per arm; neighbouring features have correlation 0.9.",
        CONTEXTS,
        {"correlation": 0.9, "raw_dim": 9},
        development="dev-correlated",
    ),
    Kind(
        "low-rates",
        "Click rates of 1% to 5%; 80 users in 4 clusters, 15 arms.",
        REWARDS,
        {"mean_range": (0.01, 0.05), "n_users": 80, "n_clusters": 4, "n_arms": 15},
        development="dev-low-rates",
    ),
    Kind(
        "low-rates-one-hot",
        "Click rates of 1% to 5%; one-hot arms: 8 categories; 50 users in 3 clusters.",
        REWARDS,
        {"mean_range": (0.01, 0.05), "categories": 8, "n_arms": 8, "n_users": 50, "n_clusters": 3},
    ),
    Kind(
        "student-t",
        "Student's t noise with 2.5 degrees of freedom and standard deviation 1; 120 users in 6 clusters.",
        NOISE,
        {"noise": 1.0, "degrees_of_freedom": 2.5, "n_users": 120, "n_clusters": 6},
        development="dev-student-t",
    ),
    Kind(
        "outliers",
        "Gaussian noise with standard deviation 0.1; 30 times larger in 5% of the rewards; 120 users in 6 clusters.",
        NOISE,
        {"noise": 0.1, "outlier_share": 0.05, "outlier_factor": 30.0, "n_users": 120, "n_clusters": 6},
        development="dev-outliers",
    ),
    Kind(
        "student-t-one-hot",
        "Student's t noise with 2.5 degrees of freedom and standard deviation 0.7; one-hot arms: 12 categories; "
        "80 users in 5 clusters.",
        CATEGORIES,
        {"categories": 12, "n_arms": 12, "noise": 0.7, "degrees_of_freedom": 2.5, "n_users": 80, "n_clusters": 5},
    ),
    Kind("features-50", "50 features per arm.", SIZE, {"raw_dim": 49}, development="dev-features-15"),
    Kind(
        "late-users",
        "160 users in 8 clusters; 50% of the users arrive only after 25,000 rounds.",
        ARRIVALS,
        {"n_users": 160, "n_clusters": 8, "late_share": 0.5},
        development="dev-late-users",
    ),
    Kind(
        "no-structure-long",
        "80 users, each in a cluster of its own; 150,000 rounds.",
        STRUCTURE,
        {"n_users": 80, "n_clusters": 80},
        groups=False,
        development="dev-no-structure-long",
        rounds=MANY_ROUNDS,
    ),
    Kind(
        "one-cluster-long",
        "80 users in one cluster; 150,000 rounds.",
        STRUCTURE,
        {"n_users": 80, "n_clusters": 1},
        groups=False,
        development="dev-one-cluster-long",
        rounds=MANY_ROUNDS,
    ),
]

EVALUATION_COPIES = [
    ScaledCopy("scaled-bernoulli", "bernoulli-100", 250.0, -40.0, "dev-scaled-bernoulli"),
    ScaledCopy("scaled-gaussian", "gaussian-0.1", 0.02, 3.0, "dev-scaled-gaussian"),
    ScaledCopy("scaled-one-hot", "one-hot-groups", 1000.0, 50.0),
]
