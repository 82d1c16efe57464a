"""Plan of a load test: address, simulated environment, rate, duration and timeouts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from locb.common.validation import ParameterError

ROUTES = ("recommend", "ping", "post")


class Address(NamedTuple):
    """Address of a service, parsed from its URL."""

    host: str
    port: int
    tls: bool
    host_header: str
    path: str  # prefix before /v1/…


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings of a load test.

    Parameters
    ----------
    url : str
        Address of the service, such as ``http://127.0.0.1:8080``.
    rate : float, optional
        Decisions per second, or pings per second. Each decision is followed by its reward, so there are two requests
        per decision. Requests are due at equal intervals, even if the service is slower, and latency is measured from
        the time at which a request was due. By default, each connection sends its next request as soon as it receives a
        response, and latency is measured from sending.
    users, clusters, arms, dim : int
        Simulated environment, a ``locb.Synthetic``: number of users, number of clusters, arms per decision and
        features per arm. Defaults: 1000, 10, 10, 10.
    seconds : float, default 10.0
        Time in which new decisions are requested. Afterwards the load test sends the requests that are already due, and
        waits for the pending responses.
    connections : int, default 50
        Maximum number of concurrent requests.
    delay : float, default 0.0
        Seconds from a decision to its reward.
    count : int, optional
        Maximum number of arms in the ranking of a response; by default all arms.
    retry : bool, default False
        Whether to repeat a request, with the same decision_id, after a lost connection, a timeout, or status 429, 502,
        503 or 504.
    timeout : float, default 30.0
        Seconds to wait for a response and, after ``seconds``, for all pending responses.
    route : "recommend", "ping" or "post", default "recommend"
        Requests to send. "recommend": requests for decisions, and their rewards. "ping": ``GET /v1/ping``, which does
        nothing. "post": the bodies of requests for decisions and of rewards to ``POST /v1/ping``, which only parses
        them.
    record : bool, default False
        Whether the report lists every acknowledged decision and reward.
    token : str, optional
        Bearer token.
    seed : int, default 0
        Random seed of the environment, the arms and the rewards. Decision ids differ in every run.
    """

    url: str
    rate: float | None = None
    users: int = 1000
    clusters: int = 10
    arms: int = 10
    dim: int = 10
    seconds: float = 10.0
    connections: int = 50
    delay: float = 0.0
    count: int | None = None
    retry: bool = False
    timeout: float = 30.0
    route: str = "recommend"
    record: bool = False
    token: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, minimum in (("users", 1), ("clusters", 1), ("arms", 1), ("dim", 2), ("connections", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                raise ParameterError(name, f" must be an integer of at least {minimum}, not {value!r}")
        if self.count is not None and self.count < 1:
            raise ParameterError("count", f" must be at least 1, not {self.count!r}")
        for name in ("rate", "seconds", "timeout"):
            number = getattr(self, name)
            if number is not None and not 0.0 < number < math.inf:
                raise ParameterError(name, f" must be a finite number above 0, not {number!r}")
        if not 0.0 <= self.delay < math.inf:
            raise ParameterError("delay", f" must be a finite number of at least 0, not {self.delay!r}")
        if self.route not in ROUTES:
            raise ParameterError("route", f" must be one of {', '.join(map(repr, ROUTES))}, not {self.route!r}")
        if self.token is not None and not (self.token and self.token.isascii() and self.token.isprintable()):
            raise ParameterError("token", " must not be empty and must contain only printable ASCII characters")
        _ = self.address

    @property
    def address(self) -> Address:
        """Parsed address of the service. An invalid ``url`` raises a ValueError."""
        parts = urlsplit(self.url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        valid = self.url.isascii() and self.url.isprintable() and " " not in self.url
        if not valid or parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            allowed = "http or https, with a valid host and port, without spaces, query or fragment"
            raise ParameterError(
                "url", f" must be an address such as http://127.0.0.1:8080 ({allowed}), not {self.url!r}"
            )
        tls = parts.scheme == "https"
        host_header = parts.netloc.rpartition("@")[2]
        return Address(host, port or (443 if tls else 80), tls, host_header, parts.path.rstrip("/"))
