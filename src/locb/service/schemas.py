"""Requests and responses of version 1 of the HTTP API."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

MAX_ARMS = 1000
MAX_BATCH = 1000  # requests or rewards in one batch
MAX_ID_LENGTH = 256  # characters
MAX_REWARD = 1e6  # absolute value
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Features = list[float] | dict[str, float | str | bool]


class RequestModel(Struct, forbid_unknown_fields=True):
    """Base of request bodies. Unknown fields are rejected with 422, because they are usually typos."""


class ResponseModel(Struct, gc=False):
    """Base of response bodies. They contain no reference cycles, so the garbage collector can skip them."""


class Arm(RequestModel):
    """An item to choose from."""

    id: Id
    features: Annotated[
        Features,
        Meta(description="Array of `dim` numbers, or an object of named values that is hashed into a unit vector."),
    ]


class PreviewRequest(RequestModel):
    """Request for the current recommendation. No decision is stored."""

    user: Id
    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MAX_ARMS)]
    exclude: Annotated[list[Id], Meta(description="Ids of arms that must not be recommended.")] = []
    count: (
        Annotated[
            int,
            Meta(ge=1, le=MAX_ARMS, description="Maximum number of arms in `ranking`, best first; default: all arms."),
        ]
        | None
    ) = None


class RecommendRequest(PreviewRequest):
    """Request for a decision."""

    decision_id: Annotated[
        Id | None,
        Meta(
            description="Id of the decision, generated if null. Repeating a request with the same id returns the same "
            "decision."
        ),
    ] = None


class RankedArm(ResponseModel):
    """Arm with its score, which is estimate + bonus. Null if the policy does not report scores."""

    arm: str
    score: float | None
    estimate: float | None
    bonus: float | None


class ClusterSummary(ResponseModel):
    """Cluster of users with similar preferences."""

    seed: Annotated[
        str | None, Meta(description="User around whom the cluster is built; null if the cluster has no seed.")
    ]
    size: Annotated[int | None, Meta(description="Number of users; null if the policy does not report it.")]
    returned: Annotated[bool, Meta(description="Whether the cluster is final; false while it can still change.")]


class EvidenceSource(ResponseModel):
    """Source of the observations behind the estimate of the recommended arm."""

    kind: Annotated[str, Meta(description="user, cluster, component, neighbourhood, everyone or population.")]
    seed: Annotated[str | None, Meta(description="Seed of the cluster or neighbourhood; null for other kinds.")]
    weight: Annotated[float, Meta(description="Share of the estimate; the weights of all sources add up to 1.")]
    users: Annotated[int | None, Meta(description="Number of users in the source; null if unknown.")]
    observations: Annotated[int | None, Meta(description="Rewards learned from these users; null if unknown.")]


class Explanation(ResponseModel):
    """Parts of a score: contributions + intercept = estimate, and estimate + bonus = score."""

    contributions: Annotated[
        dict[str, float],
        Meta(description="Contribution of each feature, by name, or by index if features are an array."),
    ]
    intercept: Annotated[
        float, Meta(description="Contribution of the constant feature, which is added to named features.")
    ]
    bonus: Annotated[float, Meta(description="Exploration bonus for uncertainty.")]
    sources: list[EvidenceSource]


class Decision(ResponseModel):
    """Recommended arm."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: Annotated[list[ClusterSummary], Meta(description="Clusters that contain the user.")]
    explanation: Annotated[Explanation | None, Meta(description="Null if the policy does not explain its choices.")]


class RecommendBatchRequest(RequestModel):
    """Several requests for decisions."""

    requests: Annotated[list[RecommendRequest], Meta(min_length=1, max_length=MAX_BATCH)]


