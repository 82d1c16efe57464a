"""Fixtures that call Client and AsyncClient in the same way."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locb.client import AsyncClient, Client

FAST_RETRIES = {"retries": 4, "timeout": 2.0, "total": 10.0}

# Calls a method by name on either client and returns its result.
Call = Callable[..., Any]


@pytest.fixture(params=[Client, AsyncClient])
def calling(request: pytest.FixtureRequest) -> Callable[..., Call]:
    def make(url: str, **settings: Any) -> Call:
        settings = {**FAST_RETRIES, **settings}

        def call(name: str, *arguments: Any, **keywords: Any) -> Any:
            if request.param is Client:
                with Client(url, **settings) as client:
                    return getattr(client, name)(*arguments, **keywords)

            async def main() -> Any:
                async with AsyncClient(url, **settings) as client:
                    return await getattr(client, name)(*arguments, **keywords)

            return asyncio.run(main())

        return call

    return make
