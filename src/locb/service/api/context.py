"""``AppContext``: the objects that all request handlers share."""

from __future__ import annotations

import asyncio

from locb.service.api.auth import Authorizer, Tokens
from locb.service.api.limits import Limits
from locb.service.api.metrics import Metrics
from locb.service.core.service import Service
from locb.service.dashboard.views import Views
from locb.service.request_parsing import make_collision_check


class AppContext:
    """A service with its tokens, limits, metrics and dashboard views."""

    def __init__(self, service: Service, tokens: Tokens) -> None:
        self.service = service
        self.tokens = tokens
        self.authorizer = Authorizer(tokens, service.config.max_failed_tokens)
        self.limits = Limits(service.config.max_in_flight, service.config.max_body, service.config.max_feature_names)
        self.metrics = Metrics(service, self.limits)
        self.views = Views(service)
        self.collisions = make_collision_check()
        self.parsing = asyncio.Lock()  # held while a large request is parsed
