"""Table of all routes of the API. The application and its OpenAPI description are built from this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw
from starlette.responses import Response

from locb.common.spans import SPANS
from locb.recommender.events import MAX_ID_LENGTH
from locb.service.api import dashboard_handlers as dashboard
from locb.service.api import handlers, metrics
from locb.service.api.personalizer import handlers as personalizer
from locb.service.api.personalizer.schemas import EVENT_STATUS, PATH, RANK_STATUS, RankRequest, RankResponse
from locb.service.api.personalizer.schemas import RewardRequest as PersonalizerRewardRequest
from locb.service.api.request_params import (
    MAX_CLUSTER_ROWS,
    MAX_DECISIONS,
    MAX_OFFSET,
    MAX_SIMILAR_USERS,
    MAX_TIMESTAMP,
)
from locb.service.api.scopes import Scope
from locb.service.dashboard.cluster_schemas import ClusterDetail, ClusterList, ClusterTable
from locb.service.dashboard.cluster_table import SORTS
from locb.service.dashboard.history import PREVIOUS
from locb.service.dashboard.schemas import (
    History,
    Map,
    PreviewResponse,
    SimilarUsers,
    Status,
    UserDecisions,
    UserDetail,
)
from locb.service.errors import ProblemError
from locb.service.responses import problem_response
from locb.service.schemas import (
    Decision,
    Health,
    Liveness,
    PreviewRequest,
    RecommendBatchRequest,
    RecommendBatchResponse,
    RecommendRequest,
    RewardBatchRequest,
    RewardBatchResponse,
    RewardRequest,
    RewardResponse,
    UserErased,
)


@dataclass(frozen=True, slots=True)
class Route:
    """Route of the API.

    Attributes
    ----------
    method, path : str
        HTTP method, and path with ``{parameters}``.
    handler : coroutine function
        Called with the application context, the decoded body if ``request_type`` is set, and the path and query
        parameters by name. Returns an object that is encoded as JSON, bytes that are encoded JSON, None for a response
        without a body, or another response.
    summary : str
        One line for the OpenAPI description.
    scope : str or None
        Scope that the token of a request needs; None if no token is needed.
    request_type : type, optional
        Schema of the body.
    response_type : type or str, optional
        Schema of the response, or its media type if it is not JSON.
    problem_statuses : tuple of int
        Statuses of the problems that are specific to the route. ``api.openapi`` adds the statuses that all routes have,
        and those of routes with a token, a body or an id in the path.
    query : dict
        JSON schema of each query parameter.
    status : int, default 200
        Status of a successful response.
    other_statuses : tuple of int
        Further statuses with the same response schema.
    render_problem : callable, default ``problem_response``
        Converts a ``ProblemError`` to a response.
    limited : bool, default True
        Whether a request is rejected with 429 while the maximum number of requests is in progress, and with 503 after
        another process has taken over the log.
    ends_with_client : bool, default False
        Whether the handler is cancelled when the client closes the connection. Only for routes without a body.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    summary: str
    scope: Scope | None
    request_type: type | None = None
    response_type: type | str | None = None
    problem_statuses: tuple[int, ...] = ()
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    status: int = 200
    other_statuses: tuple[int, ...] = ()
    render_problem: Callable[[ProblemError], Response] = problem_response
    limited: bool = True
    ends_with_client: bool = False


def _integer(maximum: int, default: int, description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 0, "maximum": maximum, "default": default, "description": description}


def _timestamp(description: str) -> dict[str, Any]:
    return {"type": "number", "minimum": 0, "maximum": MAX_TIMESTAMP, "description": description}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": MAX_ID_LENGTH, "description": description}


