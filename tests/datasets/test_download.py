"""Downloads against a publisher of our own on loopback."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from locb.datasets.download import download

DATA = bytes(range(256)) * 4000


class Publisher(BaseHTTPRequestHandler):
    """Serves a zip with ranges and its checksum; may cut off, refuse ranges, or give a wrong checksum."""

    cut_after: int | None = None
    ranges = True
    checksum = hashlib.md5(DATA).hexdigest()
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        if self.path.endswith(".md5"):
            self._answer(200, f"MD5 (ml-latest-small.zip) = {self.checksum}\n".encode())
        elif self.path == "/ml-latest-small.zip":
            wanted = self.headers.get("Range")
            self.asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
            if start >= len(DATA):
                self._answer(416, b"")
                return
            self._answer(206 if start else 200, DATA[start:], self.cut_after)
        else:
            self._answer(404, b"")

    def _answer(self, code: int, body: bytes, cut: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Publisher, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_checked_told_and_not_repeated(publisher: str, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    path = download("ml-latest-small", tmp_path / "new", publisher=publisher, progress=lambda a, b: told.append((a, b)))
    assert path.read_bytes() == DATA
    assert told[-1] == (len(DATA), len(DATA))
    assert download("ml-latest-small", tmp_path / "new", publisher="http://127.0.0.1:9") == path
    assert [file.name for file in path.parent.iterdir()] == ["ml-latest-small.zip"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_was_cut_off_goes_on(
    ranges: bool, publisher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Publisher, "cut_after", 300_000)
    with pytest.raises(OSError, match="cut off after 300,000 of 1,024,000 bytes; the same command goes on"):
        download("ml-latest-small", tmp_path, publisher=publisher)
    assert not (tmp_path / "ml-latest-small.zip").exists()
    monkeypatch.setattr(Publisher, "cut_after", None)
    monkeypatch.setattr(Publisher, "ranges", ranges)
    assert download("ml-latest-small", tmp_path, publisher=publisher).read_bytes() == DATA
    assert Publisher.asked == [None, "bytes=300000-"]


def test_a_whole_part_is_not_fetched_again(publisher: str, tmp_path: Path) -> None:
    (tmp_path / "ml-latest-small.zip.part").write_bytes(DATA)
    assert download("ml-latest-small", tmp_path, publisher=publisher).read_bytes() == DATA


def test_a_wrong_checksum_is_refused(publisher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Publisher, "checksum", "0" * 32)
    with pytest.raises(ValueError, match="arrived damaged .* it was removed, try again"):
        download("ml-latest-small", tmp_path, publisher=publisher)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Publisher, "checksum", "none")
    with pytest.raises(ValueError, match="holds no checksum"):
        download("ml-latest-small", tmp_path, publisher=publisher)


def test_no_network_and_no_such_file_are_told(publisher: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"cannot reach http://127\.0\.0\.1:9/ml-1m\.zip\.md5"):
        download("ml-1m", tmp_path, publisher="http://127.0.0.1:9")
    with pytest.raises(OSError, match="answers 404"):
        download("ml-1m", tmp_path, publisher=publisher)
    with pytest.raises(ValueError, match="must be one of ml-latest-small, .* not 'ml-9'"):
        download("ml-9", tmp_path, publisher=publisher)
