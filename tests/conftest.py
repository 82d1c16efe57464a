"""Compiled kernels are kept in a folder named after their sources: an edit to any of them is never missed."""

import os
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent

if "NUMBA_CACHE_DIR" not in os.environ:
    sources = sorted((ROOT / "src" / "locb").rglob("*.py"))
    fingerprint = zlib.crc32(b"".join(source.read_bytes() for source in sources))
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / f"{fingerprint:08x}")
