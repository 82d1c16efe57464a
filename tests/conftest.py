"""Compiled kernels are kept in a folder named after all that they may import: an edit to any of it is never missed."""

import os
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / ".numba_cache"

# Not the user's own; but what pages are drawn with is made once for all tests.
os.environ.setdefault("LOCB_CACHE", str(KEPT / "locb"))

if "NUMBA_CACHE_DIR" not in os.environ:
    package = ROOT / "src" / "locb"
    sources = sorted(path for name in ("kernels", "common", "evaluation") for path in (package / name).rglob("*.py"))
    fingerprint = zlib.crc32(b"".join(source.read_bytes() for source in sources))
    os.environ["NUMBA_CACHE_DIR"] = str(KEPT / f"{fingerprint:08x}")
