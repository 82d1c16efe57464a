"""Writing of groups of users with similar preferences to a folder: report.html and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from locb.logs.groups.user_groups import UserGroups
from locb.report.pages.groups_page import render_groups_page


def write_groups(found: UserGroups, folder: Path, *, as_csv: bool = False) -> list[Path]:
    """Write report.html and the tables of groups to a folder, and return their paths.

    The tables of users and memberships are Parquet files, or CSV files if ``as_csv`` is True. The smaller tables are
    always CSV files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "report.html"]
    written[0].write_text(render_groups_page(found), encoding="utf-8")
    for name in ("users", "memberships"):
        path = folder / f"{name}.{'csv' if as_csv else 'parquet'}"
        table = getattr(found, name)
        if as_csv:
            table.write_csv(path)
        else:
            table.write_parquet(path)
        written.append(path)
    for name in ("groups", "likes", "gammas"):
        path = folder / f"{name}.csv"
        path.unlink(missing_ok=True)  # of an earlier run
        if getattr(found, name).height:
            getattr(found, name).write_csv(path)
            written.append(path)
    record = folder / "groups.json"
    content: dict[str, Any] = {"summary": found.summary(), "settings": found.settings, "columns": found.columns}
    content |= {"skipped": [str(rows) for rows in found.skipped], "notes": list(found.notes)}
    record.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return [*written, record]
