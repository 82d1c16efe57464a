"""Spans of the reward history: periods that end now. The service, its dashboard and ``locb watch`` use ``SPANS``."""

from typing import NamedTuple


class Span(NamedTuple):
    """Period that ends now.

    Attributes
    ----------
    seconds : int or None
        Length; None for the whole history.
    step_seconds : int
        Length of a time step of the history.
    title : str
        Title of the button that selects the span.
    period : str
        The period in a sentence.
    previous : str
        The period of the same length before the span, in a sentence; empty for the whole history.
    """

    seconds: int | None
    step_seconds: int
    title: str
    period: str
    previous: str


SPANS = {
    "hour": Span(3_600, 10, "Hour", "the last hour", "the previous hour"),
    "day": Span(86_400, 300, "Day", "the last day", "the previous day"),
    "month": Span(30 * 86_400, 10_800, "30 days", "the last 30 days", "the previous 30 days"),
    "all": Span(None, 86_400, "All", "the whole history", ""),
}
