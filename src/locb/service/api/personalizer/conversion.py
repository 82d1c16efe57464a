"""Conversion of Azure Personalizer requests to requests of the service, and of the responses back."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from locb.policies.base.policy import finish
from locb.recommender.events import MAX_ID_LENGTH
from locb.recommender.requests import NAMES_PER_STEP
from locb.service.api.personalizer.schemas import (
    ErrorResponse,
    PersonalizerError,
    RankedAction,
    RankRequest,
    RankResponse,
)
from locb.service.schemas import MAX_ARM_NAMES

SHARED_USER = "personalizer:everyone"  # user of requests without a user id
MAX_DEPTH = 16  # nested objects and lists
ACTIONS_PER_STEP = 8  # actions that are converted per step of about 1 ms
CROSSES_PER_DIM, MAX_CROSSES = 4, 256  # an action has at most min(4 · dim, 256) cross features


class RankArguments(NamedTuple):
    """Arguments of a recommendation, converted from a rank request."""

    user: str
    arms: list[tuple[str, dict[str, float]]]  # id and named features of each action
    excluded: list[str]
    event_id: str | None
    deferred: bool  # whether the wait for the reward starts only when the event is activated


def to_arguments(rank: RankRequest, dim: int, user_path: str) -> RankArguments:
    """Convert a rank request as ``argument_steps`` does."""
    return finish(argument_steps(rank, dim, user_path))


def argument_steps(rank: RankRequest, dim: int, user_path: str) -> Generator[None, None, RankArguments]:
    """Convert a rank request of Azure Personalizer to the arguments of a recommendation, in steps of about 1 ms.

    Features are flattened to named numbers:

    - The names of nested objects are joined with dots.
    - A string becomes the feature ``name=value`` with the value 1. A boolean becomes ``name=true`` or ``name=false``
      with the value 1.
    - A number x becomes asinh x, which is close to x for small x and grows like a logarithm. Clients of Personalizer
      send unscaled numbers such as years and prices.
    - A string in a list becomes a feature with the name of the list. For a number, a boolean or a list in a list, the
      position in the outer list is appended to the name. Objects in a list are merged.
    - Null is omitted. The values of features with the same name are added.

    An arm has the feature ``action=ID``, the features of the action, and cross features: products of a context feature
    and a feature of the action, named ``context×action``. Context features alone are omitted, because they are the same
    for all arms. An arm has at most min(4 · dim, 256) cross features: first the products of ``action=ID`` with each
    context feature, then the products of each feature of the action, in the order of the request.

    Parameters
    ----------
    rank : RankRequest
        The request.
    dim : int
        Number of features per arm.
    user_path : str
        Path of the user id in the context: a name such as ``user.id``, or the names of nested objects, joined by dots.
        The user id is a string or a number, and is not used as a feature. Requests without a user id share the user
        ``SHARED_USER``.

    Raises
    ------
    ValueError
        If the request is invalid. The message names the field.
    """
    ids: set[str] = set()
    for a, action in enumerate(rank.actions):
        if action.id in ids:
            raise ValueError(f"actions[{a}].id must be unique, but {action.id!r} occurs twice")
        ids.add(action.id)
    excluded = [action for action in dict.fromkeys(rank.excluded_actions or ()) if action in ids]
    if len(excluded) == len(ids):
        raise ValueError("excludedActions must not contain all actions: leave at least one to recommend")
    user, objects = _extract_user(rank.context_features or [], user_path)
    context = yield from _flatten(objects, "contextFeatures")
    max_crosses = min(CROSSES_PER_DIM * dim, MAX_CROSSES)
    arms = []
    for a, action in enumerate(rank.actions):
        features = {f"action={action.id}": 1.0}
        flattened = yield from _flatten(action.features or [], f"actions[{a}].features")
        for name, value in flattened.items():
            features[name] = features.get(name, 0.0) + value
        features |= _crosses(context, features, max_crosses)
        if len(features) > MAX_ARM_NAMES:
            raise ValueError(f"actions[{a}] {_too_many_features(len(features))}")
        arms.append((action.id, features))
        if len(arms) % ACTIONS_PER_STEP == 0:
            yield
    return RankArguments(user or SHARED_USER, arms, excluded, rank.event_id or None, bool(rank.defer_activation))


def _too_many_features(count: int) -> str:
    counted = "including cross features and the feature 'action=ID'"
    return f"must have at most {MAX_ARM_NAMES} features ({counted}), not {count}; send fewer features of the action"


def to_rank_response(rank: RankRequest, event_id: str, ranked: Sequence[str]) -> RankResponse:
    """Return the response to a rank request.

    The best action has probability 1, because the choice is deterministic; all other actions have probability 0.
    Excluded actions keep their position in the request, as in Personalizer.

    Parameters
    ----------
    rank : RankRequest
        The request.
    event_id : str
        Id of the event, which is the id of the decision.
    ranked : sequence of str
        Ids of the actions that the request does not exclude, best first. Actions that a policy without explanations did
        not rank follow in the order of the request.
    """
    excluded = set(rank.excluded_actions or ())
    known = excluded.union(ranked)
    remaining = chain(ranked, (action.id for action in rank.actions if action.id not in known))
    order = [action.id if action.id in excluded else next(remaining) for action in rank.actions]
    ranking = [RankedAction(action, 1.0 if action == ranked[0] else 0.0) for action in order]
    return RankResponse(ranking, event_id, ranked[0])


def to_error_response(
    status: int, message: str, target: str | UnsetType = UNSET, request_id: str | UnsetType = UNSET
) -> tuple[int, ErrorResponse]:
    """Return the HTTP status and the error response of a problem. Personalizer uses 400 instead of 422.

    Parameters
    ----------
    status : int
        HTTP status of the problem.
    message : str
        Detail of the problem.
    target : str, optional
        Field that caused the problem.
    request_id : str, optional
        Id of the request.
    """
    status = 400 if status == 422 else status
    default = "InternalServerError" if status >= 500 else "BadRequest"
    codes = {401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound", 429: "TooManyRequests"}
    return status, ErrorResponse(PersonalizerError(codes.get(status, default), message, target, request_id))


# User


def _extract_user(objects: list[Any], user_path: str) -> tuple[str | None, list[Any]]:
    """Return the user id, or None if there is none, and the context without the user id."""
    nested = user_path.split(".")
    for index, context in enumerate(objects):
        for keys in ([user_path], nested):
            value: Any = context
            for key in keys:
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None and value != "":
                user = _parse_user(value, f"contextFeatures[{index}].{user_path}")
                return user, [*objects[:index], _without_key(context, keys), *objects[index + 1 :]]
    return None, objects


def _parse_user(value: Any, field: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 7.0 is user 7
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{field} (a user id) must be a string or a number, not {_type_name(value)}")
    user = str(value)
    if len(user) > MAX_ID_LENGTH:
        raise ValueError(f"{field} (a user id) must have at most {MAX_ID_LENGTH} characters, not {len(user)}")
    return user


def _without_key(value: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """Return a copy of nested objects without the value at a path of keys."""
    first, *rest = keys
    if not rest:
        return {name: inner for name, inner in value.items() if name != first}
    return {**value, first: _without_key(value[first], rest)}


# Features


def _flatten(objects: list[Any], field: str) -> Generator[None, None, dict[str, float]]:
    """Compute the named numbers of a list of objects, in steps; numbers with the same name are added."""
    features: dict[str, float] = {}
    for index, value in enumerate(objects):
        if value is not None and not isinstance(value, dict):
            raise ValueError(f"{field}[{index}] must be an object of features, not {_type_name(value)}")
        for count, (name, number) in enumerate(_numbers(value, "", f"{field}[{index}]", MAX_DEPTH), 1):
            features[name] = features.get(name, 0.0) + number
            if count % NAMES_PER_STEP == 0:
                yield
    return features


def _numbers(value: Any, name: str, field: str, depth: int) -> Iterable[tuple[str, float]]:
    """Yield the named numbers of a value that is nested at most ``depth`` levels deep."""
    if depth < 0:
        raise ValueError(f"{field} must be nested at most {MAX_DEPTH} levels deep")
    if isinstance(value, bool):
        yield f"{name}={'true' if value else 'false'}", 1.0
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif isinstance(value, int | float):
        try:
            yield name, math.asinh(value)
        except OverflowError:
            raise ValueError(f"{field} must be a number from -1.8e308 to 1.8e308, the range of 64-bit floats") from None
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not key:
                raise ValueError(f"{field} must not contain a feature with an empty name")
            yield from _numbers(inner, f"{name}.{key}" if name else key, f"{field}.{key}", depth - 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            has_index = isinstance(inner, bool | int | float | list)
            yield from _numbers(inner, f"{name}.{index}" if has_index else name, f"{field}[{index}]", depth - 1)


def _crosses(context: dict[str, float], action: dict[str, float], maximum: int) -> dict[str, float]:
    """Return the products of each action feature with each context feature: the first ``maximum`` products."""
    crosses: dict[str, float] = {}
    for action_name, action_value in action.items():
        for context_name, context_value in context.items():
            if len(crosses) == maximum:
                return crosses
            crosses[f"{context_name}×{action_name}"] = context_value * action_value
    return crosses


def _type_name(value: Any) -> str:
    return {str: "a string", bool: "a boolean", list: "a list", dict: "an object"}.get(type(value), "a number")
