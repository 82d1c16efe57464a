"""Downloads from a local HTTP server."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from locb.datasets.download import download

DATA = bytes(range(256)) * 4000


class Server(BaseHTTPRequestHandler):
    """Serves a zip file with ranges and its checksum. It can truncate, ignore ranges, or give a wrong checksum."""

    cut_after: int | None = None
    ranges = True
    checksum = hashlib.md5(DATA).hexdigest()
    requested_ranges: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        if self.path.endswith(".md5"):
            self._respond(200, f"MD5 (ml-latest-small.zip) = {self.checksum}\n".encode())
        elif self.path == "/ml-latest-small.zip":
            wanted = self.headers.get("Range")
            self.requested_ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
            if start >= len(DATA):
                self._respond(416, b"")
                return
            self._respond(206 if start else 200, DATA[start:], self.cut_after)
        else:
            self._respond(404, b"")

    def _respond(self, code: int, body: bytes, cut: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def base_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Server, "requested_ranges", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_download_is_verified_and_not_repeated(base_url: str, tmp_path: Path) -> None:
    reported: list[tuple[int, int | None]] = []
    path = download(
        "ml-latest-small", tmp_path / "new", base_url=base_url, progress=lambda a, b: reported.append((a, b))
    )
    assert path.read_bytes() == DATA
    assert reported[-1] == (len(DATA), len(DATA))
    assert download("ml-latest-small", tmp_path / "new", base_url="http://127.0.0.1:9") == path
    assert [file.name for file in path.parent.iterdir()] == ["ml-latest-small.zip"]


@pytest.mark.parametrize("ranges", [True, False])
def test_interrupted_download_continues(
    ranges: bool, base_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "cut_after", 300_000)
    with pytest.raises(OSError, match="connection lost after 300,000 of 1,024,000 bytes; repeat the command"):
        download("ml-latest-small", tmp_path, base_url=base_url)
    assert not (tmp_path / "ml-latest-small.zip").exists()
    monkeypatch.setattr(Server, "cut_after", None)
    monkeypatch.setattr(Server, "ranges", ranges)
    assert download("ml-latest-small", tmp_path, base_url=base_url).read_bytes() == DATA
    assert Server.requested_ranges == [None, "bytes=300000-"]


def test_complete_part_is_not_downloaded_again(base_url: str, tmp_path: Path) -> None:
    (tmp_path / "ml-latest-small.zip.part").write_bytes(DATA)
    assert download("ml-latest-small", tmp_path, base_url=base_url).read_bytes() == DATA


def test_wrong_checksum_is_refused(base_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "checksum", "0" * 32)
    with pytest.raises(ValueError, match="the download of .* is damaged .* the file was deleted, try again"):
        download("ml-latest-small", tmp_path, base_url=base_url)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Server, "checksum", "none")
    with pytest.raises(ValueError, match="must contain an MD5 checksum"):
        download("ml-latest-small", tmp_path, base_url=base_url)


def test_unreachable_server_and_missing_file(base_url: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot reach http://127\.0\.0\.1:9/ml-1m\.zip\.md5"):
        download("ml-1m", tmp_path, base_url="http://127.0.0.1:9")
    with pytest.raises(OSError, match="HTTP status 404"):
        download("ml-1m", tmp_path, base_url=base_url)
    with pytest.raises(ValueError, match="must be one of ml-latest-small, .* not 'ml-9'"):
        download("ml-9", tmp_path, base_url=base_url)
