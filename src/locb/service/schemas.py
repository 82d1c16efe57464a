"""Requests and responses of version 1 of the HTTP API."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from locb.recommender.events import MAX_ID_LENGTH, MAX_REWARD

MAX_ARMS = 1000  # arms in one request
MAX_BATCH = 1000  # requests or rewards in one batch
MAX_ARM_NAMES = 2000  # named features of one arm
FINAL = (
    "Whether the cluster is final: it loses no members, and accepts only users who arrive later. Of the built-in "
    "policies, only LOCB has final clusters."
)
Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Features = list[float] | dict[str, float | str | bool]


class RequestModel(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of request bodies. Unknown fields are rejected with 422, because they are usually typos.

    The event log stores requests without the fields that have their default.
    """


class ResponseModel(Struct, gc=False):
    """Base of response bodies. The garbage collector skips these objects, because they have no reference cycles."""


class Arm(RequestModel):
    """Item that can be recommended."""

    id: Id
    features: Annotated[
        Features,
        Meta(
            description="Array of `--dim` numbers, or an object of named values, which the service hashes into a "
            "vector of this length and norm 1."
        ),
    ]


class PreviewRequest(RequestModel):
    """Request for the arm that would be recommended now. No decision is stored."""

    user: Id
    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MAX_ARMS)]
    exclude: Annotated[list[Id], Meta(description="Ids of arms that must not be recommended.")] = []
    count: (
        Annotated[
            int,
            Meta(ge=1, le=MAX_ARMS, description="Maximum number of arms in `ranking`; default: all arms."),
        ]
        | None
    ) = None


class RecommendRequest(PreviewRequest):
    """Request to recommend one of the arms to a user. The service stores a decision."""

    decision_id: Annotated[
        Id | None,
        Meta(
            description="Id of the decision, generated if null. Repeating a request with the same id returns the same "
            "decision."
        ),
    ] = None


class RankedArm(ResponseModel):
    """Arm with its score, in units of rewards. The three numbers are null if the policy does not report scores."""

    arm: str
    score: Annotated[float | None, Meta(description="estimate + bonus.")]
    estimate: Annotated[float | None, Meta(description="Estimated mean reward.")]
    bonus: Annotated[float | None, Meta(description="Exploration bonus for the uncertainty of the estimate.")]


class ClusterSummary(ResponseModel):
    """Cluster: set of users whom the policy treats as similar."""

    seed: Annotated[
        str | None,
        Meta(
            description="User around whom the cluster is built; null if the cluster has no seed, such as the cluster "
            '"everyone" of ELOC. For policies without seeds (all built-in policies except LOCB and ELOC), '
            "`GET /v1/clusters` gives the first member instead."
        ),
    ]
    size: Annotated[
        int | None,
        Meta(
            description="Number of users; null if the policy does not report it. ELOC reports it only in "
            "`GET /v1/clusters`."
        ),
    ]
    returned: Annotated[bool, Meta(description=FINAL)]


class EvidenceSource(ResponseModel):
    """Evidence source: users whose rewards contribute to the estimate of the recommended arm."""

    kind: Annotated[
        str,
        Meta(
            description="user (the user alone), cluster (LOCB, SCLUB, DynUCB), component (connected component of the "
            "graph of CLUB), neighbourhood (ELOC, CAB, RCLUMB), everyone (all users), population (prior of ELOC or "
            "MixedEffects over users) or other (all neighbourhoods with a weight below 0.05 each)."
        ),
    ]
    seed: Annotated[str | None, Meta(description="Seed of the cluster or neighbourhood; null if there is none.")]
    weight: Annotated[float, Meta(description="Share of the estimate; the weights of all sources add up to 1.")]
    users: Annotated[int | None, Meta(description="Number of users in the source; null if unknown.")]
    observations: Annotated[
        int | None, Meta(description="Number of rewards learned from the users in the source; null if unknown.")
    ]


class Explanation(ResponseModel):
    """Parts of the recommended arm's score: sum of contributions + intercept = estimate, estimate + bonus = score."""

    contributions: Annotated[
        dict[str, float],
        Meta(description="Contribution of each feature, by name, or by index if features are an array."),
    ]
    intercept: Annotated[
        float,
        Meta(
            description="Contribution of the constant that the service adds to named features (0 for an array), plus "
            "the lower limit of reward_range, if the store has one, and, for ELOC, the location of the rewards."
        ),
    ]
    bonus: Annotated[float, Meta(description="Exploration bonus for the uncertainty of the estimate.")]
    sources: list[EvidenceSource]
    screened: Annotated[
        bool,
        Meta(
            description="Whether a safety screen has replaced the arm with the highest score, because the user's own "
            "rewards indicate that another arm may be clearly better. False for a policy without a screen."
        ),
    ]


class Decision(ResponseModel):
    """Recommended arm with its explanation."""

    decision_id: Annotated[str, Meta(description="Id to send with the reward.")]
    arm: Annotated[str, Meta(description="Id of the recommended arm.")]
    ranking: Annotated[
        list[RankedArm],
        Meta(
            description="Arms that are not excluded; at most `count`. The recommended arm is first; the others follow "
            "by decreasing score. The recommended arm has the highest score, unless a safety screen of the policy "
            "replaced that arm. Only the recommended arm if the policy does not report scores."
        ),
    ]
    clusters: Annotated[list[ClusterSummary], Meta(description="Clusters that contain the user.")]
    explanation: Annotated[Explanation | None, Meta(description="Null if the policy does not explain its choices.")]


class RecommendBatchRequest(RequestModel):
    """Several requests for recommendations."""

    requests: Annotated[list[RecommendRequest], Meta(min_length=1, max_length=MAX_BATCH)]


class Problem(ResponseModel, omit_defaults=True):
    """Error response (RFC 9457)."""

    type: Annotated[str, Meta(description="Problem type: `urn:locb:problem:` followed by its name.")]
    title: Annotated[str, Meta(description="Title of the problem type.")]
    status: Annotated[int, Meta(description="HTTP status.")]
    detail: Annotated[str, Meta(description="What is wrong, and what is allowed or what to do.")]
    fields: Annotated[list[str] | UnsetType, Meta(description="Paths of the fields that caused the problem.")] = UNSET
    request_id: Annotated[
        str | UnsetType, Meta(description="Id of the request, as in the header `X-Request-Id` of the response.")
    ] = UNSET


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


class UserErased(ResponseModel):
    """Confirmation that a user, and everything learned from that user, was erased."""

    user: str
    erased_decisions: Annotated[int, Meta(description="Number of decisions erased, with their rewards.")]


class Liveness(ResponseModel):
    """Confirmation that the process responds to requests."""

    status: Annotated[str, Meta(description="Always ok.")] = "ok"


class Health(ResponseModel):
    """Readiness of the service: whether it can decide and learn."""

    status: Annotated[str, Meta(description="ok, or unavailable while the store cannot be written.")]
    policy: Annotated[str, Meta(description="Name of the policy.")]
    users: Annotated[int, Meta(description="Number of known users.")]
    log_position: Annotated[int, Meta(description="Sequence number of the last event in the log.")]
    queued_requests: Annotated[
        int, Meta(description="Number of decisions and rewards that wait to be written to the store.")
    ]
    snapshot_position: Annotated[
        int | None,
        Meta(description="Sequence number of the last event in the newest snapshot; null if there is no snapshot."),
    ]
    detail: Annotated[str | None, Meta(description="Why the status is not ok; null if it is ok.")] = None
