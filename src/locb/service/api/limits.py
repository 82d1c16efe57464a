"""Limits on the number of requests in progress and on the size of a body. The middleware enforces the limits."""

from __future__ import annotations

from dataclasses import dataclass

from locb.service import errors
from locb.service.errors import ProblemError

MIN_NAME_BYTES = 5  # smallest size of a name with its value in a JSON object: "":1,


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
    max_names : int
        Maximum number of names (keys of objects) in a request body.
    """

    max_in_flight: int
    max_body: int
    max_names: int
    in_flight: int = 0
    arriving: int = 0

    def too_many_requests(self) -> ProblemError:
        """Return the problem of a request that exceeds ``max_in_flight``."""
        return errors.too_many_in_flight(self.in_flight)

    def check_names(self, body: bytes) -> None:
        """Raise a 422 problem if a JSON body has more than ``max_names`` names."""
        # A quote and a colon end a name. An escaped quote and a colon in a text are also counted.
        names = body.translate(None, b" \t\r\n").count(b'":')
        if names > self.max_names:
            advice = "send fewer arms or features, or raise --max-feature-names"
            detail = f"a request must have at most {self.max_names} names of features and fields, not {names}"
            raise errors.invalid(f"{detail}: {advice}")
