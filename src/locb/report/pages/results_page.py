"""The page of results in the documentation, written from CSV files alone: of a reproduction, a verification, worlds.

    python -m locb.report.pages.results_page REPRODUCTION VERIFICATION WORLDS DOCS

copies the CSV files and figures of the three folders to DOCS/results and writes DOCS/results.md from them.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections import Counter
from pathlib import Path

from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED
from locb.report.findings_folder import RULE
from locb.report.tables.result_table import from_csv, to_markdown

PARTS = {
    "reproduce": "The paper's evaluation",
    "verify": "The paper's theorems",
    "worlds": "Policies in many worlds",
}
NOT_OF_DATA = ("coverage", "correctness", "termination", "growth", "matrix")  # sections that are not about a data set
MARKS = {HOLDS: "holds", FAILS: "**does not hold**", UNDECIDED: "undecided"}


def render(results: Path) -> str:
    """The page, from results/*/*.csv."""
    parts = {name: results / name for name in PARTS if (results / name / "claims.csv").exists()}
    claims = {name: _rows(folder / "claims.csv") for name, folder in parts.items()}
    total = Counter(row["verdict"] for rows in claims.values() for row in rows)
    own = sum(row["source"].startswith("not in the paper") for rows in claims.values() for row in rows)
    lines = [
        "# Results",
        "",
        "What was reproduced of the paper, what was not, and why. This page is written from the CSV files in",
        "[results/](results) by `make results`, and a test compares the two; no figure in it was typed.",
        "",
        f"Claims: {total[HOLDS]} hold, {total[FAILS]} do not hold, {total[UNDECIDED]} are undecided. Of",
        f"all {sum(total.values())}, {own} are not the paper's but ours, and say so. {RULE}",
    ]
    lines += ["", "## In short", "", *_in_short(claims)]
    for name, folder in parts.items():
        lines += ["", f"## {PARTS[name]}", "", *_render_part(name, folder, claims[name])]
    return "\n".join(lines) + "\n"


def _in_short(claims: dict[str, list[dict[str, str]]]) -> list[str]:
    """For every data set, and for the theorems, what holds and what does not, in the claims' own words, and why."""
    groups: dict[str, list[dict[str, str]]] = {}
    for part, rows in claims.items():
        for row in rows:
            groups.setdefault(f"On {row['data'].split(',')[0]}" if part == "reproduce" else PARTS[part], []).append(row)
    lines: list[str] = []
    for name, rows in groups.items():
        count = Counter(row["verdict"] for row in rows)
        lines += [f"**{name}**: {count[HOLDS]} of {len(rows)} claims hold.", ""]
        for verdict in (HOLDS, FAILS, UNDECIDED):
            told: dict[str, list[str]] = {}
            for row in rows:
                if row["verdict"] == verdict:
                    told.setdefault(row["claim"], []).append(_where(row))
            if told:
                lines.append(f"- {verdict.capitalize()}:")
                lines += [f"  - {claim}{_places(places)}" for claim, places in told.items()]
        lines.append("")
    return lines[:-1]


def _where(row: dict[str, str]) -> str:
    """The setting of a claim beyond its data set, with the reason that is known."""
    setting = row["data"].partition(", ")[2] if row["section"] not in NOT_OF_DATA else row["data"]
    return ": ".join(text for text in (setting, row["explanation"] if row["verdict"] != HOLDS else "") if text)


def _places(places: list[str]) -> str:
    told = "; ".join(place.rstrip(".") for place in places if place)
    return f" ({told})" if told else ""


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _render_part(part: str, folder: Path, claims: list[dict[str, str]]) -> list[str]:
    lines: list[str] = []
    contents = _rows(folder / "contents.csv")
    for row in contents:
        if row["kind"] == "note":
            lines += [row["note"], ""]
    for row in contents:
        if row["kind"] == "section":
            lines += [f"### {row['title']}", ""]
            found = [claim for claim in claims if claim["section"] == row["name"]]
            if found:
                cells = [[c["claim"], c["source"], c["data"], MARKS[c["verdict"]], c["evidence"]] for c in found]
                lines += [to_markdown(["claim", "in the paper", "on", "verdict", "evidence"], cells), ""]
            whys = dict.fromkeys(claim["explanation"] for claim in found if claim["explanation"])
            lines += [line for why in whys for line in (why, "")]
        elif row["kind"] == "figure" and (folder / f"{row['name']}.svg").exists():
            lines += [f"![{row['title']}](results/{part}/{row['name']}.svg)", ""]
        elif row["kind"] == "table" and not row["name"].endswith("-settings"):
            text = (folder / f"{row['name']}.csv").read_text(encoding="utf-8")
            lines += [f"**{row['title']}**", "", to_markdown(*from_csv(text)), ""]
            lines += [row["note"], ""] if row["note"] else []
    return lines[:-1]


def take_over(source: Path, target: Path, pictures: tuple[str, ...]) -> None:
    """Copy the CSV files of a run, and those figures whose names begin with one of ``pictures``."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for path in sorted((source / "tables").glob("*.csv")):
        shutil.copy(path, target / path.name)
    for path in sorted((source / "figures").glob("*.svg")):
        if path.name.startswith(pictures):
            shutil.copy(path, target / path.name)


def main(reproduction: str, verification: str, worlds: str, docs: str) -> None:
    """Copy, then write the page."""
    results = Path(docs) / "results"
    for name, source in zip(PARTS, (reproduction, verification, worlds), strict=True):
        take_over(Path(source), results / name, ("",))
    (Path(docs) / "results.md").write_text(render(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
