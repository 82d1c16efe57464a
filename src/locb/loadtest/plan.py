"""What to play against which service."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

ROUTES = ("recommend", "ping", "post")


class Address(NamedTuple):
    """Where a service listens."""

    host: str
    port: int
    tls: bool
    name: str  # for the Host header
    path: str  # before /v1/…


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A load. All but the address has a default.

    Parameters
    ----------
    url : str
        The service, such as ``http://127.0.0.1:8080``.
    rate : float, optional
        Decisions a second, each followed by its reward (so there are twice as many requests), or pings a second. They
        are due at even intervals whether or not the service keeps up, and latency counts from when they were due. If
        not given, every connection asks again as soon as it is answered, and latency counts from the asking.
    users, clusters, arms, dim : int
        The world: a ``locb.Synthetic`` with so many users in so many clusters, arms a decision and features an arm.
    seconds : float
        How long new decisions are asked for. Then what is due is still sent, and answers are waited for.
    connections : int
        Requests under way at once, at most.
    delay : float
        Seconds from a decision to its reward.
    count : int, optional
        How many arms of the ranking are asked for.
    retry : bool
        Whether a request is sent again, with the same decision_id, after a lost connection, no answer in time, or
        429, 502, 503 or 504.
    timeout : float
        Seconds to wait for an answer, and at the end for all of them.
    route : "recommend", "ping" or "post"
        What to send: decisions and rewards; or ``GET /v1/ping``, which does nothing; or the bodies of decisions and
        rewards, in turn, to ``POST /v1/ping``, which reads them and does nothing.
    record : bool
        Whether the report lists every acknowledged decision and reward.
    token : str, optional
        Sent as a bearer token.
    seed : int
        Of the world, the arms and the rewards. Ids of decisions are new in every run.
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
        for name, least in (("users", 1), ("clusters", 1), ("arms", 1), ("dim", 2), ("connections", 1), ("seed", 0)):
            whole = getattr(self, name)
            if not isinstance(whole, int) or whole < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {whole!r}")
        if self.count is not None and self.count < 1:
            raise ValueError(f"count must be at least 1, not {self.count!r}")
        for name in ("rate", "seconds", "timeout"):
            number = getattr(self, name)
            if number is not None and not 0.0 < number < math.inf:
                raise ValueError(f"{name} must be a number above 0, not {number!r}")
        if not 0.0 <= self.delay < math.inf:
            raise ValueError(f"delay must be a number of at least 0, not {self.delay!r}")
        if self.route not in ROUTES:
            raise ValueError(f"route must be one of {', '.join(map(repr, ROUTES))}, not {self.route!r}")
        if self.token is not None and not (self.token and self.token.isascii() and self.token.isprintable()):
            raise ValueError("token must be printable ASCII")
        _ = self.address

    @property
    def address(self) -> Address:
        """The parts of the URL."""
        parts = urlsplit(self.url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        plain = self.url.isascii() and self.url.isprintable() and " " not in self.url
        if not plain or parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ValueError(f"url must be like http://127.0.0.1:8080, not {self.url!r}")
        tls = parts.scheme == "https"
        name = parts.netloc.rpartition("@")[2]
        return Address(host, port or (443 if tls else 80), tls, name, parts.path.rstrip("/"))
