"""Responses about clusters: those of a user, the list of all clusters, one cluster, and the table of the dashboard."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from locb.service.schemas import FINAL, ClusterSummary, ResponseModel

SURE_SHARE = (
    "Share of the members who belong to the cluster with a probability of at least 0.9; null for the cluster "
    '"everyone" of ELOC, and for policies without probabilities (all except ELOC).'
)
SAME_AS = (
    "Seed of another cluster, if both count as one group, because the preferences of their members are nearly the same "
    "(ELOC); null if the cluster is a group of its own, or the first of several."
)

CERTIFICATE = (
    "Upper bound on the distance between the preferences of any two members, in units of rewards, valid with a "
    "probability of at least 1 − delta. delta is 0.1, unless the parameter delta of LOCB or ELOC is set. The bound "
    "assumes preferences of norm at most 1 and a valid scale of the noise."
)
NAMED_AFTER = (
    "User after whom the cluster is named: its seed (LOCB, ELOC), or its first member (other built-in policies); null "
    'for "everyone" of ELOC.'
)


class UserCluster(ClusterSummary):
    """Cluster that contains a user, with the probability of the membership."""

    probability: Annotated[
        float | None,
        Meta(
            description="Probability that the user belongs to the cluster, according to the model of ELOC. Clusters "
            "that count as one group have the same probability. Null for other policies."
        ),
    ]
    same_as: Annotated[str | None, Meta(description=SAME_AS)]


class ListedCluster(ClusterSummary):
    """Cluster in a list, with the share of its sure members."""

    sure_share: Annotated[float | None, Meta(description=SURE_SHARE)]
    same_as: Annotated[str | None, Meta(description=SAME_AS)]


class ClusterList(ResponseModel):
    """All clusters of users."""

    clusters: list[ListedCluster]


class ClusterDetail(ResponseModel):
    """Cluster with its members and certificate."""

    seed: Annotated[
        str,
        Meta(
            description="User after whom the cluster is named: its seed, or its first member if the policy has no "
            "seeds (all built-in policies except LOCB and ELOC)."
        ),
    ]
    size: Annotated[int, Meta(description="Number of members.")]
    returned: Annotated[bool, Meta(description=FINAL)]
    returned_at: Annotated[
        int | None, Meta(description="Round in which the cluster became final; null if it is not final.")
    ]
    members: list[str]
    probabilities: Annotated[
        list[float] | None,
        Meta(
            description="Probability that each of `members` belongs to the cluster, according to the model of ELOC; "
            "null for other policies."
        ),
    ]
    certificate: Annotated[
        float | None,
        Meta(description=f"{CERTIFICATE} Null if the policy has no certificates."),
    ]
    certificate_exact: Annotated[
        bool,
        Meta(
            description="Whether the certificate was computed over all pairs of members. For clusters of more than "
            "2,000 members, it is computed from the distances to the mean estimate, which can give a larger bound. "
            "False if `certificate` is null."
        ),
    ]


class FeatureWeight(ResponseModel):
    """Feature with its weight in the mean estimate of a cluster."""

    feature: Annotated[str, Meta(description="Name, or index if features are arrays.")]
    weight: float


class ClusterRow(ResponseModel):
    """Row of the table of clusters."""

    seed: Annotated[str | None, Meta(description=NAMED_AFTER)]
    size: Annotated[int, Meta(description="Number of members.")]
    returned: Annotated[bool, Meta(description=FINAL)]
    progress: Annotated[
        float | None,
        Meta(description="Progress towards becoming final, from 0 to 1 (LOCB); null if the policy does not report it."),
    ]
    certificate: Annotated[
        float | None,
        Meta(
            description=f"{CERTIFICATE} Null if the policy has no certificates, if the cluster has more than 5,000 "
            "members, or while the bound is not computed yet."
        ),
    ]
    certificate_exact: Annotated[
        bool,
        Meta(
            description="Whether the certificate was computed over all pairs of members, which is done for up to 300 "
            "members. For larger clusters, the bound can be larger than the exact one."
        ),
    ]
    sure_share: Annotated[float | None, Meta(description=SURE_SHARE)]
    same_as: Annotated[str | None, Meta(description=SAME_AS)]
    rewards: Annotated[int, Meta(description="Number of rewards of the members.")]
    mean_reward: Annotated[float | None, Meta(description="Mean reward of the members; null without rewards.")]
    top_features: Annotated[
        list[FeatureWeight],
        Meta(description="Up to 3 features with the largest positive weights in the mean estimate of the cluster."),
    ]


class ClusterOverlap(ResponseModel):
    """Overlap of the first clusters of the page, at most 12."""

    seeds: Annotated[list[str | None], Meta(description="Clusters of the rows and columns of `shares`.")]
    shares: Annotated[
        list[list[float]],
        Meta(description="Share of the users of the row's cluster who are also in the column's cluster."),
    ]


class ClusterTable(ResponseModel):
    """Page of the table of clusters."""

    total: Annotated[int, Meta(description="Number of clusters that match the search.")]
    returned: Annotated[
        int, Meta(description="Number of final clusters, whether or not they match the search. Duplicates count once.")
    ]
    forming: Annotated[
        int, Meta(description="Number of all other clusters, which can still change. Duplicates count once.")
    ]
    max_distance: Annotated[
        float,
        Meta(
            description="Largest possible distance between preferences of norm at most 1, which is 2; with "
            "reward_range, 2 · (high − low). A certificate of this value or more is not informative."
        ),
    ]
    clusters: list[ClusterRow]
    overlap: ClusterOverlap
