"""All routes of the API in one table: what is served, and what its description is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Raw
from starlette.responses import Response

from locb.service import personalizer
from locb.service.messages import (
    Decision,
    Decisions,
    Forgotten,
    GroupMembers,
    Groups,
    Health,
    RecommendBatch,
    RecommendRequest,
    RewardBatch,
    Rewarded,
    Rewardeds,
    RewardRequest,
    SimilarUsers,
    User,
)
from locb.service.problems import ProblemError
from locb.service.web import azure, handlers
from locb.service.web.gate import told

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


LIMIT = {"type": "integer", "minimum": 0, "maximum": 1000, "default": 10}

ROUTES = (
    Route("POST", "/v1/recommend", handlers.recommend, "Which of these arms for this user?", "decide",
          RecommendRequest, Decision, (409, 503)),
    Route("POST", "/v1/recommend:batch", handlers.recommend_batch, "Several questions at once", "decide",
          RecommendBatch, Decisions, (503,)),
    Route("POST", "/v1/reward", handlers.reward, "What the recommended arm earned", "decide",
          RewardRequest, Rewarded, (404, 409, 503)),
    Route("POST", "/v1/reward:batch", handlers.reward_batch, "Several rewards at once", "decide",
          RewardBatch, Rewardeds, (503,)),
    Route("GET", "/v1/users/{user}", handlers.user, "What is known of a user", "read", None, User, (404,)),
    Route("GET", "/v1/users/{user}/similar", handlers.similar, "Users like this one, the nearest first", "read",
          None, SimilarUsers, (404, 422), {"limit": LIMIT}),
    Route("DELETE", "/v1/users/{user}", handlers.forget, "Erase a user and all that was learned from them", "delete",
          None, Forgotten, (404, 503)),
    Route("GET", "/v1/clusters", handlers.clusters, "All sets of users who may be alike", "read", None, Groups),
    Route("GET", "/v1/clusters/{seed}", handlers.cluster, "The members of a set, and its certificate", "read",
          None, GroupMembers, (404,)),
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
