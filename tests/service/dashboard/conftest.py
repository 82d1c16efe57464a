"""A service with data for the tests of the dashboard's views, without caching."""

from collections.abc import Iterator
from typing import Any

import pytest
from dashboard_data import LOCB, TTLS, play

from locb.service.core.service import Service
from locb.service.dashboard import certificate_cache, views
from serving import serving


@pytest.fixture(scope="module", autouse=True)
def no_caching() -> Iterator[None]:
    """Disable the caches, except in tests that set them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate_cache, "MAX_AGE", 0.0)
        for name in TTLS:
            patch.setattr(views, name, 0.0)
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, no_caching: None) -> Iterator[tuple[Any, Service]]:
    """Client and service for tests that erase no user."""
    with serving(tmp_path_factory.mktemp("state"), **LOCB) as (client, service):
        for seed in range(8):
            play(client, 60, seed=seed)
        yield client, service
