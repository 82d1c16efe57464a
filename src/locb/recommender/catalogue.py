"""Catalogue of arms: their features as vectors, computed once, and requests for arms of the catalogue."""

from __future__ import annotations

import marshal
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from locb.common.arrays import Floats
from locb.policies.base.policy import finish
from locb.recommender.events import MAX_ID_LENGTH
from locb.recommender.interfaces import Problems
from locb.recommender.requests import ParsedRequest, check_encoding, eligible_arms, parse_steps

Features: TypeAlias = Mapping[str, Any] | Sequence[float] | Floats  # values: numbers, texts and booleans
DEFAULT_FEATURES = 16
DIGEST_BYTES = 16
MAX_RATIO = 5.0  # of a number to the norm of all other features of an arm; above it, a warning is issued


class Arm(NamedTuple):
    """Arm with its features as plain Python objects, and a digest that is equal for equal arms."""

    id: str
    features: list[float] | dict[str, float | str | bool]
    digest: bytes


@dataclass(slots=True)
class NamedRequest:
    """Request to recommend one of the arms to a user, see ``requests.Request``."""

    user: str
    arms: Sequence[Arm]
    exclude: tuple[str, ...]
    count: int | None
    decision_id: str | None


class Catalogue:
    """Arms that a recommender knows by their ids, in the order in which they were added.

    Parameters
    ----------
    dim : int
        Number of features per arm.
    problems : Problems
        Returns the exceptions.
    """

    def __init__(self, dim: int, problems: Problems) -> None:
        self._dim, self._problems = dim, problems
        self._positions: dict[str, int] = {}
        self._arms: list[Arm] = []
        self._contexts: Floats = np.empty((0, dim))
        self._has_warned = False

    def __len__(self) -> int:
        return len(self._arms)

    @property
    def arms(self) -> Sequence[Arm]:
        """The arms."""
        return self._arms

    def add(self, arms: Mapping[str, Features]) -> None:
        """Add arms, and replace the features of arms that have the same id."""
        if not arms:
            return
        added = self._make(arms, stacklevel=4)
        parsed = self._parse(NamedRequest("", added, (), None, None))
        kept = [arm for arm in self._arms if arm.id not in arms]
        contexts = self._contexts[[self._positions[arm.id] for arm in kept]]
        self._set([*kept, *added], np.concatenate([contexts, parsed.contexts]))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove arms."""
        removed = set(ids)
        self._check_known(removed)
        kept = [position for position, arm in enumerate(self._arms) if arm.id not in removed]
        self._set([self._arms[position] for position in kept], self._contexts[kept])

    def _set(self, arms: list[Arm], contexts: Floats) -> None:
        self._arms, self._contexts = arms, np.ascontiguousarray(contexts)
        self._positions = {arm.id: position for position, arm in enumerate(arms)}

    def request(
        self,
        user: str,
        arms: Mapping[str, Features] | Iterable[str] | None,
        exclude: Iterable[str],
        count: int | None,
        decision_id: str | None,
    ) -> ParsedRequest:
        """Return a request for arms with these features, for arms of the catalogue, or for the whole catalogue."""
        excluded = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        if isinstance(arms, Mapping):
            offered = self._make(arms, stacklevel=5)
            if not offered:
                raise ValueError("arms must have at least one arm, not {}")
            return self._parse(NamedRequest(user, offered, excluded, count, decision_id))
        offered, contexts = self._arms, self._contexts
        if arms is not None:
            ids = [arms] if isinstance(arms, str) else list(arms)
            self._check_known(ids)
            positions = [self._positions[arm_id] for arm_id in ids]
            if not positions or len(set(positions)) < len(positions):
                raise ValueError(f"arms must be different ids of at least one arm, not {ids!r}")
            offered, contexts = [self._arms[position] for position in positions], self._contexts[positions]
        if not offered:
            raise ValueError("the catalogue is empty: pass arms={id: features}, or add arms with add_arms()")
        request = NamedRequest(user, offered, excluded, count, decision_id)
        eligible = list(range(len(offered)))
        if excluded:
            eligible = eligible_arms([arm.id for arm in offered], excluded, self._problems.invalid)
            contexts = contexts[eligible]
        return ParsedRequest(request, pack_request(request), contexts, eligible, 0)

    def _make(self, arms: Mapping[str, Features], *, stacklevel: int) -> list[Arm]:
        """Return the arms, and warn about the first number that outweighs all other features of its arm."""
        made = make_arms(arms)
        if not self._has_warned:
            problem = next(filter(None, map(scale_problem, made)), None)
            if problem is not None:
                self._has_warned = True
                warnings.warn(problem, stacklevel=stacklevel)
        return made

    def _parse(self, request: NamedRequest) -> ParsedRequest:
        return finish(parse_steps(request, self._dim, pack=pack_request, invalid=self._problems.invalid))

    def _check_known(self, ids: Iterable[str]) -> None:
        for arm_id in ids:
            if arm_id not in self._positions:
                advice = "add it with add_arms(), or pass its features: arms={id: features}"
                raise ValueError(f"arm {arm_id!r} is not in the catalogue; {advice}")


def make_arms(arms: Mapping[str, Features]) -> list[Arm]:
    """Return arms with plain features. Raise a ValueError if an id or the features of an arm are invalid."""
    made = []
    for arm_id, features in arms.items():
        check_id("the id of an arm", arm_id)
        plain = _plain_features(arm_id, features)
        made.append(Arm(arm_id, plain, _digest(marshal.dumps((arm_id, plain), 2))))  # version 2 has no references
    return made


def infer_features(arms: Mapping[str, Features]) -> int:
    """Return the length of the first vector, or the default number of features if all features are named."""
    lengths = (len(features) for features in arms.values() if not isinstance(features, Mapping | str))
    return next(lengths, DEFAULT_FEATURES)


def scale_problem(arm: Arm) -> str | None:
    """Return a message if a number is larger than ``MAX_RATIO`` times the norm of all other features; else None.

    Examples
    --------
    >>> scale_problem(make_arms({"ramen": {"cuisine": "japanese", "price": 14.0}})[0])
    "feature 'price' = 14 outweighs all other features of arm 'ramen': scale numbers to about 1 (see locb.features)"
    """
    if not isinstance(arm.features, dict) or len(arm.features) < 2:
        return None
    sizes = {name: 1.0 if isinstance(value, str | bool) else abs(value) for name, value in arm.features.items()}
    name = max(sizes, key=lambda name: sizes[name])
    others = math.hypot(*(size for other, size in sizes.items() if other != name))
    if not sizes[name] > MAX_RATIO * others > 0.0:
        return None
    which = f"feature {name!r} = {arm.features[name]:g} outweighs all other features of arm {arm.id!r}"
    return f"{which}: scale numbers to about 1 (see locb.features)"


def check_id(name: str, value: Any) -> str:
    """Return an id, or raise a ValueError unless it is a text that the service accepts as an id."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, not {value!r}: pass {str(value)!r}")
    if not 1 <= len(value) <= MAX_ID_LENGTH:
        raise ValueError(f"{name} must have 1 to {MAX_ID_LENGTH} characters, not {len(value)}")
    check_encoding(value, name, lambda detail, _: ValueError(detail))
    return value


def _plain_features(arm_id: str, features: Any) -> list[float] | dict[str, float | str | bool]:
    if isinstance(features, Mapping):
        return {name: _plain_value(arm_id, name, value) for name, value in features.items()}
    try:
        vector = np.asarray(features, np.float64)
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1:
        allowed = "a mapping of names to values, or a vector of numbers"
        raise ValueError(f"the features of arm {arm_id!r} must be {allowed}, not {features!r}")
    numbers: list[float] = vector.tolist()
    return numbers


def _plain_value(arm_id: str, name: Any, value: Any) -> float | str | bool:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        allowed = "a finite number, a string or a boolean"
        raise ValueError(f"feature {name!r} of arm {arm_id!r} must be {allowed}, not {value!r}") from None


def pack_request(request: NamedRequest) -> bytes:
    """Return a digest that is equal for equal requests."""
    settings = marshal.dumps((request.user, sorted(request.exclude), request.count), 2)
    return _digest(settings + b"".join([arm.digest for arm in request.arms]))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
