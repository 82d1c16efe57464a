"""Generator of the page docs/results.md from the results of a reproduction, a verification and a scenario matrix.

    python -m locb.report.pages.results_page REPRODUCTION VERIFICATION SCENARIOS DOCS

This command copies the CSV files and figures of the first three folders to DOCS/results, and writes DOCS/results.md
from the CSV files.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections import Counter
from pathlib import Path

from locb.evaluation.findings import FAILS, HOLDS, UNDECIDED
from locb.report.findings_folder import VERDICT_RULE
from locb.report.tables.result_table import format_csv, to_markdown

PARTS = {
    "reproduce": "The paper's evaluation",
    "verify": "The paper's theorems",
    "scenarios": "Policies on many scenarios",
}
TERMS = """\
[Algorithms](explanation/algorithm.md) and [ELOC](explanation/eloc.md) define the policies, their parameters (alpha,
gamma, tau, δ, σ) and the four radii. The [terms of the reference](reference/index.md#terms) include regret, seed,
final, certificate and F1. This page also uses these terms:

| term | meaning |
| --- | --- |
| ± | half the width of the 95% confidence interval of a mean over repeats |
| N-CLUB, N-LOCB | CLUB and LOCB, stopped when the clusters have not changed for 100 rounds |
| ST-CLUB, ST-SCLUB | CLUB and SCLUB, stopped in the round in which the last cluster of LOCB becomes final |
| true clusters, true groups | the groups of users that a policy should find. Synthetic environments define their true \
groups. In real data, a true group is a largest set of users, within one of 5 K-means groups, in which the distance \
between the preference vectors of any two users is below gamma |
| rounds (column) | number of rounds until the method stops |
| best inner gamma | the best of the tested values of gamma, except the largest and the smallest |
| as published, with re-test | without and with a second test of all members before a cluster becomes final |
| sequential arrivals | all rounds of one user precede all rounds of the next user |"""
SECTIONS_WITHOUT_DATA_SET = ("coverage", "correctness", "termination", "growth", "matrix")
VERDICT_LABELS = {HOLDS: "holds", FAILS: "**does not hold**", UNDECIDED: "undecided"}


def render(results: Path) -> str:
    """Render the page as Markdown from the CSV files in the subfolders of ``results``."""
    parts = {name: results / name for name in PARTS if (results / name / "claims.csv").exists()}
    claims = {name: _read_csv(folder / "claims.csv") for name, folder in parts.items()}
    total = Counter(row["verdict"] for rows in claims.values() for row in rows)
    own = sum(row["source"].startswith("not in the paper") for rows in claims.values() for row in rows)
    lines = [
        "# Results",
        "",
        "This page lists which claims of the paper hold in the experiments of this project, which do not hold, and",
        "why. `make results` generates this page from the CSV files in [results/](results). A test compares the page",
        "with these files.",
        "",
        f"{total.total()} claims: {total[HOLDS]} hold, {total[FAILS]} do not hold, {total[UNDECIDED]} are undecided.",
        f'{own} of them are claims of this project, with "not in the paper" as their source.',
        VERDICT_RULE,
    ]
    lines += ["", "## Terms", "", TERMS]
    lines += ["", "## Summary", "", *_render_summary(claims)]
    for name, folder in parts.items():
        lines += ["", f"## {PARTS[name]}", "", *_render_part(name, folder, claims[name])]
    return "\n".join(lines) + "\n"


def _render_summary(claims: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return the lines of the summary: the claims by verdict, for each data set, for the theorems and the scenarios."""
    groups: dict[str, list[dict[str, str]]] = {}
    for part, rows in claims.items():
        for row in rows:
            groups.setdefault(f"On {row['data'].split(',')[0]}" if part == "reproduce" else PARTS[part], []).append(row)
    lines: list[str] = []
    for name, rows in groups.items():
        count = Counter(row["verdict"] for row in rows)
        lines += [f"**{name}**: {count[HOLDS]} of {len(rows)} claims hold.", ""]
        for verdict in (HOLDS, FAILS, UNDECIDED):
            details: dict[str, list[str]] = {}
            for row in rows:
                if row["verdict"] == verdict:
                    details.setdefault(row["claim"], []).append(_format_detail(row))
            if details:
                lines.append(f"- {verdict.capitalize()}:")
                lines += [f"  - {claim}{_join_details(texts)}" for claim, texts in details.items()]
        lines.append("")
    return lines[:-1]


def _format_detail(row: dict[str, str]) -> str:
    """Return the setting of a claim without its data set, and the explanation unless the claim holds."""
    setting = row["data"] if row["section"] in SECTIONS_WITHOUT_DATA_SET else row["data"].partition(", ")[2]
    return ": ".join(text for text in (setting, row["explanation"] if row["verdict"] != HOLDS else "") if text)


def _join_details(texts: list[str]) -> str:
    joined = "; ".join(text.rstrip(".") for text in texts if text)
    return f" ({joined})" if joined else ""


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _render_part(part: str, folder: Path, claims: list[dict[str, str]]) -> list[str]:
    lines: list[str] = []
    contents = _read_csv(folder / "contents.csv")
    for row in contents:
        if row["kind"] == "note":
            lines += [row["note"], ""]
    for row in contents:
        if row["kind"] == "section":
            lines += [f"### {row['title']}", ""]
            section_claims = [claim for claim in claims if claim["section"] == row["name"]]
            if section_claims:
                cells = [
                    [c["claim"], c["source"], c["data"], VERDICT_LABELS[c["verdict"]], c["evidence"]]
                    for c in section_claims
                ]
                lines += [to_markdown(["claim", "source in the paper", "data", "verdict", "evidence"], cells), ""]
            explanations = dict.fromkeys(claim["explanation"] for claim in section_claims if claim["explanation"])
            lines += [line for text in explanations for line in (text, "")]
        elif row["kind"] == "figure" and (folder / f"{row['name']}.svg").exists():
            lines += [f"![{row['title']}](results/{part}/{row['name']}.svg)", ""]
        elif row["kind"] == "table" and not row["name"].endswith("-settings"):
            text = (folder / f"{row['name']}.csv").read_text(encoding="utf-8")
            lines += [f"**{row['title']}**", "", to_markdown(*format_csv(text)), ""]
            lines += [row["note"], ""] if row["note"] else []
    return lines[:-1]


def copy_results(source: Path, target: Path) -> None:
    """Replace the content of the folder ``target`` by the CSV files and SVG figures of the run folder ``source``."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for path in sorted((source / "tables").glob("*.csv")):
        shutil.copy(path, target / path.name)
    for path in sorted((source / "figures").glob("*.svg")):
        shutil.copy(path, target / path.name)


def main(reproduction: str, verification: str, scenarios: str, docs: str) -> None:
    """Copy the results of the three run folders to the folder ``docs`` and write results.md."""
    results = Path(docs) / "results"
    for name, source in zip(PARTS, (reproduction, verification, scenarios), strict=True):
        copy_results(Path(source), results / name)
    (Path(docs) / "results.md").write_text(render(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