class Problem(ResponseModel, omit_defaults=True):
    """Error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    fields: Annotated[list[str] | UnsetType, Meta(description="Paths of the fields that caused the problem.")] = UNSET


class RecommendResult(ResponseModel, omit_defaults=True):
    """Result of one request of a batch: a decision or a problem."""

    decision: Decision | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class RecommendBatchResponse(ResponseModel):
    """Results in the order of the requests."""

    results: list[RecommendResult]


class RewardRequest(RequestModel):
    """Reward of a decision."""

    decision_id: Id
    reward: Annotated[float, Meta(ge=-MAX_REWARD, le=MAX_REWARD)]


class RewardResponse(ResponseModel):
    """Confirmation that the reward is stored and learned."""

    decision_id: str
    reward: float
    corrected: Annotated[bool, Meta(description="Whether this reward replaced a default reward.")] = False


class RewardBatchRequest(RequestModel):
    """Several rewards."""

    rewards: Annotated[list[RewardRequest], Meta(min_length=1, max_length=MAX_BATCH)]


class RewardResult(ResponseModel, omit_defaults=True):
    """Result of one reward of a batch: a confirmation or a problem."""

    reward: RewardResponse | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class RewardBatchResponse(ResponseModel):
    """Results in the order of the rewards."""

    results: list[RewardResult]


class UserDetail(ResponseModel):
    """Estimate and statistics of a user."""

    user: str
    served: Annotated[int | None, Meta(description="Rewards learned; null if the policy does not report it.")]
    theta: Annotated[list[float] | None, Meta(description="Estimated preferences; null if the policy has none.")]
    radius: Annotated[float | None, Meta(description="Confidence radius of the estimate; null if there is none.")]
    clusters: Annotated[list[ClusterSummary], Meta(description="Clusters that contain the user.")]
    intervals: Annotated[
        list[tuple[float, float]] | None,
        Meta(
            description="95% interval of each entry of theta: theta_j ± 1.96 · ½ · √(A⁻¹)_jj, where ½ is the largest "
            "standard deviation of a reward in [0, 1]. ELOC: posterior interval. Null if the policy does not report it."
        ),
    ]
    rewards: Annotated[int, Meta(description="Rewards of this user in the log.")]
    mean_reward: float | None
    feature_indices: Annotated[
        dict[str, int],
        Meta(
            description="Index in theta of each feature named in recent requests. A negative index means that theta is "
            "to be negated for this feature. The constant feature has index 0. Empty if features are arrays."
        ),
    ]


class SimilarUser(ResponseModel):
    """User in the same cluster."""

    user: str
    distance: Annotated[float, Meta(description="Distance between the two estimates.")]
    radius: Annotated[float, Meta(description="Confidence radius of that user's estimate.")]


class SimilarUsers(ResponseModel):
    """Similar users, nearest first."""

    user: str
    similar: list[SimilarUser]


class ClusterList(ResponseModel):
    """All clusters."""

    clusters: list[ClusterSummary]


class ClusterDetail(ResponseModel):
    """Cluster with its members and certificate."""

    seed: str
    size: int
    returned: Annotated[bool, Meta(description="Whether the cluster is final.")]
    returned_at: Annotated[int | None, Meta(description="Round in which it became final; null if it is not final.")]
    members: list[str]
    certificate: Annotated[
        float | None,
        Meta(
            description="Upper bound on the distance between the preferences of any two members, with probability "
            "1 − delta; null if unknown."
        ),
    ]
    certificate_exact: Annotated[
        bool,
        Meta(
            description="Whether the bound was computed over all pairs. Otherwise it was computed from the centre of a "
            "large cluster: it is valid, but less tight."
        ),
    ]


class UserErased(ResponseModel):
    """Confirmation that a user, and everything learned from that user, was erased."""

    user: str
    erased_decisions: Annotated[int, Meta(description="Number of decisions erased, with their rewards.")]


class Health(ResponseModel):
    """Health of the service."""

    status: Annotated[str, Meta(description="ok, or unavailable while the store cannot be written.")]
    policy: str
    users: int
    log_position: Annotated[int, Meta(description="Sequence number of the last event in the log.")]
    queued_requests: Annotated[int, Meta(description="Requests waiting to be written to the store.")]
    snapshot_position: Annotated[
        int | None, Meta(description="Sequence number of the last event in the newest snapshot; null without snapshot.")
    ]
    detail: Annotated[str | None, Meta(description="Reason why the status is not ok.")] = None
