"""One browser and one service with sample data for all tests of a module."""

from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="module")
def client(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Client of a service with sample data and the files that draw the charts."""
    folder: Path = tmp_path_factory.mktemp("state")
    vega_bundle.make(folder / f"page-{vega_bundle.cache_key()}")
    parameters = {"gamma": 0.42, "n_seeds": 9, "alpha": 0.4}
    with serving(folder, policy="locb", dim=DIM, parameters=parameters) as (client, _):
        add_sample_data(client)
        yield client
