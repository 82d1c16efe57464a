"""What the views tell."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Raw

from locb.service.schemas import Answer, Explanation, Features, Group, RankedArm

Time = Annotated[float, Meta(description="Seconds since 1970.")]


class GroupCounts(Answer):
    """How many sets there are."""

    returned: Annotated[int, Meta(description="Complete ones.")]
    forming: Annotated[int, Meta(description="Those that still change.")]


class StoreState(Answer):
    """The log."""

    kind: Annotated[str, Meta(description="sqlite or postgresql.")]
    events: Annotated[int, Meta(description="Place of the last event.")]
    bytes: Annotated[int | None, Meta(description="On disk; null where that is not known.")]
    waiting: Annotated[int, Meta(description="Requests that wait for the disk.")]
    failure: Annotated[str | None, Meta(description="Why it cannot be written now.")]


class SnapshotState(Answer):
    """The newest snapshot."""

    events: Annotated[int, Meta(description="Place of the last event that it knows.")]
    time: Annotated[float | None, Meta(description="When it was written, in seconds since 1970.")]
    behind: Annotated[int, Meta(description="Events after it.")]


class Now(Answer):
    """How the service does."""

    time: Time
    policy: str
    version: str
    started: Time
    status: Annotated[str, Meta(description="ok, or unavailable while the store cannot be written.")]
    detail: Annotated[str | None, Meta(description="Why it is not ok.")]
    users: int
    learned_users: Annotated[int, Meta(description="Users with at least one reward.")]
    decisions: Annotated[int, Meta(description="In the log.")]
    rewards: Annotated[int, Meta(description="Learned, defaults among them; a correction is not one more.")]
    waiting_rewards: Annotated[int, Meta(description="Decisions from which nothing was learned yet.")]
    decisions_per_second: Annotated[float, Meta(description="Over the last 10 seconds.")]
    rewards_per_second: Annotated[float, Meta(description="Over the last 10 seconds.")]
    grouped_share: Annotated[
        float | None,
        Meta(description="Of the last hour's decisions, those that a group of more than one user served."),
    ]
    groups: GroupCounts
    reading_history: Annotated[
        bool, Meta(description="Whether the past of the log is still being read: counts are still too low then.")
    ]
    renewing: Annotated[bool, Meta(description="Whether the policy is being made anew, without users who were erased.")]
    store: StoreState
    snapshot: SnapshotState | None


Bound = Annotated[float | None, Meta(description="Of a 95% interval; null with fewer than two rewards.")]


class Step(Answer):
    """A step of time in which there was something."""

    time: Annotated[float, Meta(description="Its start, in seconds since 1970.")]
    decisions: int
    grouped: Annotated[
        int | None, Meta(description="Of these, served by a group; null where it is not known any more.")
    ]
    rewards: int
    mean: float | None
    low: Bound
    high: Bound


class Period(Answer, rename={"from_": "from"}):
    """The rewards of a time."""

    from_: Time
    to: Time
    rewards: int
    mean: float | None
    low: Bound
    high: Bound


class Change(Answer):
    """By how much a mean differs from another."""

    mean: float
    low: Bound
    high: Bound


class History(Answer):
    """Decisions and rewards over time."""

    span: str
    step: Annotated[int, Meta(description="Seconds.")]
    points: list[Step]
    total: Period
    baseline: Period | None
    change: Annotated[
        Change | None,
        Meta(description="The span without the time of the baseline, minus the baseline: Welch's interval."),
    ]


class MapGroup(Answer):
    """A set that the map shows in a colour of its own."""

    seed: str | None
    size: int
    returned: bool
    shown: Annotated[int, Meta(description="Its users among those shown.")]


class Points(Answer):
    """Users, a column each."""

    user: list[str]
    x: list[float]
    y: list[float]
    served: Annotated[list[int], Meta(description="Rewards learned.")]
    group: Annotated[
        list[int],
        Meta(description="The smallest of the sets listed that holds the user; −1 in no set, −2 in others only."),
    ]
    sets: Annotated[list[int], Meta(description="How many sets hold the user.")]


class Map(Answer):
    """Users' estimates on a plane that stays as it is."""

    basis: Annotated[str | None, Meta(description="Names the plane; null while there is none.")]
    variance: Annotated[float | None, Meta(description="How much of the estimates' variance the plane shows.")]
    users: Annotated[int, Meta(description="That have an estimate.")]
    shown: int
    how: str
    groups: Annotated[
        list[MapGroup],
        Meta(
            description="Up to 7: the largest, then always the one with most users who are in none before; "
            "not one whose users are all in smaller ones of these."
        ),
    ]
    points: Points


class Like(Answer):
    """A feature that the members of a set like."""

    feature: Annotated[str, Meta(description="Its name, or its place if features are numbers.")]
    weight: float


class GroupRow(Answer):
    """A set."""

    seed: str | None
    size: int
    returned: bool
    progress: Annotated[
        float | None,
        Meta(description="How near it is to being complete: 1 when it is; null where the policy has no such rule."),
    ]
    certificate: Annotated[
        float | None,
        Meta(description="No two members' tastes are farther apart; null if not known, or if the set is large."),
    ]
    certificate_exact: bool
    rewards: int
    mean_reward: float | None
    likes: list[Like]


class Overlap(Answer):
    """How far the first of the sets listed overlap."""

    seeds: list[str | None]
    shares: Annotated[list[list[float]], Meta(description="Of the users of a row's set, those in a column's too.")]


class GroupTable(Answer):
    """Sets, in the order asked for."""

    total: Annotated[int, Meta(description="That were searched for.")]
    returned: int
    forming: int
    groups: list[GroupRow]
    overlap: Overlap


class UserDecision(Answer):
    """A decision for a user."""

    decision_id: str
    time: Time
    arm: str
    reward: Annotated[float | None, Meta(description="Null while it waits.")]
    kind: Annotated[str, Meta(description="waiting, reward, default or correction.")]
    answer: Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Decision"})]
    features: Annotated[Features, Meta(description="Of the recommended arm, as sent.")]


class UserDecisions(Answer):
    """The latest first."""

    user: str
    decisions: list[UserDecision]


class Preview(Answer):
    """The arm that would be shown."""

    arm: str
    ranking: list[RankedArm]
    clusters: list[Group]
    explanation: Explanation | None
