"""The requests and answers of Azure Personalizer, version 1.0, in our own terms.

Its client posts to ``/personalizer/v1.0/rank`` and takes 201 with a ``RankResponse``, to ``…/events/{eventId}/reward``
and ``…/events/{eventId}/activate`` and takes 204 with nothing. All else is an error, with an ``ErrorResponse``. The
token comes in the header ``Ocp-Apim-Subscription-Key``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

PATH = "/personalizer/v1.0"
KEY_HEADER = "Ocp-Apim-Subscription-Key"
RANKED, DONE = 201, 204  # statuses: its client takes no other for success
SHARED_USER = "personalizer:everyone"
MAX_ID_LENGTH = 256
DEEPEST = 16  # objects and lists within each other
CROSSES_A_PLACE, MOST_CROSSES = 4, 256  # crosses an action: so many times dim, and no more than that

ActionId = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]


class RankableAction(Struct):
    """One of the things to choose from."""

    id: ActionId
    features: list[Any] | None = None


class RankRequest(Struct, rename="camel"):
    """Which of these actions in this context? Fields that are not known are passed over, as the original does."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=1000)]
    context_features: list[Any] | None = None
    excluded_actions: list[str] | None = None
    event_id: Annotated[str, Meta(max_length=MAX_ID_LENGTH)] | None = None
    defer_activation: bool | None = False


class RankedAction(Struct):
    """An action in its place."""

    id: str
    probability: float


class RankResponse(Struct, rename="camel"):
    """``rewardActionId`` is the action to show; it need not be the first of ``ranking``."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct):
    """What the action of an event earned."""

    value: Annotated[float, Meta(ge=-1e6, le=1e6)]


class PersonalizerError(Struct, omit_defaults=True):
    """What went wrong, and with what."""

    code: str
    message: str
    target: str | UnsetType = UNSET


class ErrorResponse(Struct):
    """What its client turns into an exception."""

    error: PersonalizerError


class Asked(NamedTuple):
    """A rank request in our own terms."""

    user: str
    arms: list[tuple[str, dict[str, float]]]
    excluded: list[str]
    event_id: str | None
    deferred: bool


def question(rank: RankRequest, dim: int, user_at: str) -> Asked:
    """The user, the arms with their features by name, what is excluded, and the event.

    Features are flattened: names of nested objects are joined with dots; a string counts 1 under ``name=value``, a
    boolean under ``name=true`` or ``name=false``; a number x counts asinh x, which is nearly x where it is small and
    grows as a logarithm, since the original learned at any scale and its users send years and prices as they are. In a
    list, strings are one feature each under the list's name, numbers and booleans have their place in the name, and
    objects count as if each stood there instead of the list. Null is left out. What is told twice adds up.

    An arm has ``action=ID``, its own features, and crosses with the context: what is true of the context alone is the
    same for all arms and cannot tell them apart. A cross is called ``context×action`` and counts the product. An arm
    has at most 4 · dim of them, and never more than 256: those of ``action=ID`` with each of the context's features in
    the order of the request, then those of the arm's first feature, of its second, and so on.

    ``dim`` is that of the vectors which the features become. ``user_at`` says where in the context the user's id
    stands, such as ``user.id``: a string or a number, which is then no feature. Without one the call is that of
    SHARED_USER, as are all others without one.

    Raises
    ------
    ValueError
        With the place in the request.
    """
    known: set[str] = set()
    for a, action in enumerate(rank.actions):
        if action.id in known:
            raise ValueError(f"actions[{a}].id must be unlike the others, not {action.id!r} again")
        known.add(action.id)
    excluded = [action for action in dict.fromkeys(rank.excluded_actions or ()) if action in known]
    if len(excluded) == len(known):
        raise ValueError("excludedActions must leave an action to choose")
    user, objects = _without_user(rank.context_features or [], user_at)
    context = _flat(objects, "contextFeatures")
    most = min(CROSSES_A_PLACE * dim, MOST_CROSSES)
    arms = []
    for a, action in enumerate(rank.actions):
        features = {f"action={action.id}": 1.0}
        for name, value in _flat(action.features or [], f"actions[{a}].features").items():
            features[name] = features.get(name, 0.0) + value
        arms.append((action.id, features | _crosses(context, features, most)))
    return Asked(user or SHARED_USER, arms, excluded, rank.event_id or None, bool(rank.defer_activation))


def answer(rank: RankRequest, event_id: str, ranked: Sequence[str]) -> RankResponse:
    """The answer to it: ``ranked`` are the actions that were not excluded, the best first.

    The best has probability 1, since the choice is not drawn by lot. Excluded actions keep the place that they have in
    the request, with probability 0, as in the original; the others fill the places between them.
    """
    excluded = set(rank.excluded_actions or ())
    left = iter(ranked)
    places = [action.id if action.id in excluded else next(left) for action in rank.actions]
    ranking = [RankedAction(action, 1.0 if action == ranked[0] else 0.0) for action in places]
    return RankResponse(ranking, event_id, ranked[0])


def refusal(status: int, message: str, target: str | None = None) -> tuple[int, ErrorResponse]:
    """Status and body that tell its client of a problem; the original has no 422 and says 400."""
    status = 400 if status == 422 else status
    usual = "InternalServerError" if status >= 500 else "BadRequest"
    code = {401: "Unauthorized", 403: "Forbidden", 404: "ResourceNotFound", 429: "TooManyRequests"}.get(status, usual)
    return status, ErrorResponse(PersonalizerError(code, message, UNSET if target is None else target))


def _without_user(objects: list[Any], user_at: str) -> tuple[str | None, list[Any]]:
    """The user's id, if there is one, and the context without it."""
    way = user_at.split(".")
    for place, one in enumerate(objects):
        for steps in ([user_at], way):
            inner: Any = one
            for step in steps:
                inner = inner.get(step) if isinstance(inner, dict) else None
            if inner is not None and inner != "":
                user = _id(inner, f"contextFeatures[{place}].{user_at}")
                return user, [*objects[:place], _dropped(one, steps), *objects[place + 1 :]]
    return None, objects


