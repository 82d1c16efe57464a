"""One browser and one seeded service for all tests of a module."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser
from seeded import DIM, seed

from browsing import browser as one_browser
from locb.report.charts import vega_bundle as bundle
from serving import serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with one_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def drawing() -> Path:
    """What pages draw with, made once for all runs of the tests and kept beside the compiled kernels."""
    kept = Path(os.environ["NUMBA_CACHE_DIR"]) / f"page-{bundle.cache_key()}"
    if not kept.exists():
        bundle.make(kept)
    return kept


@pytest.fixture(scope="module")
def client(browser: Browser, drawing: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Asks a service that has learned something."""
    folder: Path = tmp_path_factory.mktemp("seeded")
    shutil.copytree(drawing, folder / drawing.name)
    parameters = {"gamma": 0.42, "n_seeds": 9, "alpha": 0.4}
    with serving(folder, policy="locb", dim=DIM, parameters=parameters) as (client, _):
        seed(client)
        yield client
