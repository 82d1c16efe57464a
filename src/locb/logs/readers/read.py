"""Reading of logs: finds the format of a source and calls its reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from locb.common.live_store import export_store, store_address
from locb.common.validation import ParameterError, check_choice
from locb.datasets.source_files import Source
from locb.datasets.table_files import file_suffix
from locb.logs.log import Log
from locb.logs.readers.columns import TableOptions

FORMATS = ("auto", "table", "dsjson", "open-bandit", "yahoo", "store")
OPEN_BANDIT_COLUMNS = ("item_id", "position", "click", "propensity_score")


def read_log(source: Any, log_format: str, options: dict[str, Any]) -> Log:
    """Read a log; see :meth:`locb.Log.read`."""
    check_choice("format", log_format, FORMATS)
    address = store_address(source)
    if log_format in ("auto", "store") and address is not None:
        return _read_store(address, make_options(TableOptions, options, "store"))
    if log_format == "store":
        stores = "a data folder with log.db, a SQLite file, or an address such as postgresql://user@host/name"
        raise ParameterError("format", f" 'store' needs {stores}, not {source!r}")
    is_path = isinstance(source, str | Path) or (isinstance(source, list | tuple) and len(source) > 0)
    if not is_path:
        if log_format not in ("auto", "table"):
            raise ParameterError("format", f" must be 'auto' or 'table' for a data frame, not {log_format!r}")
        from locb.logs.readers.table_logs import read_table

        return read_table(source, make_options(TableOptions, options, "table"))
    files = find_files(source)
    found = detect_format(files) if log_format == "auto" else log_format
    if found == "dsjson":
        from locb.logs.readers.dsjson import DsjsonOptions, read_dsjson

        return read_dsjson(files, make_options(DsjsonOptions, options, found))
    if found == "open-bandit":
        from locb.logs.readers.open_bandit import OpenBanditOptions, read_open_bandit

        return read_open_bandit(files, make_options(OpenBanditOptions, options, found))
    if found == "yahoo":
        from locb.logs.readers.yahoo_visits import YahooOptions, read_yahoo

        return read_yahoo(files, make_options(YahooOptions, options, found))
    from locb.logs.readers.table_logs import read_table

    return read_table(files, make_options(TableOptions, options, found))


def _read_store(address: str, options: TableOptions) -> Log:
    """Read the store of a service, as its export, in a temporary folder."""
    from locb.logs.readers.table_logs import read_table

    with TemporaryDirectory(prefix="locb-") as folder:
        return read_table([export_store(address, Path(folder))], options)


def make_options(kind: Any, options: dict[str, Any], log_format: str) -> Any:
    """Return the options of a reader, of the type ``kind``. Raise a ValueError if the reader lacks one of them."""
    for name in options:
        if name not in kind.__dataclass_fields__:
            allowed = ", ".join(kind.__dataclass_fields__)
            raise ParameterError(name, f" is not an option of the format {log_format!r}; its options are {allowed}")
    return kind(**options)


def detect_format(files: list[Path]) -> str:
    """Return the format of log files, from the name and the first line of the first file."""
    first = next((file for file in files if file.name != "item_context.csv"), files[0])
    if first.name.startswith("ydata-fp-td-clicks"):
        return "yahoo"
    source = Source(first)
    suffix = file_suffix(source)
    if suffix == ".parquet":
        return "table"
    with source.open() as stream:
        line = next((line for line in stream if line.strip()), b"")
    if suffix in (".dsjson", ".json", ".jsonl", ".ndjson", ".log"):
        try:
            fields = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return "dsjson" if suffix == ".dsjson" else "table"
        if isinstance(fields, dict) and "_label_cost" in fields and "c" in fields:
            return "dsjson"
    header = line.decode("utf-8-sig", "replace").strip().replace('"', "").split(",")
    return "open-bandit" if all(name in header for name in OPEN_BANDIT_COLUMNS) else "table"


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files of a path: the file, the files of a folder, or the files that match a pattern.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    paths = [source] if isinstance(source, str | Path) else list(source)
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
        elif path.exists():
            found = [path]
        else:
            found = sorted(Path(path.anchor or ".").glob(str(path.relative_to(path.anchor))))
        if not found:
            raise FileNotFoundError(2, "Folder has no files" if path.is_dir() else "Log does not exist", str(path))
        files += found
    return files
