"""Scopes: the names of what a token allows. ``locb.service.api.routes`` states which scope each route needs."""

from typing import Literal, get_args

Scope = Literal["decide", "read", "delete"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALL = "all"  # stands for all scopes in a token file
