"""Results of a recommender: recommendations, groups and similar users, with the names of users and arms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from locb.common.frames import make_frame, rows_to_columns
from locb.evaluation.clusters import Cluster, Membership
from locb.policies.base import explanations
from locb.recommender.events import DecisionRow
from locb.recommender.requests import ParsedRequest
from locb.recommender.user_index import UserIndex


class RankedArm(NamedTuple):
    """Arm with its score. The numbers are in units of rewards, and None if the policy does not report scores."""

    arm: str
    score: float | None  # estimate + bonus
    estimate: float | None  # estimated mean reward
    bonus: float | None  # exploration bonus for the uncertainty of the estimate


class GroupOfUser(NamedTuple):
    """Group that contains the user of a recommendation, described without its members."""

    seed: str | None  # user around whom the group is built; None for a policy without seed users
    size: int | None  # number of users; None if the policy does not report it
    final: bool  # whether the group loses no more members


class NamedSource(NamedTuple):
    """Users whose rewards contribute to an estimate, as ``locb.EvidenceSource`` with the name of the seed."""

    kind: str
    seed: str | None
    weight: float
    users: int | None
    observations: int | None


class NamedGroup(NamedTuple):
    """Group of users with similar preferences."""

    seed: str | None  # user around whom the group is built; None for a policy without seed users
    users: tuple[str, ...]
    final: bool  # whether the group loses no more members
    seeds: tuple[str, ...] = ()  # all seed users with this group; the first one is ``seed``

    def __repr__(self) -> str:
        around = "" if self.seed is None else f" around {self.seed!r}"
        if len(self.seeds) > 1:
            around += f" and {len(self.seeds) - 1:,} more"
        noun = "user" if len(self.users) == 1 else "users"
        return f"NamedGroup({len(self.users):,} {noun}{around}{', final' if self.final else ''})"


def named_groups(clusters: Iterable[Cluster], name_of: Callable[[int], str | None]) -> list[NamedGroup]:
    """Return clusters as groups of users with names, in the order of the clusters. Equal groups are merged.

    Indices without a user, and the clusters around them, are omitted.
    """
    found: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for cluster in clusters:
        seed = None if cluster.seed is None else name_of(cluster.seed)
        names = tuple(name for name in map(name_of, cluster.members.tolist()) if name is not None)
        if names and (seed is None) == (cluster.seed is None):
            found.setdefault((names, cluster.returned_at is not None), []).extend([] if seed is None else [seed])
    return [NamedGroup(next(iter(seeds), None), *group, tuple(seeds)) for group, seeds in found.items()]


class SimilarNamedUser(NamedTuple):
    """User who shares a group with a given user."""

    user: str
    distance: float  # between the estimates of the two users
    radius: float  # confidence radius of the estimate of ``user``


class ArmExplanation(NamedTuple):
    """Parts of the recommended arm's score: sum of contributions + intercept = estimate, estimate + bonus = score.

    Attributes
    ----------
    contributions : dict of str to float
        Contribution of each feature, by name, or by index if the features are a vector.
    intercept : float
        Contribution of the constant that is added to named features, plus the lower limit of ``reward_range``, if any.
    bonus : float
        Exploration bonus for the uncertainty of the estimate.
    sources : tuple of NamedSource
        Groups of users whose rewards contribute to the estimate.
    screened : bool
        Whether a safety screen has replaced the arm with the highest score.
    """

    contributions: dict[str, float]
    intercept: float
    bonus: float
    sources: tuple[NamedSource, ...]
    screened: bool


@dataclass(frozen=True, repr=False, slots=True)
class Recommendation:
    """A recommended arm with its explanation.

    Attributes
    ----------
    decision_id : str
        Id to pass to ``Recommender.reward``; "" for a result of ``Recommender.explain``.
    user : str
        The user.
    arm : str
        Id of the recommended arm.
    ranking : tuple of RankedArm
        At most ``count`` arms. The recommended arm comes first, and the others follow by decreasing score.
    groups : tuple of GroupOfUser
        Groups that contain the user.
    explanation : ArmExplanation or None
        Parts of the score; None if the policy does not explain its choices.
    """

    decision_id: str
    user: str
    arm: str
    ranking: tuple[RankedArm, ...]
    groups: tuple[GroupOfUser, ...]
    explanation: ArmExplanation | None

    @property
    def score(self) -> float | None:
        """Score of the recommended arm: estimated mean reward plus exploration bonus."""
        return self.ranking[0].score

    def __repr__(self) -> str:
        score = "" if self.score is None else f", score {self.score:.3g}"
        return f"Recommendation(arm {self.arm!r} for user {self.user!r}{score})"

    def to_dict(self) -> dict[str, Any]:
        """Return the recommendation as the JSON object with which the service responds, without the user."""
        explanation = None
        if self.explanation is not None:
            sources = [source._asdict() for source in self.explanation.sources]
            explanation = {**self.explanation._asdict(), "sources": sources}
        clusters = [{"seed": group.seed, "size": group.size, "returned": group.final} for group in self.groups]
        return {
            "decision_id": self.decision_id,
            "arm": self.arm,
            "ranking": [ranked._asdict() for ranked in self.ranking],
            "clusters": clusters,
            "explanation": explanation,
        }

    @classmethod
    def from_dict(cls, user: str, fields: Mapping[str, Any]) -> Recommendation:
        """Return the recommendation for a user that ``to_dict`` has converted."""
        explanation = fields["explanation"]
        if explanation is not None:
            sources = tuple(NamedSource(**source) for source in explanation["sources"])
            explanation = ArmExplanation(**{**explanation, "sources": sources})
        ranking = tuple(RankedArm(**ranked) for ranked in fields["ranking"])
        groups = tuple(GroupOfUser(group["seed"], group["size"], group["returned"]) for group in fields["clusters"])
        return cls(fields["decision_id"], user, fields["arm"], ranking, groups, explanation)

    def to_frame(self, library: str = "polars") -> Any:
        """Return the ranking as a data frame: arm, score, estimate and bonus. ``library`` is "polars" or "pandas"."""
        return make_frame(rows_to_columns([ranked._asdict() for ranked in self.ranking], RankedArm._fields), library)

    def contributions_frame(self, library: str = "polars") -> Any:
        """Return a data frame with the contribution of each feature to the estimate, largest absolute value first."""
        found = {} if self.explanation is None else self.explanation.contributions
        names = sorted(found, key=lambda name: -abs(found[name]))
        return make_frame({"feature": names, "contribution": [found[name] for name in names]}, library)

    def sources_frame(self, library: str = "polars") -> Any:
        """Return a data frame with one row per group of users whose rewards contribute to the estimate."""
        sources = () if self.explanation is None else self.explanation.sources
        return make_frame(rows_to_columns([source._asdict() for source in sources], NamedSource._fields), library)


class RecommendationEncoder:
    """Converter of decisions to recommendations, see ``interfaces.Encoder``."""

    def __init__(self, users: UserIndex, dim: int) -> None:
        self._users = users
        self._feature_names = [str(feature) for feature in range(dim)]

    def clear_cache(self) -> None:
        """Do nothing: recommendations are not cached."""

    def encode(
        self,
        decision_id: str,
        parsed: ParsedRequest,
        explanation: explanations.Explanation,
        memberships: Sequence[Membership],
    ) -> tuple[Recommendation, bytes]:
        """Return the recommendation. The second value, the packed response, is not used."""
        arms, users = parsed.request.arms, self._users
        positions, estimates, bonuses = parsed.rank(explanation)
        ids = [arms[position].id for position in positions]
        if estimates is None:
            ranking = tuple(RankedArm(arm, None, None, None) for arm in ids)
        else:
            ranking = tuple(
                RankedArm(arm, estimate + bonus, estimate, bonus)
                for arm, estimate, bonus in zip(ids, estimates, bonuses, strict=True)
            )
        summaries = (users.summarize(membership) for membership in memberships)
        groups = tuple(GroupOfUser(*summary) for summary in summaries if summary is not None)
        explained = None
        if explanation.theta is not None and explanation.bonus is not None:
            names, contributions, intercept = parsed.contributions(explanation)
            by_name = dict(zip(self._feature_names if names is None else names, contributions, strict=True))
            sources = tuple(
                NamedSource(kind, None if seed is None else users.name_of(seed), float(weight), count, observations)
                for kind, seed, weight, count, observations in explanation.sources or ()
            )
            explained = ArmExplanation(by_name, intercept, bonuses[0], sources, explanation.screened)
        return Recommendation(decision_id, parsed.request.user, ids[0], ranking, groups, explained), b""

    def chosen_context(self, decision: DecisionRow) -> bytes:
        """Return no features: the recommender passes no decisions that the engine does not have in memory."""
        raise NotImplementedError(f"decision {decision.id!r} is not in memory")
