"""Simulated films, and people with preferences who visit a film site. The same seed gives the same films and visits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import feature_contributions, features

DIM = 20  # number of hashed features; with 20, no two of the 11 feature names below have the same hash
N_FILMS, N_PEOPLE = 120, 160
FILMS_PER_VISIT = 8  # arms of a decision

# Weight of each feature for the five groups of people. The groups prefer different films.
GROUP_PREFERENCES: tuple[dict[str, float], ...] = (
    {"genre=drama": 1.2, "from=France": 0.7, "length": 0.5, "genre=action": -0.9},
    {"genre=action": 1.2, "from=USA": 0.7, "length": -0.4, "genre=documentary": -0.9},
    {"genre=comedy": 1.2, "genre=animation": 0.9, "from=Italy": 0.4, "genre=crime": -0.9},
    {"genre=documentary": 1.2, "from=Japan": 0.7, "length": 0.4, "genre=comedy": -0.9},
    {"genre=crime": 1.2, "from=Italy": 0.7, "genre=drama": 0.4, "genre=animation": -0.9},
)
BASE_PROBABILITY = 0.4  # probability of liking a film whose features have no weight
INDIVIDUAL_SCALE = 0.05  # standard deviation of a weight within a group
FREQUENCY_SCALE = 0.25  # standard deviation of the logarithm of the visit frequency
MIXED_SHARE = 0.15  # share of people whose preferences are the mean of two groups
MIN_PROBABILITY, MAX_PROBABILITY = 0.02, 0.98

GENRES = ("drama", "action", "comedy", "documentary", "crime", "animation")
COUNTRIES = ("France", "USA", "Japan", "Italy")
TITLE_FIRST_WORDS = (
    "Quiet",
    "Long",
    "Red",
    "Last",
    "Hidden",
    "Second",
    "Broken",
    "Golden",
    "Distant",
    "Silent",
    "Blue",
    "Lost",
)
TITLE_SECOND_WORDS = ("Harbour", "Winter", "Garden", "Train", "Letter", "River", "Summer", "Bridge", "Island", "Window")
FIRST_NAMES = [
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
    """Title and features of a film."""

    title: str
    features: dict[str, Any]


class Visit(NamedTuple):
    """Visit of a person: the films on offer, and the probability that the person likes each film."""

    person: str
    films: list[Film]
    probabilities: Floats  # one element per film


class FilmCatalogue:
    """Films and people of the demonstration, and a generator of visits.

    Parameters
    ----------
    seed : int, default 0
        Random seed of the films, the people and the visits.

    Examples
    --------
    >>> visit = FilmCatalogue(seed=1).draw_visit()
    >>> len(visit.films), bool((visit.probabilities > 0).all())
    (8, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self.films = self._make_films()
        self.people = [
            f"{FIRST_NAMES[i % len(FIRST_NAMES)]} {'ABCDEFGH'[i // len(FIRST_NAMES)]}." for i in range(N_PEOPLE)
        ]
        self.group_of = self._rng.integers(len(GROUP_PREFERENCES), size=N_PEOPLE)  # (people,)
        frequency = np.exp(self._rng.normal(scale=FREQUENCY_SCALE, size=N_PEOPLE))
        self._visit_share = frequency / frequency.sum()  # (people,)
        self.theta = self._make_preferences()  # (people, DIM)
        self._feature_rows = np.array([features(film.features, DIM) for film in self.films])  # (films, DIM)

    def _make_films(self) -> list[Film]:
        titles = [f"{first} {second}" for first in TITLE_FIRST_WORDS for second in TITLE_SECOND_WORDS]
        films = []
        for title in self._rng.permutation(titles)[:N_FILMS].tolist():
            film_features = {
                "genre": str(self._rng.choice(GENRES)),
                "from": str(self._rng.choice(COUNTRIES)),
                "length": round(float(self._rng.uniform(-1.0, 1.0)), 1),  # difference from two hours, in hours
            }
            films.append(Film(title, film_features))
        return films

    def _make_preferences(self) -> Floats:
        """Return the preference vector θ of every person, an array (people, DIM).

        The probability that a person likes a film is the inner product of θ and the hashed features of the film,
        limited to the range from 0.02 to 0.98. The service hashes features in the same way.
        """
        index_and_sign: dict[str, tuple[int, float]] = {}
        for film in self.films:
            _, keys, indices, weights = feature_contributions({**film.features, "length": 1.0}, DIM)
            index_and_sign |= {
                key: (index, np.sign(weight)) for key, index, weight in zip(keys, indices, weights, strict=True)
            }
        group_theta = np.zeros((len(GROUP_PREFERENCES), DIM))
        for group, preferences in enumerate(GROUP_PREFERENCES):
            group_theta[group, 0] = BASE_PROBABILITY / np.sqrt(0.5)
            for key, weight in preferences.items():
                index, sign = index_and_sign[key]
                group_theta[group, index] += sign * weight
        theta: Floats = group_theta[self.group_of]
        other = group_theta[self._rng.integers(len(GROUP_PREFERENCES), size=N_PEOPLE)]
        mixed = self._rng.random(N_PEOPLE) < MIXED_SHARE
        theta = np.where(mixed[:, None], (theta + other) / 2.0, theta)
        return np.asarray(theta + self._rng.normal(scale=INDIVIDUAL_SCALE, size=theta.shape))

    def draw_visit(self) -> Visit:
        """Draw a random visit: a person and 8 different films."""
        person = int(self._rng.choice(N_PEOPLE, p=self._visit_share))
        offered = self._rng.choice(N_FILMS, size=FILMS_PER_VISIT, replace=False)
        probabilities = np.clip(self._feature_rows[offered] @ self.theta[person], MIN_PROBABILITY, MAX_PROBABILITY)
        return Visit(self.people[person], [self.films[film] for film in offered], probabilities)

    def draw_uniform(self) -> float:
        """Draw a number uniformly from [0, 1)."""
        return float(self._rng.random())
