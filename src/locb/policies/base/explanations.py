"""Why an arm was chosen: what each arm is worth, and whose rewards say so."""

from __future__ import annotations

from typing import NamedTuple

from locb.common.arrays import Floats


class Estimate(NamedTuple):
    """What is known of a user: θ̂, how far off it may be as the policy goes, and the rounds that it rests on.

    ``deviation`` is the standard deviation of each entry of θ̂, rewards being in [0, 1]; None where it is not known.
    """

    theta: Floats  # (d,)
    radius: float
    served: int
    deviation: Floats | None = None  # (d,)


class EvidenceSource(NamedTuple):
    """Users on whose rewards an estimate rests.

    Attributes
    ----------
    kind : str
        "user" (the user alone), "cluster" (of LOCB or SCLUB), "component" (of CLUB's graph), "neighbourhood" (of ELOC),
        "everyone", or "population" (ELOC: how tastes spread over all users).
    seed : int or None
        The seed user of a set or neighbourhood; None where there is none.
    weight : float
        Its share of the estimate; those of all lenders add up to 1.
    users : int
        How many users lend: all members of a group, all that have a weight in a neighbourhood, or all there are.
    observations : int
        In how many rounds these users were served, all together.
    """

    kind: str
    seed: int | None
    weight: float
    users: int
    observations: int


class ScoringRow(NamedTuple):
    """What scores the arms for a user: θ̂ᵀx + α √(xᵀA⁻¹x · factor) of one row, and whose rewards made that row."""

    rows: Floats  # (…, d + p) θ̂ and A⁻¹
    row: int
    alpha: float
    factor: float
    sources: tuple[EvidenceSource, ...]


class Explanation(NamedTuple):
    """The arm that ``recommend`` gives, and what speaks for it; all but the arm is None where a policy does not tell.

    Attributes
    ----------
    arm : int
        The arm to show.
    estimate, bonus : (k,) floats
        What each arm is expected to earn, and what is added for being uncertain; the arm of the highest sum is chosen.
    theta : (d,) floats
        The estimate that gave the chosen arm its: theta @ contexts[arm] is estimate[arm].
    lenders : tuple of Lender
        Whose rewards that estimate rests on, the largest weight first.
    """

    arm: int
    estimate: Floats | None = None
    bonus: Floats | None = None
    theta: Floats | None = None
    sources: tuple[EvidenceSource, ...] | None = None
