"""Handlers of the routes that the dashboard reads."""

from __future__ import annotations

from locb.common.spans import SPANS
from locb.service.api.context import AppContext
from locb.service.api.handlers import parse_in_steps
from locb.service.api.request_params import (
    MAX_CLUSTER_ROWS,
    MAX_DECISIONS,
    MAX_OFFSET,
    check_length,
    parse_choice,
    parse_integer,
    parse_timestamp,
)
from locb.service.dashboard import user_detail as user_views
from locb.service.dashboard.cluster_table import SORTS, TableQuery
from locb.service.dashboard.history import PREVIOUS, Baseline
from locb.service.dashboard.schemas import PreviewResponse, UserDecisions, UserDetail
from locb.service.errors import invalid
from locb.service.request_parsing import parse_steps
from locb.service.schemas import MAX_ARM_NAMES, PreviewRequest, RecommendRequest


async def status(app: AppContext) -> bytes:
    """Return the current state of the service."""
    return await app.views.status()


async def history(
    app: AppContext,
    span: str = "hour",
    baseline: str | None = None,
    baseline_from: str | None = None,
    baseline_to: str | None = None,
) -> bytes:
    """Return decisions and rewards over time."""
    parse_choice("span", span, list(SPANS))
    return await app.views.history(span, _parse_baseline(span, baseline, baseline_from, baseline_to))


def _parse_baseline(
    span: str, baseline: str | None, baseline_from: str | None, baseline_to: str | None
) -> Baseline | None:
    if baseline is not None:
        parse_choice("baseline", baseline, [PREVIOUS])
        if baseline_from is not None or baseline_to is not None:
            detail = "a baseline is either baseline=previous, or baseline_from and baseline_to, not both"
            raise invalid(detail, "baseline", "baseline_from", "baseline_to")
        if SPANS[span].seconds is None:
            detail = f"no period precedes the span {span!r}: use another span, or baseline_from and baseline_to"
            raise invalid(detail, "baseline", "span")
        return PREVIOUS
    if (baseline_from is None) != (baseline_to is None):
        missing = "baseline_from" if baseline_from is None else "baseline_to"
        raise invalid(f"a baseline needs baseline_from and baseline_to: {missing} is missing", missing)
    if baseline_from is None or baseline_to is None:
        return None
    start = parse_timestamp("baseline_from", baseline_from)
    stop = parse_timestamp("baseline_to", baseline_to)
    if not start < stop:
        detail = f"baseline_from must be before baseline_to, but {start:.15g} is not before {stop:.15g}"
        raise invalid(detail, "baseline_from", "baseline_to")
    return start, stop


async def user_map(app: AppContext, projection: str | None = None) -> bytes:
    """Return a two-dimensional projection of the users' estimates."""
    check_length("projection", projection or "")
    return await app.views.map(projection)


async def cluster_table(
    app: AppContext, sort: str = "size", limit: str = "50", offset: str = "0", search: str = ""
) -> bytes:
    """Return a page of the table of clusters."""
    check_length("search", search)
    query = TableQuery(
        parse_choice("sort", sort, SORTS),
        parse_integer("limit", limit, MAX_CLUSTER_ROWS),
        parse_integer("offset", offset, MAX_OFFSET),
        search,
    )
    return await app.views.clusters(query)


async def user_detail(app: AppContext, user: str) -> UserDetail:
    """Return the estimate and statistics of a user."""
    return user_views.user_detail(app.service, user, await app.views.feature_names())


async def user_decisions(app: AppContext, user: str, limit: str = "20") -> UserDecisions:
    """Return the last ``limit`` decisions for a user, newest first."""
    return await user_views.user_decisions(app.service, user, parse_integer("limit", limit, MAX_DECISIONS))


async def preview(app: AppContext, body: PreviewRequest) -> PreviewResponse:
    """Return the current recommendation without storing a decision."""
    request = RecommendRequest(body.user, body.arms, body.exclude, body.count)
    parsed = await parse_in_steps(parse_steps(request, app.service.model.dim, MAX_ARM_NAMES), app.parsing)
    return user_views.preview(app.service, parsed)
