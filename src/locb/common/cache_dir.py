"""Where what can be made again is kept."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """$LOCB_CACHE, or locb in the user's cache folder."""
    if own := os.environ.get("LOCB_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "locb"
