"""Location of the cache directory, for data that can be recomputed or downloaded again."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the cache directory: ``$LOCB_CACHE`` if set, else ``$XDG_CACHE_HOME/locb``, else ``~/.cache/locb``."""
    if path := os.environ.get("LOCB_CACHE"):
        return Path(path)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "locb"
