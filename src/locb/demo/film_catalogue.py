"""Films, people and what they like; everything is made up, and the same seed makes up the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import feature_contributions, features

DIM = 20  # the 11 names of features here have places of their own in it
N_FILMS, N_PEOPLE = 120, 160
SHOWN = 8  # films to choose from

# What kinds of people like, by the names of features; each likes some films that others do not.
TASTES: tuple[dict[str, float], ...] = (
    {"genre=drama": 1.2, "from=France": 0.7, "length": 0.5, "genre=action": -0.9},
    {"genre=action": 1.2, "from=USA": 0.7, "length": -0.4, "genre=documentary": -0.9},
    {"genre=comedy": 1.2, "genre=animation": 0.9, "from=Italy": 0.4, "genre=crime": -0.9},
    {"genre=documentary": 1.2, "from=Japan": 0.7, "length": 0.4, "genre=comedy": -0.9},
    {"genre=crime": 1.2, "from=Italy": 0.7, "genre=drama": 0.4, "genre=animation": -0.9},
)
MIDDLE = 0.4  # the chance that somebody likes a film of which nothing matters to them
OWN = 0.05  # how much people of one kind differ, a feature
OFTEN = 0.25  # how much people differ in how often they come, on a logarithmic scale
BETWEEN = 0.15  # share of people who are between two kinds

GENRES = ("drama", "action", "comedy", "documentary", "crime", "animation")
LANDS = ("France", "USA", "Japan", "Italy")
FIRST = ("Quiet", "Long", "Red", "Last", "Hidden", "Second", "Broken", "Golden", "Distant", "Silent", "Blue", "Lost")
SECOND = ("Harbour", "Winter", "Garden", "Train", "Letter", "River", "Summer", "Bridge", "Island", "Window")
NAMES = [
    "Ada",
    "Amir",
    "Anna",
    "Ben",
    "Bo",
    "Carla",
    "Chen",
    "Clara",
    "Dana",
    "David",
    "Ella",
    "Emil",
    "Erik",
    "Eva",
    "Farid",
    "Felix",
    "Fiona",
    "Gita",
    "Hana",
    "Hugo",
    "Ida",
    "Ines",
    "Ivan",
    "Jana",
    "Jo",
    "Jonas",
    "Kai",
    "Karim",
    "Lea",
    "Leo",
    "Lin",
    "Luca",
    "Maja",
    "Marta",
    "Mei",
    "Milo",
    "Nina",
    "Noah",
    "Nora",
    "Omar",
]


class Film(NamedTuple):
    """A film and what is known of it."""

    title: str
    features: dict[str, Any]


class Evening(NamedTuple):
    """Somebody who wants to see a film, the films there are, and the chance that each would please them."""

    person: str
    films: list[Film]
    chances: Floats  # (films,)


class Cinema:
    """The world. ``seed`` decides films, people and evenings.

    Examples
    --------
    >>> evening = Cinema(seed=1).evening()
    >>> len(evening.films), bool((evening.chances > 0).all())
    (8, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.films = self._make_films()
        self.people = [f"{NAMES[i % len(NAMES)]} {'ABCDEFGH'[i // len(NAMES)]}." for i in range(N_PEOPLE)]
        self.kinds = self._rng.integers(len(TASTES), size=N_PEOPLE)  # (people,)
        often = np.exp(self._rng.normal(scale=OFTEN, size=N_PEOPLE))
        self._often = often / often.sum()  # (people,) how often each comes
        self.theta = self._make_tastes()  # (people, DIM)
        self._rows = np.array([features(film.features, DIM) for film in self.films])  # (films, DIM)

    def _make_films(self) -> list[Film]:
        titles = [f"{first} {second}" for first in FIRST for second in SECOND]
        made = []
        for title in self._rng.permutation(titles)[:N_FILMS].tolist():
            told = {
                "genre": str(self._rng.choice(GENRES)),
                "from": str(self._rng.choice(LANDS)),
                "length": round(float(self._rng.uniform(-1.0, 1.0)), 1),  # hours more than two
            }
            made.append(Film(title, told))
        return made

    def _make_tastes(self) -> Floats:
        """θ of everybody: chances are linear in the features that the service hashes."""
        places: dict[str, tuple[int, float]] = {}
        for film in self.films:
            _, keys, at, weights = feature_contributions({**film.features, "length": 1.0}, DIM)
            places |= {key: (place, np.sign(weight)) for key, place, weight in zip(keys, at, weights, strict=True)}
        kinds = np.zeros((len(TASTES), DIM))
        for kind, taste in enumerate(TASTES):
            kinds[kind, 0] = MIDDLE / np.sqrt(0.5)
            for key, weight in taste.items():
                place, sign = places[key]
                kinds[kind, place] += sign * weight
        theta: Floats = kinds[self.kinds]
        other = kinds[self._rng.integers(len(TASTES), size=N_PEOPLE)]
        between = self._rng.random(N_PEOPLE) < BETWEEN
        theta = np.where(between[:, None], (theta + other) / 2.0, theta)
        return np.asarray(theta + self._rng.normal(scale=OWN, size=theta.shape))

    def evening(self) -> Evening:
        """Who comes, and what is on."""
        person = int(self._rng.choice(N_PEOPLE, p=self._often))
        on = self._rng.choice(N_FILMS, size=SHOWN, replace=False)
        chances = np.clip(self._rows[on] @ self.theta[person], 0.02, 0.98)
        return Evening(self.people[person], [self.films[film] for film in on], chances)

    def chance(self) -> float:
        """A number between 0 and 1, drawn."""
        return float(self._rng.random())
