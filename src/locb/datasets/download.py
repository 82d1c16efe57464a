"""Download of MovieLens data from GroupLens."""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locb.common.validation import ParameterError

BASE_URL = "https://files.grouplens.org/datasets/movielens"
SIZES = ("ml-latest-small", "ml-latest", "ml-32m", "ml-25m", "ml-20m", "ml-10m", "ml-1m", "ml-100k")
TIMEOUT = 60.0  # seconds without data
LICENCE = (
    "MovieLens data is owned by GroupLens, University of Minnesota. It may be used for research, but not for "
    "commercial or revenue-bearing purposes without permission. Publications must acknowledge it and must not imply an "
    "endorsement. The README in the zip file has the full terms."
)


def download(
    size: str,
    folder: Path,
    *,
    base_url: str = BASE_URL,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Download a MovieLens zip file and return its path.

    The next call continues an interrupted download. The file name ends in ``.part`` until the file is complete and its
    MD5 checksum is equal to the published checksum. An existing zip file is not downloaded again.

    Parameters
    ----------
    size : str
        Name in ``SIZES``, such as "ml-latest-small".
    folder : Path
        Target folder. It is created if it does not exist.
    base_url : str, default "https://files.grouplens.org/datasets/movielens"
        Address of the folder with the zip files.
    progress : callable, optional
        Called with (bytes downloaded, total bytes) after each block of 256 KiB. The total is None if it is unknown.

    Raises
    ------
    ValueError
        If the size is unknown, or if the checksum is missing or wrong.
    OSError
        If the server cannot be reached, responds with an error or closes the connection, or if the file cannot be
        written.
    """
    if size not in SIZES:
        raise ParameterError("size", f" must be one of {', '.join(SIZES)}, not {size!r}")
    target = folder / f"{size}.zip"
    if target.exists():
        return target
    part = folder / f"{size}.zip.part"
    url = f"{base_url}/{size}.zip"
    text = _fetch(f"{url}.md5").decode("ascii", "replace")
    found = re.search(r"\b[0-9a-f]{32}\b", text)
    if found is None:
        raise ValueError(f"{url}.md5 must contain an MD5 checksum, not {text[:60]!r}; try again later")
    folder.mkdir(parents=True, exist_ok=True)
    _resume(url, part, progress)
    with part.open("rb") as stream:
        actual = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if actual != found[0]:
        part.unlink()
        raise ValueError(
            f"the download of {url} is damaged (MD5 {actual}, expected {found[0]}); the file was deleted, try again"
        )
    part.replace(target)
    return target


def _open(url: str, headers: dict[str, str]) -> Any:
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is set by the caller
        return urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310 - as above
    except urllib.error.HTTPError:
        raise
    except (urllib.error.URLError, OSError) as error:
        raise OSError(f"cannot reach {url} ({getattr(error, 'reason', error)}); check the network connection") from None


def _fetch(url: str) -> bytes:
    try:
        with _open(url, {}) as response:
            return bytes(response.read(4096))
    except urllib.error.HTTPError as error:
        raise OSError(
            f"{url}: the server answered with HTTP status {error.code} {error.reason}; try again later"
        ) from None


def _resume(url: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Download the bytes of ``url`` that the file ``part`` does not have yet, and append them to the file.

    If the server does not support ranges, the file is downloaded from the start.
    """
    done = part.stat().st_size if part.exists() else 0
    try:
        response = _open(url, {"Range": f"bytes={done}-"} if done else {})
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # 416 Range Not Satisfiable: the file is already complete
            return
        raise OSError(
            f"{url}: the server answered with HTTP status {error.code} {error.reason}; try again later"
        ) from None
    with response, part.open("ab") as out:
        if response.status != 206 and done:  # not 206 Partial Content: the server sends the file from the start
            out.truncate(0)
            done = 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        while block := response.read(1 << 18):
            out.write(block)
            done += len(block)
            if progress is not None:
                progress(done, total)
    if total is not None and done < total:
        raise OSError(f"{url}: connection lost after {done:,} of {total:,} bytes; repeat the command to continue")