def _id(value: Any, where: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 7.0 is user 7
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{where} must be a string or a number, to be a user's id")
    user = str(value)
    if len(user) > MAX_ID_LENGTH:
        raise ValueError(f"{where} must have at most {MAX_ID_LENGTH} characters, to be a user's id, not {len(user)}")
    return user


def _dropped(one: dict[str, Any], steps: list[str]) -> dict[str, Any]:
    """The object without what is at the end of these steps."""
    first, *rest = steps
    if not rest:
        return {name: value for name, value in one.items() if name != first}
    return {**one, first: _dropped(one[first], rest)}


def _flat(objects: list[Any], where: str) -> dict[str, float]:
    """Numbers by name."""
    features: dict[str, float] = {}
    for place, one in enumerate(objects):
        if one is not None and not isinstance(one, dict):
            raise ValueError(f"{where}[{place}] must be an object of features, not {_kind(one)}")
        for name, number in _numbers(one, "", f"{where}[{place}]", DEEPEST):
            features[name] = features.get(name, 0.0) + number
    return features


def _numbers(value: Any, name: str, where: str, deepest: int) -> Iterable[tuple[str, float]]:
    if deepest < 0:
        raise ValueError(f"{where} must not be nested deeper than {DEEPEST}")
    if isinstance(value, bool):
        yield f"{name}={'true' if value else 'false'}", 1.0
    elif isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif isinstance(value, int | float):
        try:
            yield name, math.asinh(value)
        except OverflowError:
            raise ValueError(f"{where} must be a number that is not as large") from None
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not key:
                raise ValueError(f"{where} must not have a name that is empty")
            yield from _numbers(inner, f"{name}.{key}" if name else key, f"{where}.{key}", deepest - 1)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            numbered = isinstance(inner, bool | int | float | list)
            yield from _numbers(inner, f"{name}.{place}" if numbered else name, f"{where}[{place}]", deepest - 1)


def _crosses(context: dict[str, float], action: dict[str, float], most: int) -> dict[str, float]:
    """Of each of the action's features in turn with all of the context's."""
    crosses: dict[str, float] = {}
    for name, number in action.items():
        for other, value in context.items():
            if len(crosses) == most:
                return crosses
            crosses[f"{other}×{name}"] = value * number
    return crosses


def _kind(value: Any) -> str:
    return {str: "a string", bool: "a boolean", list: "a list"}.get(type(value), "a number")
