"""Files of the dashboard page, and the files that draw its charts."""

import gzip
import re
import sys
from pathlib import Path

import pytest

from locb.report.charts import vega_bundle
from locb.service.api.auth import Tokens
from locb.service.dashboard.page_files import CONTENT_TYPES, GENERATED_FILES, PAGE_FOLDER, SHARED_FILES, SHARED_FOLDER
from serving import serving, wait_for

PATHS = (*PAGE_FOLDER.iterdir(), *(SHARED_FOLDER / name for name in SHARED_FILES))
FILES = {path.name: path for path in PATHS if path.suffix in CONTENT_TYPES}


def test_files_need_no_token_and_have_a_strict_policy(tmp_path: Path) -> None:
    with serving(tmp_path / "state", Tokens({"t" * 16: frozenset({"read"})})) as (client, _):
        index = client.get("/")
        for path in ("/", *(f"/page/{name}" for name in [*FILES, *GENERATED_FILES])):
            response = client.get(path)
            assert response.status_code == 200, path
            policy = response.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert not re.search(r"unsafe|\*|https?:", policy)
            assert response.headers["x-content-type-options"] == "nosniff"
            repeated = client.get(path, headers={"if-none-match": response.headers["etag"]})
            assert (repeated.status_code, repeated.content) == (304, b"")
        assert index.headers["content-type"].startswith("text/html")
        linked = re.findall(r'(?:src|href)="(/[^"]*)"', index.text)
        assert len(linked) >= 4
        assert {client.get(path).status_code for path in linked} == {200}
        assert (PAGE_FOLDER / ".." / "page_files.py").is_file()
        for path in ("/page/nothing.js", "/page/..%2Fpage_files.py", "/page/%2e%2e%2fpage_files.py", "/page/"):
            assert client.get(path).status_code == 404
        assert client.post("/").status_code == 405
        assert client.get("/v1/status").status_code == 401


def test_without_tokens_only_local_requests_get_the_page(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as (client, _):
        assert client.get("/").text.startswith("<!doctype html>")
        for name, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
            refused = client.get("/", headers={name: value})
            assert refused.status_code == 403
            detail = refused.json()["detail"]
            assert detail.startswith(f"this service has no tokens: the {name} header must ")
            assert f"not '{value}'" in detail


def test_scripts_import_existing_files_and_no_other_host() -> None:
    scripts: set[str] = set()
    for name, path in FILES.items():
        text = path.read_text("utf-8")
        assert set(re.findall(r"https?://[^\s\"'<)]*", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert max(map(len, text.splitlines())) <= 120 or path.suffix == ".svg", name
        imported = re.findall(r'^import [^;]* from "\./([\w.]+)";$', text, re.MULTILINE)
        assert set(imported) <= FILES.keys() | GENERATED_FILES.keys(), name
        assert len(imported) == len(re.findall(r"^\s*import\b", text, re.MULTILINE)), name
        scripts |= set(imported)
    panels = {"groups_panel.js", "map_panel.js", "status_panel.js", "user_panel.js"}
    assert scripts >= {"api.js", "charts.js", "sentences.js"} | panels


def test_chart_files_are_built_once_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "state"
    (folder / "page-old").mkdir(parents=True)
    with serving(folder) as (client, _):
        building = client.get("/page/charts.json")
        assert (building.status_code, building.content) == (202, b"null")
        wait_for(lambda: client.get("/page/charts.json").status_code == 200, 300.0)
        charts = client.get("/page/charts.json").json()
        script = client.get("/page/vega.js")
        assert "vegaEmbed" in script.text
        assert script.headers["content-encoding"] == "gzip"
    assert set(charts["themes"]) == {"light", "dark"}
    cached = folder / f"page-{vega_bundle.cache_key()}"
    assert list(folder.glob("page-*")) == [cached]
    assert gzip.decompress((cached / vega_bundle.SCRIPT).read_bytes()).decode() == script.text
    before = cached.stat().st_mtime_ns
    with serving(folder) as (client, _):
        assert client.get("/page/vega.js").status_code == 200
    assert cached.stat().st_mtime_ns == before
    with serving(tmp_path / "another") as (client, _):  # another service on this machine uses the cache
        assert client.get("/page/vega.js").status_code == 200
        assert client.get("/page/charts.json").json() == charts


@pytest.mark.parametrize("cache", ["file/below", "folder"])
def test_chart_files_are_built_without_a_cache(tmp_path: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / cache))
    monkeypatch.setattr(vega_bundle, "_create_script", lambda: "a script")
    assert vega_bundle.vega_script() == "a script"
    vega_bundle.make(tmp_path / "built")
    assert gzip.decompress((tmp_path / "built" / vega_bundle.SCRIPT).read_bytes()) == b"a script"
    assert vega_bundle.copy(tmp_path / "copied") == (cache == "folder")


def test_failure_to_build_chart_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with serving(tmp_path / "state") as (client, _):
        assert client.get("/page/vega.js").status_code == 202
        wait_for(lambda: client.get("/page/vega.js").status_code == 500)
        problem = client.get("/page/charts.json").json()
        assert "could not be built (the process exited with status 1)" in problem["detail"]
        assert client.get("/").status_code == 200