ROUTES = (
    # Decisions and rewards
    Route("POST", "/v1/recommend", handlers.recommend, "Recommend an arm to a user", "decide",
          RecommendRequest, Decision, (409, 503)),
    Route("POST", "/v1/recommend:batch", handlers.recommend_batch, "Recommend arms for several requests", "decide",
          RecommendBatchRequest, RecommendBatchResponse, (503,)),
    Route("POST", "/v1/reward", handlers.reward, "Send the reward of a decision", "decide",
          RewardRequest, RewardResponse, (404, 409, 503)),
    Route("POST", "/v1/reward:batch", handlers.reward_batch, "Send the rewards of several decisions", "decide",
          RewardBatchRequest, RewardBatchResponse, (503,)),
    # Users and clusters
    Route("GET", "/v1/users/{user}", dashboard.user_detail, "Get the estimate and statistics of a user", "read",
          None, UserDetail, (404,)),
    Route("GET", "/v1/users/{user}/similar", handlers.similar_users, "List similar users, nearest first", "read",
          None, SimilarUsers, (404, 422), {"limit": _integer(MAX_SIMILAR_USERS, 10, "Maximum number of users.")}),
    Route("GET", "/v1/users/{user}/decisions", dashboard.user_decisions, "List the decisions for a user, newest first",
          "read", None, UserDecisions, (404, 422, 503),
          {"limit": _integer(MAX_DECISIONS, 20, "Maximum number of decisions.")}),
    Route("POST", "/v1/preview", dashboard.preview, "Get the current recommendation without storing it", "read",
          PreviewRequest, PreviewResponse, (404,)),
    Route("DELETE", "/v1/users/{user}", handlers.erase_user, "Erase a user and everything learned from that user",
          "delete", None, UserErased, (404, 409, 503)),
    Route("GET", "/v1/clusters", handlers.list_clusters, "List all clusters", "read", None, ClusterList),
    Route("GET", "/v1/clusters/{seed}", handlers.cluster_detail, "Get the members and the certificate of a cluster",
          "read", None, ClusterDetail, (404,)),
    # Dashboard
    Route("GET", "/v1/status", dashboard.status, "Get the current state of the service", "read", None, Status),
    Route("GET", "/v1/history", dashboard.history, "Get decisions and rewards over time", "read",
          None, History, (422, 503),
          {"span": {"type": "string", "enum": list(SPANS), "default": "hour", "description": "Period that ends now. "
                    "`month` means 30 days."},
           "baseline": {"type": "string", "enum": [PREVIOUS], "description": "Compare with the period of the same "
                        "length that ends where the span starts. Not for the span `all`."},
           "baseline_from": _timestamp("Start of the period to compare with, as Unix time in seconds."),
           "baseline_to": _timestamp("End of the period to compare with, as Unix time in seconds.")}),
    Route("GET", "/v1/map", dashboard.user_map, "Get a two-dimensional projection of the users' estimates", "read",
          None, Map, (422,), {"projection": _text("Id of the projection to use, or `new` to fit a new projection. By "
                                                  "default, and for an unknown id, the most recent projection.")}),
    Route("GET", "/v1/groups", dashboard.cluster_table, "Get a page of the table of clusters", "read",
          None, ClusterTable, (422, 503),
          {"sort": {"type": "string", "enum": list(SORTS), "default": "size", "description": "Column to sort by: "
                    "`seed` in ascending order, all other columns in descending order."},
           "limit": _integer(MAX_CLUSTER_ROWS, 50, "Maximum number of clusters on the page."),
           "offset": _integer(MAX_OFFSET, 0, "Number of clusters before the page."),
           "search": _text("Text that the id of the seed (of the first member, if the policy has no seeds) must "
                           "contain, in upper or lower case. By default all clusters.")}),
    # Operation
    Route("GET", "/v1/export", handlers.export, "Export all decisions and rewards as Parquet", "read",
          None, handlers.PARQUET, (503,), ends_with_client=True),
    Route("GET", "/v1/live", handlers.live, "Check whether the process responds to requests", None, None, Liveness,
          limited=False),
    Route("GET", "/v1/health", handlers.health, "Check whether the service can decide and learn", None, None, Health,
          other_statuses=(503,), limited=False),
    Route("GET", "/v1/ping", handlers.ping, "Get an empty response, to measure the overhead of the server", None,
          status=204),
    Route("POST", "/v1/ping", handlers.ping_with_body, "Send any JSON body and get an empty response, to measure the "
          "overhead of the server", "decide", Raw, status=204),
    Route("GET", "/metrics", handlers.metrics, "Get metrics for Prometheus", "read", None, metrics.CONTENT_TYPE),
    # Azure Personalizer
    Route("POST", f"{PATH}/rank", personalizer.rank, "Azure Personalizer: rank actions", "decide",
          RankRequest, RankResponse, (409, 503), status=RANK_STATUS, render_problem=personalizer.error_response),
    Route("POST", f"{PATH}/events/{{event}}/reward", personalizer.reward_event, "Azure Personalizer: reward an event",
          "decide", PersonalizerRewardRequest, None, (404, 503), status=EVENT_STATUS,
          render_problem=personalizer.error_response),
    Route("POST", f"{PATH}/events/{{event}}/activate", personalizer.activate_event, "Azure Personalizer: activate an "
          "event", "decide", None, None, (404, 503), status=EVENT_STATUS, render_problem=personalizer.error_response),
)  # fmt: skip
