"""Compiled kernels are kept in a folder named after all that they may import: an edit to any of it is never missed."""

import os
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent

if "NUMBA_CACHE_DIR" not in os.environ:
    package = ROOT / "src" / "locb"
    sources = sorted([*package.glob("*.py"), *package.glob("kernels/*.py")])
    fingerprint = zlib.crc32(b"".join(source.read_bytes() for source in sources))
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / f"{fingerprint:08x}")
