"""Requests and responses of Azure Personalizer, version 1.0.

A client of Personalizer posts to ``/personalizer/v1.0/rank`` and expects status 201 with a ``RankResponse``. It posts
to ``…/events/{eventId}/reward`` and ``…/events/{eventId}/activate`` and expects status 204. Every other status is an
error with an ``ErrorResponse``. The client sends its token in the header ``Ocp-Apim-Subscription-Key``.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from locb.recommender.events import MAX_ID_LENGTH, MAX_REWARD
from locb.service.schemas import MAX_ARMS

PATH = "/personalizer/v1.0"
KEY_HEADER = "Ocp-Apim-Subscription-Key"
RANK_STATUS, EVENT_STATUS = 201, 204  # the client accepts no other status as success

ActionId = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]


class RankableAction(Struct):
    """Action (arm) that can be recommended."""

    id: ActionId
    features: list[Any] | None = None


class RankRequest(Struct, rename="camel"):
    """Request to rank actions in a context. Unknown fields are ignored, as in Personalizer."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MAX_ARMS)]
    context_features: list[Any] | None = None
    excluded_actions: list[str] | None = None
    event_id: Annotated[str, Meta(max_length=MAX_ID_LENGTH)] | None = None
    defer_activation: bool | None = False


class RankedAction(Struct):
    """Action with the probability that it is recommended: 1 or 0, because the choice is deterministic."""

    id: str
    probability: float


class RankResponse(Struct, rename="camel"):
    """Ranking of the actions. ``rewardActionId`` is the recommended action, which is not necessarily the first."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct):
    """Reward of an event (decision)."""

    value: Annotated[float, Meta(ge=-MAX_REWARD, le=MAX_REWARD)]


class PersonalizerError(Struct, omit_defaults=True, rename="camel"):
    """Error with its code, its message, the field that caused it, and the id of the request."""

    code: str
    message: str
    target: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


class ErrorResponse(Struct):
    """Error response, which the client converts to an exception."""

    error: PersonalizerError
