"""Responses of the routes that the dashboard reads."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw

from locb.service.dashboard.cluster_schemas import NAMED_AFTER, UserCluster
from locb.service.schemas import FINAL, ClusterSummary, Explanation, Features, RankedArm, ResponseModel

Time = Annotated[float, Meta(description="Unix time in seconds.")]
Bound = Annotated[
    float | None,
    Meta(
        description="Bound of the 95% confidence interval of the mean: Wilson's interval if all rewards are 0 or 1, "
        "otherwise that of Student's t distribution. Null with fewer than two rewards."
    ),
]
ChangeBound = Annotated[
    float | None,
    Meta(
        description="Bound of the 95% confidence interval of the difference: Newcombe's interval if all rewards are 0 "
        "or 1, otherwise that of Welch. Null if one of the periods has fewer than two rewards."
    ),
]


class ClusterCounts(ResponseModel):
    """Number of clusters by state."""

    returned: Annotated[int, Meta(description="Number of final clusters. Duplicates count once.")]
    forming: Annotated[int, Meta(description="Number of clusters that can still change. Duplicates count once.")]


class StoreStatus(ResponseModel):
    """State of the store, which holds the event log."""

    kind: Annotated[str, Meta(description="sqlite or postgresql.")]
    position: Annotated[int, Meta(description="Sequence number of the last event.")]
    bytes: Annotated[int | None, Meta(description="Size on disk in bytes; null if unknown.")]
    queued_requests: Annotated[int, Meta(description="Number of decisions and rewards that wait to be written.")]
    error: Annotated[str | None, Meta(description="Why the store cannot be written; null if it can be written.")]


class SnapshotStatus(ResponseModel):
    """State of the newest snapshot."""

    position: Annotated[int, Meta(description="Sequence number of the last event in the snapshot.")]
    time: Annotated[
        float | None, Meta(description="Unix time in seconds at which the snapshot was written; null if unknown.")
    ]
    events_since: Annotated[
        int, Meta(description="Number of events after the snapshot, which the next startup replays.")
    ]


class Status(ResponseModel):
    """Current state of the service."""

    time: Time
    policy: Annotated[str, Meta(description="Name of the policy.")]
    version: Annotated[str, Meta(description="Version of locb.")]
    started_at: Time
    status: Annotated[str, Meta(description="ok, or unavailable while the store cannot be written.")]
    detail: Annotated[str | None, Meta(description="Why the status is not ok; null if it is ok.")]
    users: Annotated[int, Meta(description="Number of known users.")]
    rewarded_users: Annotated[
        int, Meta(description="Number of users with at least one reward, including default rewards.")
    ]
    decisions: Annotated[int, Meta(description="Number of decisions in the log.")]
    rewards: Annotated[
        int,
        Meta(
            description="Number of rewards learned, including default rewards. A reward that replaces a default reward "
            "is not counted again."
        ),
    ]
    pending_rewards: Annotated[
        int, Meta(description="Decisions of the last 24 hours without a reward or default reward.")
    ]
    decisions_per_second: Annotated[float, Meta(description="Mean rate over the last 10 seconds.")]
    rewards_per_second: Annotated[float, Meta(description="Mean rate over the last 10 seconds.")]
    cluster_based_share: Annotated[
        float | None,
        Meta(
            description="Share of the decisions of the last hour whose estimate comes, at least half of it by weight, "
            'from clusters of more than one user, not counting "everyone" and "population"; null if unknown.'
        ),
    ]
    clusters: ClusterCounts
    sure_users: Annotated[
        int | None,
        Meta(
            description='Number of users who belong to a cluster other than "everyone" with a probability of at least '
            "0.9; null for policies without probabilities (all except ELOC), or if unknown."
        ),
    ]
    backfilling: Annotated[
        bool,
        Meta(
            description="Whether statistics are still being read from the log. While true, the history, mean rewards "
            "and the number of pending rewards are incomplete."
        ),
    ]
    rebuilding: Annotated[bool, Meta(description="Whether the policy is being rebuilt because a user was erased.")]
    reward_scale_problem: Annotated[
        str | None,
        Meta(
            description="Which rewards, among those learned since the service started, are not on a scale of "
            "about 0 to 1, although the store has no reward_range; null if there are none."
        ),
    ]
    store: StoreStatus
    snapshot: SnapshotStatus | None


class HistoryPoint(ResponseModel):
    """Decisions made and rewards learned in one time step. A correction counts in the step of the first reward."""

    time: Annotated[float, Meta(description="Unix time in seconds at which the step starts.")]
    decisions: Annotated[int, Meta(description="Number of decisions.")]
    cluster_based: Annotated[
        int | None,
        Meta(
            description="Number of decisions whose estimate used rewards of a cluster of more than one user, not "
            'counting "everyone" and "population"; null if unknown. Of the decisions before a restart, it is known for '
            "at most 5,000, none older than one hour."
        ),
    ]
    rewards: Annotated[int, Meta(description="Number of rewards.")]
    mean: Annotated[float | None, Meta(description="Mean reward; null without rewards.")]
    low: Bound
    high: Bound


class Period(ResponseModel, rename={"from_": "from"}):
    """Mean reward of a period."""

    from_: Time
    to: Time
    rewards: Annotated[int, Meta(description="Number of rewards.")]
    mean: Annotated[float | None, Meta(description="Mean reward; null without rewards.")]
    low: Bound
    high: Bound


class MeanChange(ResponseModel):
    """Difference between the mean rewards of two periods, with its confidence interval."""

    mean: Annotated[float, Meta(description="Difference of the means.")]
    low: ChangeBound
    high: ChangeBound


class History(ResponseModel):
    """Decisions and rewards over time."""

    span: Annotated[str, Meta(description="Period that ends now: hour, day, month or all.")]
    step_seconds: Annotated[int, Meta(description="Length of a time step in seconds.")]
    points: Annotated[list[HistoryPoint], Meta(description="Time steps; empty steps are omitted.")]
    total: Annotated[Period, Meta(description="The whole span.")]
    baseline: Annotated[
        Period | None, Meta(description="Period to compare with; null if the request has no baseline period.")
    ]
    change: Annotated[
        MeanChange | None,
        Meta(
            description="Mean reward of the span without the baseline period, minus the mean reward of the baseline "
            "period; null if one of the two has no rewards, or if there is no baseline period."
        ),
    ]


class MapCluster(ResponseModel):
    """Cluster that has its own colour on the map."""

    seed: Annotated[str | None, Meta(description=NAMED_AFTER)]
    size: Annotated[int, Meta(description="Number of members.")]
    returned: Annotated[bool, Meta(description=FINAL)]
    shown: Annotated[int, Meta(description="Number of members who are on the map.")]


class MapPoints(ResponseModel):
    """Users on the map, in columns of equal length."""

    user: list[str]
    x: list[float]
    y: list[float]
    served: Annotated[list[int], Meta(description="Number of rewards that the policy learned from the user.")]
    cluster: Annotated[
        list[int],
        Meta(
            description="Index in `clusters` of the smallest listed cluster that contains the user; −1 if the user is "
            "in no cluster, −2 if the user is only in clusters that are not listed."
        ),
    ]
    cluster_count: Annotated[list[int], Meta(description="Number of clusters that contain the user.")]


class Map(ResponseModel):
    """Projection of the users' estimates to two dimensions."""

    projection: Annotated[str | None, Meta(description="Id of the projection; null if no user has an estimate.")]
    explained_variance: Annotated[
        float | None,
        Meta(
            description="Share of the variance of the estimates that the projection preserves; null if all estimates "
            "are equal or there are none."
        ),
    ]
    users: Annotated[int, Meta(description="Number of users with an estimate.")]
    shown: Annotated[int, Meta(description="Number of users on the map.")]
    description: Annotated[
        str,
        Meta(description="Text that states which users are on the map, and how many of them are drawn at its edge."),
    ]
    clusters: Annotated[
        list[MapCluster],
        Meta(
            description="Up to 7 clusters: the largest cluster, then repeatedly the cluster with the most users who "
            "are in no cluster listed so far. Clusters whose users are all in smaller listed clusters are omitted."
        ),
    ]
    points: MapPoints


