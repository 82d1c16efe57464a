"""Result types that describe a choice: estimates, scores and the evidence behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from locb.common.arrays import Floats
from locb.evaluation.clusters import Membership


class Estimate(NamedTuple):
    """The estimate of a user's parameter vector, with d entries.

    Attributes
    ----------
    theta : (d,) floats
        The estimated parameter vector θ̂.
    radius : float
        Radius of the confidence region around θ̂ that the policy uses.
    served : int
        Number of rounds in which the user was served.
    deviation : (d,) floats or None
        Standard deviation of each entry of θ̂, for rewards in [0, 1] or in ``reward_range``; None if it is not known.
    """

    theta: Floats
    radius: float
    served: int
    deviation: Floats | None = None


class EvidenceSource(NamedTuple):
    """A group of users whose rewards contribute to an estimate.

    Attributes
    ----------
    kind : str
        "user" (the user alone), "cluster" (LOCB, SCLUB, DynUCB), "component" (a connected component of CLUB's graph),
        "neighbourhood" (ELOC, CAB, RCLUMB), "everyone" (all users together), "population" (a distribution of users), or
        "other" (all neighbourhoods of ELOC with a weight below 0.05 each).
    seed : int or None
        The seed user of a cluster or neighbourhood; None if there is none.
    weight : float
        Share of the estimate that comes from this source. The weights of all sources add up to 1.
    users : int
        Number of users in the group.
    observations : int
        Number of rounds of these users, that is, of learned rewards.
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
        Whether a safety screen has replaced the arm with the highest score, because the user's own rewards speak
        against it.
    """

    arm: int
    estimate: Floats | None = None
    bonus: Floats | None = None
    theta: Floats | None = None
    sources: tuple[EvidenceSource, ...] | None = None
    intercept: float = 0.0
    memberships: Sequence[Membership] | None = None
    screened: bool = False
