"""Responses of the routes that the dashboard reads."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw

from locb.service.schemas import ClusterSummary, Explanation, Features, RankedArm, ResponseModel

Time = Annotated[float, Meta(description="Unix time in seconds.")]
Bound = Annotated[float | None, Meta(description="Bound of the 95% interval; null with fewer than two rewards.")]


class ClusterCounts(ResponseModel):
    """Number of clusters by state."""

    returned: Annotated[int, Meta(description="Final clusters.")]
    forming: Annotated[int, Meta(description="Clusters that can still change.")]


class StoreStatus(ResponseModel):
    """State of the store."""

    kind: Annotated[str, Meta(description="sqlite or postgresql.")]
    position: Annotated[int, Meta(description="Sequence number of the last event.")]
    bytes: Annotated[int | None, Meta(description="Size on disk; null if unknown.")]
    queued_requests: Annotated[int, Meta(description="Requests waiting to be written.")]
    error: Annotated[str | None, Meta(description="Reason why the store cannot be written; null if it can.")]


class SnapshotStatus(ResponseModel):
    """State of the newest snapshot."""

    position: Annotated[int, Meta(description="Sequence number of the last event in the snapshot.")]
    time: Annotated[float | None, Meta(description="Unix time in seconds when it was written.")]
    events_since: Annotated[int, Meta(description="Events after the snapshot.")]


class Status(ResponseModel):
    """Current state of the service."""

    time: Time
    policy: str
    version: str
    started_at: Time
    status: Annotated[str, Meta(description="ok, or unavailable while the store cannot be written.")]
    detail: Annotated[str | None, Meta(description="Reason why the status is not ok.")]
    users: Annotated[int, Meta(description="Known users.")]
    rewarded_users: Annotated[int, Meta(description="Users with at least one reward.")]
    decisions: Annotated[int, Meta(description="Decisions in the log.")]
    rewards: Annotated[int, Meta(description="Rewards learned, including defaults. A correction is not counted again.")]
    pending_rewards: Annotated[int, Meta(description="Decisions without a learned reward.")]
    decisions_per_second: Annotated[float, Meta(description="Mean of the last 10 seconds.")]
    rewards_per_second: Annotated[float, Meta(description="Mean of the last 10 seconds.")]
    cluster_based_share: Annotated[
        float | None,
        Meta(description="Share of the decisions of the last hour that used a cluster of more than one user."),
    ]
    clusters: ClusterCounts
    backfilling: Annotated[
        bool, Meta(description="Whether statistics are still being read from the log; counts are too low until then.")
    ]
    rebuilding: Annotated[bool, Meta(description="Whether the policy is being rebuilt because a user was erased.")]
    store: StoreStatus
    snapshot: SnapshotStatus | None


class HistoryPoint(ResponseModel):
    """Decisions and rewards of one time step."""

    time: Annotated[float, Meta(description="Unix time in seconds at which the step starts.")]
    decisions: int
    cluster_based: Annotated[
        int | None, Meta(description="Decisions that used a cluster of more than one user; null if no longer known.")
    ]
    rewards: int
    mean: Annotated[float | None, Meta(description="Mean reward.")]
    low: Bound
    high: Bound


class Period(ResponseModel, rename={"from_": "from"}):
    """Rewards of a period."""

    from_: Time
    to: Time
    rewards: int
    mean: Annotated[float | None, Meta(description="Mean reward.")]
    low: Bound
    high: Bound


class MeanChange(ResponseModel):
    """Difference between two mean rewards."""

    mean: float
    low: Bound
    high: Bound


class History(ResponseModel):
    """Decisions and rewards over time."""

    span: str
    step_seconds: Annotated[int, Meta(description="Length of a time step.")]
    points: Annotated[list[HistoryPoint], Meta(description="Time steps; empty steps are omitted.")]
    total: Annotated[Period, Meta(description="The whole span.")]
    baseline: Annotated[Period | None, Meta(description="The period to compare with, if one was requested.")]
    change: Annotated[
        MeanChange | None,
        Meta(description="Mean of the span without the baseline period, minus the baseline; Welch's interval."),
    ]


class MapCluster(ResponseModel):
    """Cluster that has its own colour on the map."""

    seed: str | None
    size: int
    returned: bool
    shown: Annotated[int, Meta(description="Members that are on the map.")]


class MapPoints(ResponseModel):
    """Users on the map, in columns of equal length."""

    user: list[str]
    x: list[float]
    y: list[float]
    served: Annotated[list[int], Meta(description="Rewards learned.")]
    cluster: Annotated[
        list[int],
        Meta(
            description="Index in `clusters` of the smallest one that contains the user; −1 if the user is in no "
            "cluster, −2 if only in clusters that are not listed."
        ),
    ]
    cluster_count: Annotated[list[int], Meta(description="Number of clusters that contain the user.")]


class Map(ResponseModel):
    """Projection of the users' estimates to two dimensions."""

    projection: Annotated[str | None, Meta(description="Id of the projection; null if no user has an estimate.")]
    explained_variance: Annotated[
        float | None, Meta(description="Share of the variance of the estimates that the projection preserves.")
    ]
    users: Annotated[int, Meta(description="Users with an estimate.")]
    shown: Annotated[int, Meta(description="Users on the map.")]
    description: Annotated[str, Meta(description="Which users are shown.")]
    clusters: Annotated[
        list[MapCluster],
        Meta(
            description="Up to 7 clusters: the largest, then repeatedly the one that adds most users. Clusters whose "
            "users are all in smaller listed clusters are omitted."
        ),
    ]
    points: MapPoints


