"""What the routes do that a page asks for."""

from __future__ import annotations

from starlette.responses import Response

from locb.service.messages import LONGEST_ID, PreviewRequest, User
from locb.service.problems import invalid
from locb.service.views import person
from locb.service.views.groups import MOST_LISTED, SORTS, Wanted
from locb.service.views.history import SPANS
from locb.service.views.messages import Preview, UserDecisions
from locb.service.web.desk import Desk, Json
from locb.service.web.queries import moment, one_of, whole

MOST_DECISIONS = 100
FARTHEST = 1_000_000  # groups that are passed over


async def now(desk: Desk) -> Response:
    """How the service does."""
    return Json(await desk.views.now())


async def history(
    desk: Desk, span: str = "hour", baseline_from: str | None = None, baseline_to: str | None = None
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
    return Json(await desk.views.history(span, baseline))


async def map(desk: Desk, basis: str | None = None) -> Response:  # noqa: A001 - as the API calls it
    """Users on a plane."""
    if basis is not None and len(basis) > LONGEST_ID:
        raise invalid(f"basis has at most {LONGEST_ID} characters", "basis")
    return Json(await desk.views.map(basis))


async def groups(desk: Desk, sort: str = "size", limit: str = "50", offset: str = "0", search: str = "") -> Response:
    """The table of sets."""
    if len(search) > LONGEST_ID:
        raise invalid(f"search has at most {LONGEST_ID} characters", "search")
    wanted = Wanted(
        one_of("sort", sort, SORTS), whole("limit", limit, MOST_LISTED), whole("offset", offset, FARTHEST), search
    )
    return Json(await desk.views.groups(wanted))


async def user(desk: Desk, user: str) -> User:
    """What is known of a user."""
    return person.user(desk.service, user, await desk.views.names())


async def user_decisions(desk: Desk, user: str, limit: str = "20") -> UserDecisions:
    """The last decisions for a user."""
    return await person.decisions(desk.service, user, whole("limit", limit, MOST_DECISIONS))


async def preview(desk: Desk, message: PreviewRequest) -> Preview:
    """What would be recommended."""
    return person.preview(desk.service, message)
