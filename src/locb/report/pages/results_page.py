"""Generator of the page docs/results.md from the results of a reproduction, a verification and a scenario matrix.

    python -m locb.report.pages.results_page DOCS reproduce=FOLDER verify=FOLDER scenarios=FOLDER

This command copies the CSV files and figures of the given folders to DOCS/results, and writes DOCS/results.md from the
CSV files. A part that is not given keeps its files.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

from locb.evaluation.findings import FAILS, HOLDS, NOT_COUNTED, UNDECIDED
from locb.report.findings_folder import VERDICT_RULE, combine_variants
from locb.report.tables.result_table import format_csv, read_rows, to_markdown

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
| A above B: by x ± y | x is the mean over repeats of A − B, negative if A is below B; y is half the width of its 95% \
confidence interval |
| x ± y (elsewhere) | mean over repeats, and half the width of its 95% confidence interval |
| N-CLUB, N-LOCB | CLUB and LOCB, stopped when the clusters have not changed for 100 rounds |
| ST-CLUB, ST-SCLUB, ST-ELOC | CLUB, SCLUB and ELOC, stopped in the round in which the last cluster of LOCB becomes \
final |
| true clusters, true groups | the groups of users that a policy should find. Synthetic environments define their true \
groups. In real data, there is one true group per K-means group of users (5 by default): a largest set of its users in \
which the distance between the preference vectors of any two users is below gamma |
| rounds (column) | number of rounds until the method or the run stops |
| best inner gamma | the best of the tested values of gamma, except the largest and the smallest |
| re-test | second test of all members of a cluster before it becomes final. LOCB as printed in the paper has no \
re-test |
| sequential arrivals | all rounds of one user precede all rounds of the next user |"""
SECTIONS_WITHOUT_DATA_SET = ("coverage", "correctness", "termination", "growth", "cost", "safety", "matrix")
VERDICT_LABELS = {HOLDS: "holds", FAILS: "**does not hold**", UNDECIDED: "undecided", NOT_COUNTED: "*not counted*"}
SUMMARY_HEADINGS = {
    HOLDS: "Holds",
    FAILS: "Does not hold",
    UNDECIDED: "Undecided",
    NOT_COUNTED: "Not counted, because the statement cannot fail or the data cannot decide it",
}
DATA = """\
Data: the synthetic environment of the paper, and MovieLens in its smallest version, **ml-latest-small** (100,836
ratings of 610 users). The paper uses the version of 25 million ratings of 160,000 users. **Yelp and Yahoo were not
run.** If you have their files, add them to `make results` with `YELP=folder YAHOO=folder`, or run:

```sh
locb reproduce all --repeats 20 --movielens ml-latest-small --yelp yelp_dataset --yahoo R6A --output runs/all
```"""


