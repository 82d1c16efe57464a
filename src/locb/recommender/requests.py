"""Requests to recommend an arm: conversion of features to vectors, and the ranking of the offered arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from locb.common.arrays import Floats
from locb.common.feature_hashing import EqualVectors, Values, feature_contributions, feature_row
from locb.policies.base.explanations import Explanation

MAX_FEATURE = 1e6  # largest absolute value that the policies accept
NAMES_PER_STEP = 500  # named features that are converted per step of about 1 ms
BASE_WEIGHT = 30  # weight of a request without its arms
BYTES_PER_WEIGHT = 256  # bytes of a request: storing them takes about as long as ranking one arm

# Limits of the search for arms with equal vectors, so that it takes at most about 0.2 ms per request: arms in total,
# new arms per request, and named features per arm.
CHECKED_ARMS, CHECKED_PER_REQUEST, CHECKED_NAMES = 10_000, 10, 50


class OfferedArm(Protocol):
    """Arm of a request."""

    @property
    def id(self) -> str:
        """Id of the arm."""

    @property
    def features(self) -> list[float] | Mapping[str, float | str | bool]:
        """The features: a vector, or values by name."""


class Request(Protocol):
    """Request to recommend one of the arms to a user. The HTTP API and the library have their own classes."""

    @property
    def user(self) -> str:
        """Id of the user."""

    @property
    def arms(self) -> Sequence[OfferedArm]:
        """The arms."""

    @property
    def exclude(self) -> Collection[str]:
        """Ids of arms that must not be recommended."""

    @property
    def count(self) -> int | None:
        """Maximum number of arms in the ranking; None for all arms."""

    @property
    def decision_id(self) -> str | None:
        """Id of the decision; None to generate an id."""


@dataclass(slots=True)
class ParsedRequest:
    """Recommend request with the feature vectors (contexts) of its eligible arms: those that it does not exclude.

    Attributes
    ----------
    request : Request
        The request.
    packed : bytes
        The request in a form that is equal for equal requests. The service stores it in the event log.
    contexts : (k, d) floats
        The d features of each of the k eligible arms.
    eligible : list of int
        Position in the request of each eligible arm.
    max_arm_names : int
        Largest number of named features of an eligible arm; 0 if the features of all arms are arrays.
    named_features : list of dict or list, or None, default None
        Features of each arm, for the explanation, if the request contains only the hashed features.
    """

    request: Any  # a ``Request``
    packed: bytes
    contexts: Floats
    eligible: list[int]
    max_arm_names: int
    named_features: Sequence[Values | list[float]] | None = None

    @property
    def weight(self) -> int:
        """Approximate time to decide and to store the decision, in units of the time for one arm, about 1 µs."""
        return BASE_WEIGHT + len(self.eligible) + self.max_arm_names + len(self.packed) // BYTES_PER_WEIGHT

    def rank(self, explanation: Explanation) -> tuple[list[int], list[float] | None, list[float]]:
        """Return the positions of the ranked arms in the request, with their estimates and bonuses.

        The chosen arm comes first, and the others follow by decreasing score. The chosen arm has the highest score, or
        one of several equal scores, unless a safety screen of the policy has replaced that arm.
        """
        eligible = self.eligible
        if explanation.estimate is None or explanation.bonus is None:  # the policy does not explain its choices
            bonus = [] if explanation.bonus is None else [float(explanation.bonus[explanation.arm])]
            return [eligible[explanation.arm]], None, bonus
        estimates, bonuses = explanation.estimate.tolist(), explanation.bonus.tolist()
        scores = [estimate + bonus for estimate, bonus in zip(estimates, bonuses, strict=True)]
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        if order[0] != explanation.arm:
            order.remove(explanation.arm)
            order.insert(0, explanation.arm)
        if self.request.count is not None:
            del order[self.request.count :]
        return [eligible[a] for a in order], [estimates[a] for a in order], [bonuses[a] for a in order]

    def contributions(self, explanation: Explanation) -> tuple[list[str] | None, list[float], float]:
        """Return the names and the contributions of the chosen arm's features, and the intercept.

        The sum of the contributions and the intercept is the estimate. The names are None if the features are an array.
        The explanation must have ``theta``.
        """
        theta, intercept = explanation.theta, explanation.intercept
        assert theta is not None  # noqa: S101 - see above
        position, named = self.eligible[explanation.arm], self.named_features
        features = self.request.arms[position].features if named is None else named[position]
        if isinstance(features, list):
            return None, (self.contexts[explanation.arm] * theta).tolist(), float(intercept)
        coefficients = theta.tolist()
        by_name: dict[str, float] = {}
        vector, keys, indices, weights = feature_contributions(features, len(coefficients))
        for key, index, weight in zip(keys, indices, weights, strict=True):
            by_name[key] = by_name.get(key, 0.0) + weight * coefficients[index]
        intercept += float(vector[0]) * coefficients[0]
        return list(by_name), list(by_name.values()), float(intercept)


class CollisionCheck:
    """Search for two arms with different named features but equal vectors, which ends when it finds them.

    Only the features with which an arm is checked first are compared, so that requests for known arms take about 1 µs
    longer.

    Parameters
    ----------
    warn : callable
        Called once, with the ids of the two arms and the number of features.
    """

    def __init__(self, warn: Callable[[str, str, int], None]) -> None:
        self._warn = warn
        self._found: EqualVectors | None = EqualVectors()  # None when the search has ended

    def check(self, parsed: ParsedRequest) -> None:
        """Compare the new arms of a request with all arms before."""
        found = self._found
        if found is None or not 0 < parsed.max_arm_names <= CHECKED_NAMES:
            return
        arms, known = parsed.request.arms, found.arms
        new = [row for row, position in enumerate(parsed.eligible) if arms[position].id not in known]
        for row in new[:CHECKED_PER_REQUEST]:
            position = parsed.eligible[row]
            arm, named = arms[position], parsed.named_features
            features = arm.features if named is None else named[position]
            if not isinstance(features, dict):
                continue
            vector = parsed.contexts[row].tolist()
            first = found.add(arm.id, features, vector)
            if first is not None:
                self._warn(first, arm.id, len(vector))
                self._found = None
                return
        if len(known) >= CHECKED_ARMS:
            self._found = None


def parse_steps(
    request: Request,
    dim: int,
    max_names: float = math.inf,
    collisions: CollisionCheck | None = None,
    *,
    pack: Callable[[Any], bytes],
    invalid: Callable[..., Exception],
) -> Generator[None, None, ParsedRequest]:
    """Return a request with its eligible arms converted to vectors, in steps of about a millisecond.

    Parameters
    ----------
    request, dim
        The request, and the number of features per arm.
    max_names : float, default infinity
        Maximum number of named features of an arm.
    collisions : CollisionCheck or None, default None
        Checks the request.
    pack : callable
        Returns the request as bytes, see ``ParsedRequest``. It may raise ``UnicodeEncodeError``.
    invalid : callable
        Returns the exception for a request that is invalid: two arms have the same id, an unknown arm or all arms are
        excluded, features are invalid or too many, or a text is not valid UTF-8.
    """
    arms = request.arms
    ids = [arm.id for arm in arms]
    if len(set(ids)) < len(ids):
        repeated = next(a for a, arm_id in enumerate(ids) if arm_id in ids[:a])
        raise invalid(f"ids of arms must be unique, but two arms have the id {ids[repeated]!r}", f"arms[{repeated}].id")
    eligible = list(range(len(arms)))
    if request.exclude:
        eligible = eligible_arms(ids, request.exclude, invalid)
    rows: list[Any] = [arms[a].features for a in eligible]
    names = max_arm_names = 0
    for position, features in enumerate(rows):
        if type(features) is dict:
            if len(features) > max_names:
                detail = f"an arm must have at most {max_names} named features, not {len(features)}"
                raise invalid(detail, f"arms[{eligible[position]}].features")
            max_arm_names = max(max_arm_names, len(features))
            names += len(features)
            if names > NAMES_PER_STEP:
                yield
                names = len(features)
        if type(features) is not list or len(features) != dim:
            try:
                rows[position] = _to_vector(features, dim)
            except ValueError as error:
                raise invalid(str(error), f"arms[{eligible[position]}].features") from None
    contexts: Floats = np.array(rows)
    if not np.abs(contexts).max() <= MAX_FEATURE:
        _raise_too_large(contexts, eligible, invalid)
    parsed = ParsedRequest(request, _pack(request, pack, invalid), contexts, eligible, max_arm_names)
    if collisions is not None:
        collisions.check(parsed)
    return parsed


def _pack(request: Request, pack: Callable[[Any], bytes], invalid: Callable[..., Exception]) -> bytes:
    try:
        return pack(request)
    except UnicodeEncodeError:
        check_encoding(request.user, "user", invalid)
        check_encoding(request.decision_id or "", "decision_id", invalid)
        for a, arm in enumerate(request.arms):
            check_encoding(arm.id, f"arms[{a}].id", invalid)
        raise invalid("names and values of features must be valid UTF-8 text", "arms") from None


def eligible_arms(ids: list[str], exclude: Collection[str], invalid: Callable[..., Exception]) -> list[int]:
    """Return the positions of the arms that are not excluded. Raise ``invalid`` if there is none."""
    excluded = set(exclude)
    unknown = excluded.difference(ids)
    if unknown:
        raise invalid(f"exclude contains {min(unknown)!r}, which is not the id of an arm of the request", "exclude")
    eligible = [a for a, arm_id in enumerate(ids) if arm_id not in excluded]
    if not eligible:
        raise invalid("exclude must not contain all arms: leave at least one to recommend", "exclude")
    return eligible


def _raise_too_large(contexts: Floats, eligible: list[int], invalid: Callable[..., Exception]) -> None:
    for context, a in zip(contexts, eligible, strict=True):
        largest = float(context[np.abs(context).argmax()])
        if not abs(largest) <= MAX_FEATURE:
            limits = f"from {-MAX_FEATURE:g} to {MAX_FEATURE:g}"
            raise invalid(f"features must be numbers {limits}, not {largest:g}", f"arms[{a}].features")


def _to_vector(features: Any, dim: int) -> list[float]:
    if isinstance(features, dict):
        return feature_row(features, dim)
    if len(features) != dim:
        raise ValueError(f"features must be {dim} numbers, the number of features per arm, not {len(features)}")
    vector: list[float] = features
    return vector


def check_encoding(value: str, field: str, invalid: Callable[..., Exception]) -> None:
    """Raise ``invalid`` if an id is not valid UTF-8, for example because it contains half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise invalid(f"an id must be valid UTF-8 text, not {value!r}", field) from None
