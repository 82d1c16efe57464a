"""One browser and one service with sample data for all tests of a module."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser
from sample_data import DIM, add_sample_data

from browser import launch_browser
from locb.report.charts import vega_bundle
from serving import serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch_browser() as browser:
        yield browser


@contextmanager
def serving_sample_data(folder: Path, **options: Any) -> Iterator[httpx.Client]:
    """Provide a client of a service with sample data and the files that draw the charts."""
    vega_bundle.make(folder / f"page-{vega_bundle.cache_key()}")
    with serving(folder, dim=DIM, **options) as (client, _):
        add_sample_data(client)
        yield client


@pytest.fixture(scope="module")
def client(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Client of a service with LOCB."""
    parameters = {"gamma": 0.42, "n_seeds": 9, "alpha": 0.4}
    with serving_sample_data(tmp_path_factory.mktemp("state"), policy="locb", parameters=parameters) as client:
        yield client


@pytest.fixture(scope="module")
def default_client(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Client of a service with the default policy, which reports membership probabilities."""
    with serving_sample_data(tmp_path_factory.mktemp("state"), policy=None) as client:
        yield client
