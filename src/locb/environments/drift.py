"""Tastes that turn as rounds go by, at a steady pace, each in a plane of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.environments.preferences import unit

PACE = 10_000  # rounds within which a taste turns by the angle of the drift


class Turning(NamedTuple):
    """How every user's taste turns: by ``angle`` in PACE rounds, from ``across`` towards ``along``."""

    angle: float
    across: Floats  # (n, raw_dim) unit vectors
    along: Floats  # (n, raw_dim) unit vectors at right angles to them

    def at(self, tastes: Floats, users: Ints, rounds: Ints) -> Floats:
        """The tastes (T, raw_dim) of these users in these rounds; ``tastes`` (n, raw_dim) are those of round 0."""
        start, across, along = tastes[users], self.across[users], self.along[users]
        angle = (self.angle / PACE) * rounds[:, None]
        a = np.einsum("ti,ti->t", start, across)[:, None]
        b = np.einsum("ti,ti->t", start, along)[:, None]
        # What lies in the plane turns, the rest stays.
        turned: Floats = (
            start + (np.cos(angle) - 1.0) * (a * across + b * along) + np.sin(angle) * (a * along - b * across)
        )
        return turned


def draw_turning(rng: np.random.Generator, angle: float, directions: Floats, label_of: Ints) -> Turning:
    """Planes through these directions (labels, raw_dim), each turning a random way; users of a label share one.

    Users who share a plane keep their distances.
    """
    step = rng.standard_normal(directions.shape)
    sideways = unit(step - np.einsum("ci,ci->c", step, directions)[:, None] * directions)
    return Turning(angle, directions[label_of], sideways[label_of])
