"""The files of the page: who gets them, how, and what they are drawn with."""

import gzip
import re
import sys
from pathlib import Path

import pytest

from locb.report.charts import vega_bundle as bundle
from locb.service.api.auth import Tokens
from locb.service.dashboard.page_files import CONTENT_TYPES, PAGE_FOLDER, SHARED_FILES, SHARED_FOLDER
from serving import serving, wait_for

PATHS = (*PAGE_FOLDER.iterdir(), *(SHARED_FOLDER / name for name in SHARED_FILES))
FILES = {path.name: path for path in PATHS if path.suffix in CONTENT_TYPES}


def test_the_files_need_no_token_and_allow_nothing_from_elsewhere(tmp_path: Path) -> None:
    with serving(tmp_path / "state", Tokens({"t" * 16: frozenset({"read"})})) as (client, _):
        first = client.get("/")
        for path in ("/", *(f"/page/{name}" for name in FILES)):
            answer = client.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert not re.search(r"unsafe|\*|https?:", policy)
            assert answer.headers["x-content-type-options"] == "nosniff"
            again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert first.headers["content-type"].startswith("text/html")
        wanted = re.findall(r'(?:src|href)="(/[^"]*)"', first.text)
        assert len(wanted) >= 4
        assert {client.get(path).status_code for path in wanted} == {200}
        for path in ("/page/nothing.js", "/page/..%2Fweb%2Fapp.py", "/page/%2e%2e", "/page/"):
            assert client.get(path).status_code == 404
        assert client.post("/").status_code == 405
        assert client.get("/v1/status").status_code == 401


def test_without_tokens_only_this_machine_gets_the_page(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as (client, _):
        assert client.get("/", headers={"host": "evil.example"}).status_code == 403


def test_scripts_import_what_is_there_and_name_no_other_host() -> None:
    for name, path in FILES.items():
        text = path.read_text("utf-8")
        assert set(re.findall(r"https?://[^\s\"'<)]*", text)) <= {"http://www.w3.org/2000/svg"}, name
        assert max(map(len, text.splitlines())) <= 120 or path.suffix == ".svg", name
        assert set(re.findall(r'from "\./([\w.]+)"', text)) <= FILES.keys(), name


def test_what_draws_is_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "state"
    (folder / "page-old").mkdir(parents=True)
    with serving(folder) as (client, _):
        waiting = client.get("/page/charts.json")
        assert (waiting.status_code, waiting.content) == (202, b"null")
        wait_for(lambda: client.get("/page/charts.json").status_code == 200, 60.0)
        described = client.get("/page/charts.json").json()
        script = client.get("/page/vega.js")
        assert "vegaEmbed" in script.text
        assert script.headers["content-encoding"] == "gzip"
    assert set(described["themes"]) == {"light", "dark"}
    kept = folder / f"page-{bundle.cache_key()}"
    assert list(folder.glob("page-*")) == [kept]
    assert gzip.decompress((kept / bundle.SCRIPT).read_bytes()).decode() == script.text
    before = kept.stat().st_mtime_ns
    with serving(folder) as (client, _):
        assert client.get("/page/vega.js").status_code == 200
    assert kept.stat().st_mtime_ns == before
    with serving(tmp_path / "another") as (client, _):  # another service of this machine has it at once
        assert client.get("/page/vega.js").status_code == 200
        assert client.get("/page/charts.json").json() == described


@pytest.mark.parametrize("place", ["file/below", "folder"])
def test_what_draws_needs_no_folder_for_what_is_kept(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / place))
    monkeypatch.setattr(bundle, "_create_script", lambda: "a script")
    assert bundle.vega_script() == "a script"
    bundle.make(tmp_path / "made")
    assert gzip.decompress((tmp_path / "made" / bundle.SCRIPT).read_bytes()) == b"a script"
    assert bundle.copy(tmp_path / "copied") == (place == "folder")


def test_what_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with serving(tmp_path / "state") as (client, _):
        assert client.get("/page/vega.js").status_code == 202
        wait_for(lambda: client.get("/page/vega.js").status_code == 500)
        problem = client.get("/page/charts.json").json()
        assert "could not be built: the process exited with status 1" in problem["detail"]
        assert client.get("/").status_code == 200