class UserDetail(ResponseModel):
    """Estimate and statistics of a user."""

    user: str
    served: Annotated[
        int | None,
        Meta(description="Number of rewards that the policy learned from this user; null if it does not report this."),
    ]
    theta: Annotated[
        list[float] | None,
        Meta(
            description="Estimated preferences, one entry per feature. The estimated reward of features x is the sum "
            "of theta_j x_j, plus the lower limit of reward_range, if the store has one, and, for ELOC, the location "
            "of the rewards. Null if the policy does not estimate preferences."
        ),
    ]
    radius: Annotated[
        float | None,
        Meta(
            description="Confidence radius of theta; for ELOC and MixedEffects, expected error of theta. Null if the "
            "policy has none."
        ),
    ]
    clusters: Annotated[list[UserCluster], Meta(description="Clusters that contain the user.")]
    no_cluster_probability: Annotated[
        float | None,
        Meta(
            description="Probability that the user is unlike all clusters, according to the model of ELOC; null for "
            "other policies."
        ),
    ]
    intervals: Annotated[
        list[tuple[float, float]] | None,
        Meta(
            description="95% interval of each entry of theta: theta_j ± 1.96 · ½ · √(A⁻¹)_jj. A is the identity plus "
            "the sum of x xᵀ over the rewards from which theta was learned, where x is the feature vector of the "
            "rewarded arm. Hybrid LinUCB uses the matrix S_u of its score instead of A⁻¹. ½ is the largest standard "
            "deviation of a reward in [0, 1]; with reward_range it is multiplied by high − low. ELOC, MixedEffects: "
            "posterior interval. Null if the policy does not report intervals."
        ),
    ]
    rewards: Annotated[int, Meta(description="Number of rewards of this user in the log, including default rewards.")]
    mean_reward: Annotated[float | None, Meta(description="Mean reward of this user; null without rewards.")]
    feature_indices: Annotated[
        dict[str, int],
        Meta(
            description="Index in theta of the features that recent requests name: of all features, or of the 300 "
            "most frequent ones. A negative index −j means that the weight of the feature is −theta[j]. The constant "
            "feature has index 0 and is not listed. Empty if features are arrays."
        ),
    ]


