"""Result types that describe a choice: estimates, scores, and the users whose rewards they are based on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from locb.common.arrays import Floats
from locb.common.frames import make_frame, rows_to_columns
from locb.common.validation import ParameterError
from locb.evaluation.clusters import Membership


class Estimate(NamedTuple):
    """The estimate of a user's parameter vector, with d entries.

    Attributes
    ----------
    theta : (d,) floats
        The estimated parameter vector θ̂.
    radius : float
        Confidence radius of θ̂. For ELOC and MixedEffects: expected error of θ̂ (root mean square) under the model.
    served : int
        Number of rewards that the policy has learned from the user.
    deviation : (d,) floats or None
        Standard deviation of each entry of θ̂, for rewards in [0, 1] or in ``reward_range``; None if it is not known.
        For ELOC and MixedEffects: that of the posterior.
    """

    theta: Floats
    radius: float
    served: int
    deviation: Floats | None = None

    def __repr__(self) -> str:
        return f"Estimate({len(self.theta)} features, radius {self.radius:.3g}, {self.served:,} rounds)"


class EvidenceSource(NamedTuple):
    """A group of users whose rewards contribute to an estimate.

    Attributes
    ----------
    kind : str
        "user" (the user alone), "cluster" (LOCB, SCLUB, DynUCB), "component" (a connected component of CLUB's graph),
        "neighbourhood" (ELOC, CAB, RCLUMB), "everyone" (all users together), "population" (prior distribution of the
        preferences of all users), or "other" (all neighbourhoods of ELOC with a weight below 0.05 each).
    seed : int or None
        The seed user of a cluster or neighbourhood; None if there is none.
    weight : float
        Share of the estimate that comes from this source. The weights of all sources add up to 1.
    users : int
        Number of users in the group.
    observations : int
        Number of rewards that the policy has learned from these users.
    """

    kind: str
    seed: int | None
    weight: float
    users: int
    observations: int


def by_weight(*sources: EvidenceSource) -> tuple[EvidenceSource, ...]:
    """Return the sources with a weight above 0, largest weight first."""
    return tuple(sorted((s for s in sources if s.weight > 0.0), key=lambda source: -source.weight))


class Explanation(NamedTuple):
    """A recommended arm and the reasons for it. For a policy that cannot explain, only ``arm`` is set.

    Attributes
    ----------
    arm : int
        The arm that ``recommend`` returns.
    estimate, bonus : (k,) floats
        Expected reward and exploration bonus of each of the k arms. The score of an arm is the sum of the two, and the
        arm with the highest score is chosen, unless ``screened`` is True.
    theta : (d,) floats
        The parameter vector used for the chosen arm: ``theta @ contexts[arm] + intercept`` is ``estimate[arm]``.
    sources : tuple of EvidenceSource
        The groups of users whose rewards contribute to ``theta``, largest weight first.
    intercept : float
        Estimated reward of a context of zeros: the lower limit of ``reward_range``, or 0 if there is no range. ELOC
        adds the location of rewards that are far from 0.
    memberships : sequence of Membership
        The clusters that contain the user, as ``policy.memberships`` returns them.
    screened : bool
        Whether a safety screen has replaced the arm with the highest score, because its upper confidence bound,
        computed from the user's own rewards, is too far below the highest upper bound.
    """

    arm: int
    estimate: Floats | None = None
    bonus: Floats | None = None
    theta: Floats | None = None
    sources: tuple[EvidenceSource, ...] | None = None
    intercept: float = 0.0
    memberships: Sequence[Membership] | None = None
    screened: bool = False

    def __repr__(self) -> str:
        if self.estimate is None or self.bonus is None:
            return f"Explanation(arm {self.arm})"
        score = f"estimate {self.estimate[self.arm]:.3g}, bonus {self.bonus[self.arm]:.3g}"
        screened = ", chosen by the safety screen" if self.screened else ""
        return f"Explanation(arm {self.arm} of {len(self.estimate)}: {score}{screened})"

    def to_frame(self, arms: Sequence[Any] | None = None, library: str = "polars") -> Any:
        """Return a data frame with one row per arm: estimate, bonus, score, and whether the arm was chosen.

        Parameters
        ----------
        arms : sequence, optional
            Your own id of each arm, in the order of the contexts. The default is the index of the arm.
        library : {"polars", "pandas"}, default "polars"
            Library of the data frame.
        """
        if self.estimate is None or self.bonus is None:
            chosen = self.arm if arms is None else arms[self.arm]
            return make_frame({"arm": [chosen], "chosen": [True]}, library)
        count = len(self.estimate)
        if arms is not None and len(arms) != count:
            raise ParameterError("arms", f" must have one id for each of {count} arms, not {len(arms)}")
        columns: dict[str, Any] = {"arm": range(count) if arms is None else list(arms)}
        columns |= {"estimate": self.estimate, "bonus": self.bonus, "score": self.estimate + self.bonus}
        return make_frame(columns | {"chosen": [arm == self.arm for arm in range(count)]}, library)

    def sources_frame(self, ids: Sequence[Any] | None = None, library: str = "polars") -> Any:
        """Return a data frame with one row per group of users whose rewards contribute to the estimate.

        ``ids`` has your own id of each user, by which seed users are named.
        """
        rows = [source._asdict() for source in self.sources or ()]
        for row in rows:
            row["seed"] = row["seed"] if ids is None or row["seed"] is None else ids[row["seed"]]
        return make_frame(rows_to_columns(rows, EvidenceSource._fields), library)
