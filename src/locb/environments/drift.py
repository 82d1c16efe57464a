"""Drift of preferences: each preference vector rotates at constant speed in a plane.

Preferences are unit vectors with ``raw_dim`` entries, without the constant feature (see ``preferences``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.environments.preferences import normalize

ROUNDS_PER_ANGLE = 10_000  # number of rounds in which a preference rotates by the angle of the drift


class Rotation(NamedTuple):
    """Rotation of the preference of every user, from the direction ``first`` towards the direction ``second``."""

    angle: float  # radians per ROUNDS_PER_ANGLE rounds
    first: Floats  # (n_users, raw_dim) unit vectors
    second: Floats  # (n_users, raw_dim) unit vectors, each orthogonal to the same row of ``first``

    def preferences_at(self, preferences: Floats, users: Ints, rounds: Ints) -> Floats:
        """Return the preference of ``users[t]`` in round ``rounds[t]`` for each t, as an array (T, raw_dim).

        ``users`` and ``rounds`` have T elements. ``preferences`` (n_users, raw_dim) has the preferences in round 0.
        """
        start, first, second = preferences[users], self.first[users], self.second[users]
        angle = (self.angle / ROUNDS_PER_ANGLE) * rounds[:, None]
        a = np.einsum("ti,ti->t", start, first)[:, None]
        b = np.einsum("ti,ti->t", start, second)[:, None]
        # The part of a preference that is orthogonal to the plane does not change.
        rotated: Floats = (
            start + (np.cos(angle) - 1.0) * (a * first + b * second) + np.sin(angle) * (a * second - b * first)
        )
        return rotated


def draw_rotation(rng: np.random.Generator, angle: float, directions: Floats, labels: Ints) -> Rotation:
    """Draw one random plane per label and return the rotation of all users in the plane of their label.

    The plane of label c contains row c of ``directions`` (number of labels, raw_dim). ``labels`` (n_users,) has the
    label of each user. The distance between two users with the same label does not change.
    """
    step = rng.standard_normal(directions.shape)
    orthogonal = normalize(step - np.einsum("ci,ci->c", step, directions)[:, None] * directions)
    return Rotation(angle, directions[labels], orthogonal[labels])
