"""Types that describe a choice: estimates, scores and the evidence behind them."""

from __future__ import annotations

from typing import NamedTuple

from locb.common.arrays import Floats


class Estimate(NamedTuple):
    """The estimate of a user.

    Attributes
    ----------
    theta : (d,) floats
        The estimated parameter vector θ̂.
    radius : float
        Radius of the confidence region around θ̂ that the policy uses.
    served : int
        Number of rounds of the user.
    deviation : (d,) floats or None
        Standard deviation of each entry of θ̂ for rewards in [0, 1]; None if unknown.
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
        "user" (the user alone), "cluster" (of LOCB or SCLUB), "component" (of the graph of CLUB), "neighbourhood" (of
        ELOC), "everyone" or "population" (the prior over users of ELOC).
    seed : int or None
        The seed user of a cluster or neighbourhood.
    weight : float
        Share of the estimate; the weights of all sources add up to 1.
    users : int
        Number of contributing users.
    observations : int
        Number of rounds of these users.
    """

    kind: str
    seed: int | None
    weight: float
    users: int
    observations: int


class Explanation(NamedTuple):
    """A recommended arm and the reasons for it; all fields but ``arm`` are None for a policy that cannot explain.

    Attributes
    ----------
    arm : int
        The arm that ``recommend`` returns.
    estimate, bonus : (k,) floats
        Expected reward and exploration bonus of each arm; the arm with the highest sum is chosen.
    theta : (d,) floats
        The estimate that scored the chosen arm: ``theta @ contexts[arm]`` is ``estimate[arm]``.
    sources : tuple of EvidenceSource
        The users whose rewards contribute to ``theta``, largest weight first.
    """

    arm: int
    estimate: Floats | None = None
    bonus: Floats | None = None
    theta: Floats | None = None
    sources: tuple[EvidenceSource, ...] | None = None
