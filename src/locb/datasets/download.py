"""Fetch MovieLens from its publisher: resumable, checked against the publisher's checksum."""

from __future__ import annotations

import hashlib
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PUBLISHER = "https://files.grouplens.org/datasets/movielens"
SIZES = ("ml-latest-small", "ml-latest", "ml-32m", "ml-25m", "ml-20m", "ml-10m", "ml-1m", "ml-100k")
LICENCE = (
    "MovieLens data are GroupLens's, University of Minnesota: for research, not for commercial or revenue-bearing use "
    "without permission; acknowledge them in publications; no endorsement may be implied. The README in the zip has "
    "the full terms."
)


def download(
    size: str,
    folder: Path,
    *,
    publisher: str = PUBLISHER,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """The publisher's zip of this size, in ``folder``.

    A download that was cut off goes on where it stopped. The file gets its name only when it is complete and its MD5 is
    the one that the publisher gives. ``progress`` is told (bytes here, bytes in all, None if unknown).
    """
    if size not in SIZES:
        raise ValueError(f"--download must be one of {', '.join(SIZES)}, not {size!r}")
    target = folder / f"{size}.zip"
    if target.exists():
        return target
    part = folder / f"{size}.zip.part"
    address = f"{publisher}/{size}.zip"
    told = _fetch(f"{address}.md5").decode("ascii", "replace")
    found = re.search(r"\b[0-9a-f]{32}\b", told)
    if found is None:
        raise ValueError(f"{address}.md5 holds no checksum: {told[:60]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    _resume(address, part, progress)
    with part.open("rb") as stream:
        actual = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if actual != found[0]:
        part.unlink()
        raise ValueError(f"{address} arrived damaged (MD5 {actual}, not {found[0]}); it was removed, try again")
    part.replace(target)
    return target


def _open(address: str, headers: dict[str, str]) -> Any:
    try:
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the address is ours or the caller's
        return urllib.request.urlopen(request, timeout=60)  # noqa: S310 - as above
    except urllib.error.HTTPError:
        raise
    except (urllib.error.URLError, OSError) as error:
        raise OSError(f"cannot reach {address}: {getattr(error, 'reason', error)}") from None


def _fetch(address: str) -> bytes:
    try:
        with _open(address, {}) as answer:
            return bytes(answer.read(4096))
    except urllib.error.HTTPError as error:
        raise OSError(f"{address} answers {error.code} {error.reason}") from None


def _resume(address: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Append what is missing."""
    here = part.stat().st_size if part.exists() else 0
    try:
        answer = _open(address, {"Range": f"bytes={here}-"} if here else {})
    except urllib.error.HTTPError as error:
        if error.code == 416 and here:  # nothing is missing
            return
        raise OSError(f"{address} answers {error.code} {error.reason}") from None
    with answer, part.open("ab") as out:
        if answer.status != 206 and here:  # the publisher does not resume: from the start
            out.truncate(0)
            here = 0
        length = answer.headers.get("Content-Length")
        total = here + int(length) if length else None
        while block := answer.read(1 << 18):
            out.write(block)
            here += len(block)
            if progress is not None:
                progress(here, total)
    if total is not None and here < total:
        raise OSError(f"{address} was cut off after {here:,} of {total:,} bytes; the same command goes on from there")
