"""Stores of services as sources of logs, which the package ``locb.service`` reads.

Logs are in a lower layer than the service, so they cannot import the code that reads a store. The package ``locb``
sets that code here, as it sets the presenter of results (``locb.common.presentation``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

DATABASE = "log.db"  # the SQLite file in the data folder of a service
_SQLITE_HEADER = b"SQLite format 3\0"
_ADDRESS = re.compile(r"(postgres(?:ql)?|sqlite)(\+\w+)?:")
_load: Callable[[], Any] | None = None


def set_store_reader(load: Callable[[], Any]) -> None:
    """Set the function that imports and returns the module that reads stores. It is called on the first use."""
    global _load
    _load = load


def store_address(source: Any) -> str | None:
    """Return the address of the store that a source of a log names, or None if the source is not a store.

    A store is a data folder with the file ``log.db``, a SQLite file, or an address that starts with ``postgresql:`` or
    ``sqlite:``.
    """
    if isinstance(source, list | tuple):
        return store_address(source[0]) if len(source) == 1 else None
    if isinstance(source, str) and _ADDRESS.match(source):
        return source
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    if path.is_dir():
        path /= DATABASE
        return f"sqlite:///{path}" if path.is_file() else None
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return f"sqlite:///{path}" if file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER else None


def without_password(source: Any) -> str:
    """Return a source of a log as text, for messages. The password of an address is replaced by ``***``."""
    return re.sub(r"(:/+[^:/@]*):[^@/]*@", r"\1:***@", str(source))


def export_store(address: str, folder: Path) -> Path:
    """Write the decisions and rewards of a store, also of a running service, to a Parquet file in a folder.

    Return the path of the file. The store is only read, and not locked.

    Raises
    ------
    ValueError
        If the address is not that of a readable store, or a package is missing.
    """
    if _load is None:
        raise RuntimeError("no reader of stores is set; import locb first")
    try:
        path: Path = _load().export_store(address, folder)
    except ModuleNotFoundError as error:
        advice = "run pip install 'locb[service]'"
        raise ValueError(f"the store of a service needs the package {error.name}: {advice}") from error
    return path
