"""Test configuration: cache directories for compiled kernels and other data.

The directory of compiled kernels is named after a checksum of all sources that kernels may import, so that no edit is
missed. (Numba itself checks only the file of the entry point.)
"""

import os
import zlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".numba_cache"

# Separate from the user's cache, but shared by all test runs, because building the chart library takes time.
os.environ.setdefault("LOCB_CACHE", str(CACHE / "locb"))

if "NUMBA_CACHE_DIR" not in os.environ:
    package = ROOT / "src" / "locb"
    sources = sorted(path for name in ("kernels", "common", "evaluation") for path in (package / name).rglob("*.py"))
    checksum = zlib.crc32(b"".join(source.read_bytes() for source in sources))
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE / f"{checksum:08x}")
