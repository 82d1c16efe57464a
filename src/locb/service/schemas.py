"""What goes over the wire: requests and answers of the API, version 1."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

MOST_ARMS = 1000
LONGEST_ID = 256  # characters of any kind
Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Features = list[float] | dict[str, float | str | bool]


class Message(Struct, forbid_unknown_fields=True):
    """A request: a field that is not known is an error, since it is most likely a slip of the pen."""


class Answer(Struct, gc=False):
    """What the service says. Nothing in it leads back to it, so the collector of cycles need not look."""


class Arm(Message):
    """One of the items to choose from."""

    id: Id
    features: Annotated[
        Features,
        Meta(description="`dim` numbers, or an object of names and values that is hashed into a vector of length 1."),
    ]


class PreviewRequest(Message):
    """Which of these arms would be recommended to this user now?"""

    user: Id
    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ARMS)]
    exclude: Annotated[list[Id], Meta(description="Ids of arms not to recommend this time.")] = []
    count: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MOST_ARMS,
                description="How many arms the ranking tells, the best first; all of them if not given.",
            ),
        ]
        | None
    ) = None


class RecommendRequest(PreviewRequest):
    """Which of these arms for this user?"""

    decision_id: Annotated[
        Id | None,
        Meta(description="A name for this decision. The same request under the same name gets the same answer."),
    ] = None


class RankedArm(Answer):
    """An arm and its score = estimate + bonus; null from a policy that does not tell."""

    arm: str
    score: float | None
    estimate: float | None
    bonus: float | None


class Group(Answer):
    """A set of users who may be alike."""

    seed: Annotated[
        str | None, Meta(description="The user around whom the set grew; null while nobody has come for its place.")
    ]
    size: Annotated[int | None, Meta(description="Users in it; null from a policy that does not count them.")]
    returned: Annotated[bool, Meta(description="Whether the set is complete; false while it still changes.")]


class EvidenceSource(Answer):
    """Where the estimate of the recommended arm comes from."""

    kind: Annotated[str, Meta(description="own, set, component, neighbourhood, everyone or population.")]
    seed: str | None
    weight: float
    users: int | None
    observations: int | None


class Explanation(Answer):
    """Why this arm: contributions and constant add up to its estimate, and estimate + bonus is its score."""

    contributions: Annotated[
        dict[str, float],
        Meta(description="By the name of a feature, or by its place if features are numbers."),
    ]
    constant: Annotated[float, Meta(description="What the constant adds that comes with features of names.")]
    bonus: float
    sources: list[EvidenceSource]


class Decision(Answer):
    """The arm to show."""

    decision_id: str
    arm: str
    ranking: list[RankedArm]
    clusters: list[Group]
    explanation: Explanation | None


class RecommendBatch(Message):
    """Several questions at once."""

    requests: Annotated[list[RecommendRequest], Meta(min_length=1, max_length=1000)]


class Problem(Answer, omit_defaults=True):
    """What is wrong, after RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    fields: Annotated[list[str] | UnsetType, Meta(description="Where in the request.")] = UNSET


class DecisionOrProblem(Answer, omit_defaults=True):
    """One of a batch: a decision or a problem."""

    decision: Decision | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class Decisions(Answer):
    """In the order of the questions."""

    answers: list[DecisionOrProblem]


class RewardRequest(Message):
    """What the recommended arm of a decision earned."""

    decision_id: Id
    reward: Annotated[float, Meta(ge=-1e6, le=1e6)]


class Rewarded(Answer):
    """The reward is on disk and learned."""

    decision_id: str
    reward: float
    corrected: Annotated[bool, Meta(description="Whether it took the place of a default reward learned before.")] = (
        False
    )


class RewardBatch(Message):
    """Several rewards at once."""

    rewards: Annotated[list[RewardRequest], Meta(min_length=1, max_length=1000)]


class RewardedOrProblem(Answer, omit_defaults=True):
    """One of a batch: what was learned, or a problem."""

    rewarded: Rewarded | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class Rewardeds(Answer):
    """In the order of the rewards."""

    answers: list[RewardedOrProblem]


class User(Answer):
    """What is known of a user."""

    user: str
    served: Annotated[int | None, Meta(description="Rewards learned; null from a policy that does not tell.")]
    theta: list[float] | None
    radius: float | None
    clusters: list[Group]
    intervals: Annotated[
        list[tuple[float, float]] | None,
        Meta(
            description="Of each entry of theta, 95%: theta ± 1.96 · ½ · √(A⁻¹) of its place, as if rewards in [0, 1] "
            "varied as much as they can; from ELOC, of what it believes. Null from a policy that does not tell."
        ),
    ]
    rewards: Annotated[int, Meta(description="In the log.")]
    mean_reward: float | None
    names: Annotated[
        dict[str, int],
        Meta(
            description="Features that recent requests gave by name, each with its place in theta, negative where its "
            "sign is; the constant is at 0. Empty where features are numbers."
        ),
    ]


class SimilarUser(Answer):
    """Somebody who shares a set with the user."""

    user: str
    distance: float
    radius: float


class SimilarUsers(Answer):
    """The nearest first."""

    user: str
    similar: list[SimilarUser]


class Groups(Answer):
    """All sets."""

    clusters: list[Group]


class GroupMembers(Answer):
    """A set, its members, and how far apart two of them can be."""

    seed: str
    size: int
    returned: bool
    returned_at: int | None
    members: list[str]
    certificate: Annotated[
        float | None,
        Meta(description="With probability 1 − delta no two members' tastes are farther apart; null if not known."),
    ]
    certificate_exact: Annotated[
        bool,
        Meta(description="Over all pairs; else by way of the middle of a large set: not as tight, still true."),
    ]


class Forgotten(Answer):
    """A user is gone, and so is everything that was learned from them."""

    user: str
    decisions: Annotated[int, Meta(description="How many decisions were erased, with their rewards.")]


class Health(Answer):
    """How the service is."""

    status: str
    policy: str
    users: int
    events: Annotated[int, Meta(description="Place of the last event in the log.")]
    waiting: Annotated[int, Meta(description="Requests that wait for the disk.")]
    snapshot: Annotated[int | None, Meta(description="Place in the log of the newest snapshot.")]
    detail: str | None = None
