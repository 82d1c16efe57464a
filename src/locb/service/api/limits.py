"""Limits on the number of requests in progress, on the size of a body, and on unknown tokens per client.

The middleware enforces the limits of requests and bodies, ``auth`` those of tokens. ``locb.service.connections`` has
the limits of connections.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass

from locb.service import errors
from locb.service.errors import ProblemError

MIN_NAME_BYTES = 5  # smallest size of a name with its value in a JSON object: "":1,
PERIOD = 60.0  # seconds over which failed tokens are counted
MAX_CLIENTS = 10_000  # maximum number of client addresses whose failed tokens, or used tokens, are kept in memory
_log = logging.getLogger("locb.service")


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


class FailedTokens:
    """Counter of the requests with an unknown token per client address, in periods of ``PERIOD`` seconds.

    Parameters
    ----------
    maximum : int
        Number of requests with an unknown token per period after which further requests are refused.
    """

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._counts: dict[str, tuple[int, float]] = {}  # count and end of the period, in the order of the ends

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, client: str) -> None:
        """Count a request of a client with an unknown token."""
        now = time.monotonic()
        count, end = self._counts.get(client, (0, now))
        if end <= now:
            self._counts.pop(client, None)
            count, end = 0, now + PERIOD
        if len(self._counts) >= MAX_CLIENTS and client not in self._counts:
            del self._counts[next(iter(self._counts))]  # the client whose period ends first
        self._counts[client] = count + 1, end
        if count + 1 == self._maximum:
            advice = "tokens that are new for this address are refused until the minute ends (--max-failed-tokens)"
            _log.warning("%s has sent %d requests with an unknown token within a minute: %s", client, count + 1, advice)

    def retry_after(self, client: str) -> int:
        """Return the number of seconds for which requests of a client are refused; 0 if they are not refused."""
        count, end = self._counts.get(client, (0, 0.0))
        return max(0, math.ceil(end - time.monotonic())) if count >= self._maximum else 0