class SimilarUser(ResponseModel):
    """User who shares a cluster with the requested user."""

    user: str
    distance: Annotated[float, Meta(description="Euclidean distance between the estimates of the two users.")]
    radius: Annotated[
        float,
        Meta(
            description="Confidence radius of the estimate of this user; for ELOC and MixedEffects, its expected error."
        ),
    ]


class SimilarUsers(ResponseModel):
    """Users who share a cluster with the requested user, nearest first."""

    user: Annotated[str, Meta(description="The requested user.")]
    similar: list[SimilarUser]


class UserDecision(ResponseModel):
    """Decision for a user, with its reward."""

    decision_id: str
    time: Time
    arm: str
    reward: Annotated[float | None, Meta(description="Reward in the log; null while the reward is pending.")]
    reward_status: Annotated[
        str,
        Meta(
            description="pending (no reward yet), received, default (the default reward was learned) or corrected (a "
            "later reward replaced the default reward or, with `--personalizer-rewards sum`, was added)."
        ),
    ]
    response: Annotated[
        Raw,
        Meta(
            description="Decision as the client received it.",
            extra_json_schema={"$ref": "#/components/schemas/Decision"},
        ),
    ]
    features: Annotated[
        Features,
        Meta(
            description="Features of the recommended arm, as the client sent them. For a client of Azure Personalizer, "
            "the vector to which the service has hashed them."
        ),
    ]


class UserDecisions(ResponseModel):
    """Decisions for a user, newest first. Fewer than `limit` are listed if they are large."""

    user: str
    decisions: list[UserDecision]


class PreviewResponse(ResponseModel):
    """Arm that would be recommended now, with its explanation. The fields are those of a decision, without its id."""

    arm: str
    ranking: list[RankedArm]
    clusters: list[ClusterSummary]
    explanation: Explanation | None
