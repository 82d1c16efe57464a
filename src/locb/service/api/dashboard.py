"""What the routes do that a page asks for."""

from __future__ import annotations

from starlette.responses import Response

from locb.service.api.context import AppContext, Json
from locb.service.api.query_params import moment, one_of, whole
from locb.service.dashboard import user_detail as person
from locb.service.dashboard.groups import MOST_LISTED, SORTS, Wanted
from locb.service.dashboard.history import SPANS
from locb.service.dashboard.schemas import PreviewResponse, UserDecisions
from locb.service.errors import invalid
from locb.service.schemas import MAX_ID_LENGTH, PreviewRequest, UserDetail

MOST_DECISIONS = 100
FARTHEST = 1_000_000  # groups that are passed over


async def status(app: AppContext) -> Response:
    """How the service does."""
    return Json(await app.views.status())


async def history(
    app: AppContext, span: str = "hour", baseline_from: str | None = None, baseline_to: str | None = None
) -> Response:
    """Decisions and rewards over time."""
    one_of("span", span, list(SPANS))
    if (baseline_from is None) != (baseline_to is None):
        missing = "baseline_from" if baseline_from is None else "baseline_to"
        raise invalid(f"a baseline has a beginning and an end: {missing} is missing", missing)
    baseline = None
    if baseline_from is not None and baseline_to is not None:
        baseline = moment("baseline_from", baseline_from), moment("baseline_to", baseline_to)
        if not baseline[0] < baseline[1]:
            raise invalid("a baseline must begin before it ends", "baseline_from", "baseline_to")
    return Json(await app.views.history(span, baseline))


async def map(app: AppContext, projection: str | None = None) -> Response:  # noqa: A001 - as the API calls it
    """Users on a plane."""
    if projection is not None and len(projection) > MAX_ID_LENGTH:
        raise invalid(f"projection has at most {MAX_ID_LENGTH} characters", "projection")
    return Json(await app.views.map(projection))


async def groups(
    app: AppContext, sort: str = "size", limit: str = "50", offset: str = "0", search: str = ""
) -> Response:
    """The table of sets."""
    if len(search) > MAX_ID_LENGTH:
        raise invalid(f"search has at most {MAX_ID_LENGTH} characters", "search")
    wanted = Wanted(
        one_of("sort", sort, SORTS), whole("limit", limit, MOST_LISTED), whole("offset", offset, FARTHEST), search
    )
    return Json(await app.views.groups(wanted))


async def user(app: AppContext, user: str) -> UserDetail:
    """What is known of a user."""
    return person.user(app.service, user, await app.views.names())


async def user_decisions(app: AppContext, user: str, limit: str = "20") -> UserDecisions:
    """The last decisions for a user."""
    return await person.decisions(app.service, user, whole("limit", limit, MOST_DECISIONS))


async def preview(app: AppContext, message: PreviewRequest) -> PreviewResponse:
    """What would be recommended."""
    return person.preview(app.service, message)
