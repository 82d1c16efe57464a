"""All routes of the API in one table: what is served, and what its description is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Raw
from starlette.responses import Response

from locb.service.api import dashboard as looking
from locb.service.api import handlers
from locb.service.api.guard import told
from locb.service.api.personalizer import handlers as azure
from locb.service.api.personalizer import schemas as personalizer
from locb.service.api.query_params import LATEST
from locb.service.dashboard.groups import MOST_LISTED, SORTS
from locb.service.dashboard.history import SPANS
from locb.service.dashboard.schemas import ClusterTable, History, Map, PreviewResponse, Status, UserDecisions
from locb.service.errors import ProblemError
from locb.service.schemas import (
    MAX_ID_LENGTH,
    ClusterDetail,
    ClusterList,
    Decision,
    Health,
    PreviewRequest,
    RecommendBatchRequest,
    RecommendBatchResponse,
    RecommendRequest,
    RewardBatchRequest,
    RewardBatchResponse,
    RewardRequest,
    RewardResponse,
    SimilarUsers,
    UserDetail,
    UserErased,
)

Scope = Literal["decide", "read", "delete"] | None


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked.

    ``handler`` takes the desk and the request read: a message for routes that have one, else the parameters by name.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    summary: str
    scope: Scope
    takes: type | None = None
    gives: type | str | None = None  # a message, or a kind of content
    problems: tuple[int, ...] = ()
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)  # in the query, by JSON schema
    status: int = 200
    tell: Callable[[ProblemError], Response] = told  # a problem
    also: tuple[int, ...] = ()  # statuses that come with the same message as success


def _whole(most: int, usual: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": most, "default": usual}


LIMIT = _whole(handlers.MOST_SIMILAR, 10)
MOMENT = {"type": "number", "minimum": 0, "maximum": LATEST, "description": "Seconds since 1970."}
TEXT = {"type": "string", "maxLength": MAX_ID_LENGTH}

ROUTES = (
    Route("POST", "/v1/recommend", handlers.recommend, "Which of these arms for this user?", "decide",
          RecommendRequest, Decision, (409, 503)),
    Route("POST", "/v1/recommend:batch", handlers.recommend_batch, "Several questions at once", "decide",
          RecommendBatchRequest, RecommendBatchResponse, (503,)),
    Route("POST", "/v1/reward", handlers.reward, "What the recommended arm earned", "decide",
          RewardRequest, RewardResponse, (404, 409, 503)),
    Route("POST", "/v1/reward:batch", handlers.reward_batch, "Several rewards at once", "decide",
          RewardBatchRequest, RewardBatchResponse, (503,)),
    Route("GET", "/v1/users/{user}", looking.user, "What is known of a user", "read", None, UserDetail, (404,)),
    Route("GET", "/v1/users/{user}/similar", handlers.similar, "Users like this one, the nearest first", "read",
          None, SimilarUsers, (404, 422), {"limit": LIMIT}),
    Route("GET", "/v1/users/{user}/decisions", looking.user_decisions, "The last decisions for a user, the latest "
          "first", "read", None, UserDecisions, (404, 422, 503), {"limit": _whole(looking.MOST_DECISIONS, 20)}),
    Route("POST", "/v1/preview", looking.preview, "What would be recommended now; nothing is decided", "read",
          PreviewRequest, PreviewResponse, (404,)),
    Route("DELETE", "/v1/users/{user}", handlers.forget, "Erase a user and all that was learned from them", "delete",
          None, UserErased, (404, 503)),
    Route("GET", "/v1/clusters", handlers.clusters, "All sets of users who may be alike", "read", None, ClusterList),
    Route("GET", "/v1/clusters/{seed}", handlers.cluster, "The members of a set, and its certificate", "read",
          None, ClusterDetail, (404,)),
    Route("GET", "/v1/status", looking.status, "How the service does", "read", None, Status),
    Route("GET", "/v1/history", looking.history, "Decisions and rewards over time", "read", None, History, (422, 503),
          {"span": {"type": "string", "enum": list(SPANS), "default": "hour"}, "baseline_from": MOMENT,
           "baseline_to": MOMENT}),
    Route("GET", "/v1/map", looking.map, "Users' estimates on a plane that stays as it is", "read", None, Map, (422,),
          {"projection": TEXT}),
    Route("GET", "/v1/groups", looking.groups, "The table of sets", "read", None, ClusterTable, (422, 503),
          {"sort": {"type": "string", "enum": list(SORTS), "default": "size"}, "limit": _whole(MOST_LISTED, 50),
           "offset": _whole(looking.FARTHEST, 0), "search": TEXT}),
    Route("GET", "/v1/export", handlers.export, "All decisions and rewards, as Parquet", "read",
          None, handlers.PARQUET, (503,)),
    Route("GET", "/v1/health", handlers.health, "Whether the service can decide and learn", None, None, Health,
          also=(503,)),
    Route("GET", "/v1/ping", handlers.ping, "Nothing: to measure what the server itself can do", None, status=204),
    Route("POST", "/v1/ping", handlers.ping_with_body, "Nothing, with what was sent: to measure the server with the "
          "bodies of real requests", None, Raw, status=204),
    Route("GET", "/metrics", handlers.metrics, "Counts and times for Prometheus", "read", None,
          handlers.METRICS),
    Route("POST", f"{personalizer.PATH}/rank", azure.rank, "Azure Personalizer: which action?", "decide",
          personalizer.RankRequest, personalizer.RankResponse, (409, 503), status=201, tell=azure.told_as_azure),
    Route("POST", f"{personalizer.PATH}/events/{{event}}/reward", azure.reward_event, "Azure Personalizer: a reward",
          "decide", personalizer.RewardRequest, None, (404, 409, 503), status=204, tell=azure.told_as_azure),
    Route("POST", f"{personalizer.PATH}/events/{{event}}/activate", azure.activate, "Azure Personalizer: it is shown",
          "decide", None, None, (404, 503), status=204, tell=azure.told_as_azure),
)  # fmt: skip
