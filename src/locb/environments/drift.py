"""Drift: rotation of preferences at constant speed, each in its own plane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.environments.preferences import normalize

ROUNDS_PER_ANGLE = 10_000  # number of rounds per rotation by the angle of the drift


class Rotation(NamedTuple):
    """Rotation of every user's preference: by ``angle`` per ROUNDS_PER_ANGLE rounds, from ``first`` to ``second``."""

    angle: float
    first: Floats  # (n, raw_dim) unit vectors
    second: Floats  # (n, raw_dim) unit vectors, orthogonal to those of first

    def preferences_at(self, preferences: Floats, users: Ints, rounds: Ints) -> Floats:
        """Return the preferences (T, raw_dim) of these users in these rounds, given those of round 0 (n, raw_dim)."""
        start, first, second = preferences[users], self.first[users], self.second[users]
        angle = (self.angle / ROUNDS_PER_ANGLE) * rounds[:, None]
        a = np.einsum("ti,ti->t", start, first)[:, None]
        b = np.einsum("ti,ti->t", start, second)[:, None]
        # Only the component in the plane rotates.
        rotated: Floats = (
            start + (np.cos(angle) - 1.0) * (a * first + b * second) + np.sin(angle) * (a * second - b * first)
        )
        return rotated


def draw_rotation(rng: np.random.Generator, angle: float, directions: Floats, labels: Ints) -> Rotation:
    """Return a rotation in a random plane through each of ``directions`` (labels, raw_dim).

    Users with the same label share a plane and keep their distances.
    """
    step = rng.standard_normal(directions.shape)
    orthogonal = normalize(step - np.einsum("ci,ci->c", step, directions)[:, None] * directions)
    return Rotation(angle, directions[labels], orthogonal[labels])
