"""Limits on the number of requests in progress and on the size of a body. The middleware enforces both limits."""

from __future__ import annotations

from dataclasses import dataclass

from locb.service import errors
from locb.service.errors import ProblemError


@dataclass(slots=True)
class Limits:
    """Configured limits, and the numbers of requests in progress and of requests whose body is arriving.

    An arriving request is not in progress. Otherwise clients that do not complete their requests could prevent all
    other requests.

    Parameters
    ----------
    max_in_flight : int
        Maximum number of requests in progress.
    max_body : int
        Maximum size of a request body in bytes.
    """

    max_in_flight: int
    max_body: int
    in_flight: int = 0
    arriving: int = 0

    def too_many_requests(self) -> ProblemError:
        """Return the problem of a request that exceeds ``max_in_flight``."""
        return errors.too_many_in_flight(self.in_flight)
