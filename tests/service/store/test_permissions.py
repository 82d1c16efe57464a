"""Access rights of the data folder: new files are private, and existing files that others can read cause a warning."""

import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from locb.report.charts import vega_bundle
from locb.service.config import ServiceConfig
from locb.service.core.service import Service
from locb.service.dashboard.page_files import ChartFiles
from serving import arms, serving


def rights(folder: Path) -> dict[str, int]:
    """Return the access rights of a folder and of everything in it, by path."""
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}


@pytest.fixture
def ordinary_umask() -> Iterator[None]:
    """Let other users read new files, unless the service prevents that."""
    previous = os.umask(0o022)
    yield
    os.umask(previous)


@pytest.mark.usefixtures("ordinary_umask")
@pytest.mark.parametrize("url", [None, "sqlite:///{folder}/another/name.db"])
def test_new_files_are_private(tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str | None) -> None:
    folder, another = tmp_path / "state", tmp_path / "another"
    another.mkdir()
    store = None if url is None else url.format(folder=tmp_path)
    with caplog.at_level(logging.WARNING), serving(folder, store=store) as (client, _):
        client.post("/v1/recommend", json={"user": "ann", "arms": arms([1, 0, 0])}).raise_for_status()
        found = rights(folder) | rights(another)
    found |= rights(folder)  # with the snapshot of the shutdown
    del found["."]
    assert len(found) >= 5
    assert {path: mode for path, mode in found.items() if mode & 0o077} == {}
    assert "other users" not in caplog.text


@pytest.mark.usefixtures("ordinary_umask")
def test_chart_files_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, folder = tmp_path / "cache", tmp_path / "state"
    cache.mkdir()
    folder.mkdir(mode=0o700)
    for name in (vega_bundle.SCRIPT, vega_bundle.CHARTS):
        (cache / name).write_text("content")
    monkeypatch.setattr(vega_bundle, "_cached_folder", lambda: cache)
    ChartFiles(folder).prepare()
    found = rights(folder)
    assert len(found) == 4
    assert {path: mode for path, mode in found.items() if mode & 0o077} == {}


@pytest.mark.usefixtures("ordinary_umask")
@pytest.mark.parametrize(("name", "mode"), [(".", 0o755), ("log.db", 0o644), ("snapshots", 0o710), ("lock", 0o660)])
def test_warning_for_files_that_others_can_access(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, mode: int
) -> None:
    folder = tmp_path / "state"
    config = ServiceConfig(folder, dim=3, policy="linucb-ind")
    Service(config).log.close()
    (folder / name).chmod(mode)
    with caplog.at_level(logging.WARNING):
        Service(config).log.close()
    assert f"other users can access {folder / name}; to prevent that, run: chmod -R go= {folder}" in caplog.text
    assert rights(folder)[name] == mode  # not changed


@pytest.mark.usefixtures("ordinary_umask")
def test_advice_covers_a_database_outside_the_data_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, database = tmp_path / "state", tmp_path / "another folder" / "name.db"
    database.parent.mkdir()
    config = ServiceConfig(folder, f"sqlite:///{database}", dim=3, policy="linucb-ind")
    for path, advised in ((database, f"'{database}'"), (folder, str(folder))):
        Service(config).log.close()
        path.chmod(0o755)
        with caplog.at_level(logging.WARNING):
            Service(config).log.close()
        assert f"other users can access {path}; to prevent that, run: chmod -R go= {advised}" in caplog.text
        command = caplog.text.partition("run: ")[2].strip()
        subprocess.run(command, shell=True, check=True)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            Service(config).log.close()
        assert caplog.text == ""