def render(results: Path) -> str:
    """Render the page as Markdown from the CSV files in the subfolders of ``results``."""
    parts = {name: results / name for name in PARTS if (results / name / "claims.csv").exists()}
    claims = {name: _read_csv(folder / "claims.csv") for name, folder in parts.items()}
    total = Counter(verdict for rows in claims.values() for verdict in combine_variants(rows).values())
    rows = [row for part in claims.values() for row in part]
    own = {(row["family"], row["claim"]) for row in rows if row["source"].startswith("not in the paper")}
    apart = sum(row["verdict"] == NOT_COUNTED for row in rows)
    lines = [
        "# Results",
        "",
        "This page lists which claims of the paper hold in the experiments of this project, and which do not hold,",
        "with the reasons. `make results` generates this page from the CSV files in [results/](results). A test",
        "compares the page with these files.",
        "",
        DATA,
        "",
        f"{total.total()} claims: {total[HOLDS]} hold, {total[FAILS]} do not hold, {total[UNDECIDED]} are undecided.",
        f'{len(own)} of them are claims of this project, with "not in the paper" as their source.',
        f"{apart} more statements are not counted, because they cannot fail or the data cannot decide them.",
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
            groups.setdefault(f"On {row['family']}" if part == "reproduce" else PARTS[part], []).append(row)
    lines: list[str] = []
    for name, rows in groups.items():
        combined = combine_variants(rows)
        count = Counter(combined.values())
        lines += [f"**{name}**: {count[HOLDS]} of {len(combined)} claims hold.", "", *_render_variants(rows)]
        for verdict, heading in SUMMARY_HEADINGS.items():
            details: dict[tuple[str, str, str], list[dict[str, str]]] = {}
            for row in rows:
                key = (row["section"], row["family"], row["claim"])
                if (NOT_COUNTED if row["verdict"] == NOT_COUNTED else combined[key]) == verdict:
                    details.setdefault(key, []).append(row)
            if details:
                lines.append(f"- {heading}:")
                for (*_, statement), variants in details.items():
                    differ = any(row["verdict"] != verdict for row in variants)
                    sentences = [statement, *(_format_detail(row, with_verdict=differ) for row in variants)]
                    lines.append(f"  - {' '.join(text for text in sentences if text)}")
        lines.append("")
    return lines[:-1]


def _render_variants(claims: list[dict[str, str]]) -> list[str]:
    """Return a table of the verdicts side by side, if all claims of a data set were tested in the same variants.

    These variants are the columns. The name of a variant is the part of the data after the name of the data set.
    Further parts, such as "as printed", distinguish rows.
    """
    verdicts: dict[str, dict[str, str]] = {}
    for row in claims:
        if row["verdict"] != NOT_COUNTED:
            _, variant, *rest = [*row["data"].split(", ", 2), "", ""]
            name = f"{row['claim'].removesuffix('.')} ({rest[0]})" if rest[0] else row["claim"]
            verdicts.setdefault(name, {})[variant] = VERDICT_LABELS[row["verdict"]]
    columns = list(dict.fromkeys(variant for found in verdicts.values() for variant in found))
    if len(columns) < 2 or any(len(found) < len(columns) for found in verdicts.values()):
        return []
    cells = [[name, *(found[column] for column in columns)] for name, found in verdicts.items()]
    return [to_markdown(["claim", *columns], cells), ""]


def _format_detail(row: dict[str, str], *, with_verdict: bool) -> str:
    """Return sentences about a claim: its setting without the data set, its verdict, and its explanation."""
    setting = row["data"] if row["section"] in SECTIONS_WITHOUT_DATA_SET else row["data"].partition(", ")[2]
    verdict = row["verdict"] if with_verdict else ""
    if setting:
        verdict = f"Setting: {setting} ({verdict})" if verdict else f"Setting: {setting}"
    explanation = row["explanation"] if row["verdict"] != HOLDS else ""
    return " ".join(f"{text.removesuffix('.')}." for text in (verdict, explanation) if text)


def _read_csv(path: Path) -> list[dict[str, str]]:
    return read_rows(path.read_text(encoding="utf-8"))


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
            lines += _render_explanations(section_claims)
        elif row["kind"] == "figure" and (folder / f"{row['name']}.svg").exists():
            lines += [f"![{row['title']}](results/{part}/{row['name']}.svg)", ""]
        elif row["kind"] == "table" and not row["name"].endswith("-settings"):
            text = (folder / f"{row['name']}.csv").read_text(encoding="utf-8")
            lines += [f"**{row['title']}**", "", to_markdown(*format_csv(text)), ""]
            lines += [row["note"], ""] if row["note"] else []
    return lines[:-1]


def _render_explanations(claims: list[dict[str, str]]) -> list[str]:
    """Return one paragraph per explanation of the claims of a section, with the data or the claims that it explains."""
    subjects: dict[str, dict[str, None]] = {}
    for claim in claims:
        if claim["explanation"]:
            subject = "claim" if claim["section"] in SECTIONS_WITHOUT_DATA_SET else "data"
            subjects.setdefault(claim["explanation"], {})[claim[subject].removesuffix(".")] = None
    return [line for text, names in subjects.items() for line in (f"*{'; '.join(names)}:* {text}", "")]


def copy_results(source: Path, target: Path) -> None:
    """Replace the content of the folder ``target`` by the CSV files and SVG figures of the run folder ``source``."""
    if target.exists():
        shutil.rmtree(target)
    target.mkdir(parents=True)
    for path in sorted((source / "tables").glob("*.csv")):
        shutil.copy(path, target / path.name)
    for path in sorted((source / "figures").glob("*.svg")):
        shutil.copy(path, target / path.name)


def main(docs: str, *parts: str) -> None:
    """Copy the results of the given parts to the folder ``docs`` and write results.md.

    Parameters
    ----------
    docs : str
        Folder of the documentation.
    *parts : str
        NAME=FOLDER: a name in ``PARTS``, and the folder of its finished run.
    """
    results = Path(docs) / "results"
    sources = {}
    for part in parts:
        name, _, folder = part.partition("=")
        if name not in PARTS:
            raise SystemExit(f"unknown part {name!r}; choose from {', '.join(PARTS)}")
        if not (Path(folder) / "tables" / "claims.csv").exists():
            raise SystemExit(f"{folder} has no results of {name}; run make results PARTS={name} first")
        sources[name] = Path(folder)
    for name, source in sources.items():
        copy_results(source, results / name)
    (Path(docs) / "results.md").write_text(render(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