class FeatureWeight(ResponseModel):
    """Feature with its weight in the mean estimate of a cluster."""

    feature: Annotated[str, Meta(description="Name, or index if features are arrays.")]
    weight: float


class ClusterRow(ResponseModel):
    """Row of the table of clusters."""

    seed: str | None
    size: int
    returned: Annotated[bool, Meta(description="Whether the cluster is final.")]
    progress: Annotated[
        float | None,
        Meta(description="Progress towards becoming final, from 0 to 1; null if the policy has no such rule."),
    ]
    certificate: Annotated[
        float | None,
        Meta(
            description="Upper bound on the distance between the preferences of any two members; null if unknown or "
            "if the cluster is too large."
        ),
    ]
    certificate_exact: Annotated[bool, Meta(description="Whether the bound was computed over all pairs.")]
    rewards: int
    mean_reward: float | None
    top_features: Annotated[list[FeatureWeight], Meta(description="Features with the largest positive weights.")]


class ClusterOverlap(ResponseModel):
    """Overlap of the first clusters of the table."""

    seeds: list[str | None]
    shares: Annotated[
        list[list[float]],
        Meta(description="Share of the users of the row's cluster that are also in the column's cluster."),
    ]


class ClusterTable(ResponseModel):
    """Page of the table of clusters."""

    total: Annotated[int, Meta(description="Clusters that match the search.")]
    returned: Annotated[int, Meta(description="Final clusters.")]
    forming: Annotated[int, Meta(description="Clusters that can still change.")]
    clusters: list[ClusterRow]
    overlap: ClusterOverlap


class UserDecision(ResponseModel):
    """Decision for a user, with its reward."""

    decision_id: str
    time: Time
    arm: str
    reward: Annotated[float | None, Meta(description="Null while it is pending.")]
    reward_status: Annotated[str, Meta(description="pending, received, default or corrected.")]
    response: Annotated[
        Raw,
        Meta(description="The decision as it was sent.", extra_json_schema={"$ref": "#/components/schemas/Decision"}),
    ]
    features: Annotated[Features, Meta(description="Features of the recommended arm, as sent.")]


class UserDecisions(ResponseModel):
    """Decisions for a user, newest first."""

    user: str
    decisions: list[UserDecision]


class PreviewResponse(ResponseModel):
    """Arm that would be recommended now."""

    arm: str
    ranking: list[RankedArm]
    clusters: list[ClusterSummary]
    explanation: Explanation | None
