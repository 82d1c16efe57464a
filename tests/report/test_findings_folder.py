"""Folder of findings: the same numbers in CSV, Markdown and page; the results page of the docs."""

import csv
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from samples import TABLE, findings

from locb.evaluation.findings import Claim, Criterion, Measurement
from locb.report.findings_folder import format_criterion, make_verdict_table, summarize_verdicts, write_findings
from locb.report.pages.results_page import main, render
from locb.report.tables.result_table import format_csv, to_csv, to_markdown


def test_csv_has_unrounded_numbers_and_cells_are_formatted() -> None:
    text = to_csv(TABLE)
    rows = list(csv.DictReader(text.splitlines()))
    assert rows[0]["F1"] == "0.97635"
    assert rows[0]["F1 ±"] == "0.06671"
    assert rows[1]["F1 ±"] == ""
    headings, cells = format_csv(text)
    assert headings == ["method", "F1", "paper's F1", "F1 difference", "rounds", "gamma"]
    assert cells == [
        ["LOCB", "0.976 ± 0.067", "0.880", "+0.096", "–", "–"],
        ["a|b", "0.250", "–", "–", "56,999 ± 1,234", "–"],
    ]
    assert to_markdown(headings[:2], [row[:2] for row in cells]) == (
        "| method | F1 |\n| --- | --- |\n| LOCB | 0.976 ± 0.067 |\n| a\\|b | 0.250 |"
    )


@pytest.mark.parametrize(
    ("column", "text", "shown"),
    [
        ("regret", "889.4", "889"),
        ("regret difference from LOCB", "-45.6", "-46"),
        ("regret difference from LOCB", "45.6", "+46"),
        ("gamma", "0.2", "0.2"),
        ("F1", "1", "1.000"),
        ("clusters not final", "0", "0"),
        ("seeds", "100", "100"),
        ("bound", "6.49516e+09", "6,495,160,000"),
        ("power of T", "1e-05", "1e-05"),
        ("setting", "tau 10", "tau 10"),
    ],
)
def test_cell_format(column: str, text: str, shown: str) -> None:
    assert format_csv(f"{column}\n{text}\n")[1] == [[shown]]


def test_format_criterion() -> None:
    assert format_criterion(Criterion("a above b", Measurement(1234.5, 99.6))) == "a above b: by 1,234 ± 100"
    assert format_criterion(Criterion("a above b", Measurement(32.786, 26.383))) == "a above b: by 32.8 ± 26.4"
    assert format_criterion(Criterion("a above b", Measurement(0.5, float("nan")))) == "a above b: by 0.500, one repeat"
    assert format_criterion(Criterion("a", Measurement(0.0003, 0.0001))) == "a: by 0.0003 ± 0.0001"
    assert format_criterion(Criterion("a", Measurement(1.0, 0.0), "in detail")) == "in detail"


def test_files_and_their_content(tmp_path: Path) -> None:
    found = findings()
    index, tables, figures = write_findings(found, tmp_path)
    assert sorted(path.name for path in tables.iterdir()) == sorted(
        f"{name}.{kind}"
        for name in ("accuracy-x", "accuracy-x-settings", "speed", "claims", "contents")
        for kind in ("csv", "md")
    )
    for name in ("curve", "users"):
        data = (figures / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert min(struct.unpack(">II", data[16:24])) > 500
        assert (figures / f"{name}.svg").read_text().startswith("<svg")
    page = index.read_text()
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'src=|href="(?!#)|@import|url\(', outside)
    for anchor in re.findall(r'href="#([^"]+)"', outside):
        assert f'id="{anchor}"' in outside, anchor
    assert "a above &lt;c&gt;: by 150 ± 200" in outside
    assert "Tried &amp; tested" in outside
    assert "1 × undecided" in outside
    assert "0.976 ± 0.067" in outside
    assert "A general note." in outside
    assert summarize_verdicts(found) in page
    assert make_verdict_table(found).row_count == 2


def test_results_page_depends_on_the_csv_files_only(tmp_path: Path) -> None:
    write_findings(findings(), tmp_path / "reproduce")
    write_findings(findings(), tmp_path / "verify")
    docs = tmp_path / "docs"
    docs.mkdir()
    write_findings(replace(findings(), claims=[], figures=[]), tmp_path / "scenarios")
    main(str(docs), *(f"{name}={tmp_path / name}" for name in ("reproduce", "verify", "scenarios")))
    page = (docs / "results.md").read_text()
    assert page == render(docs / "results")
    assert "4 claims: 0 hold, 2 do not hold, 2 are undecided.\n0 of them are claims of this project" in page
    assert "Yelp and Yahoo were not run" in " ".join(page.partition("## Terms")[0].split())
    assert "| LOCB is best. | Table 1 | Synthetic | undecided | a above b: by 0.200 ± 0.100; a above <c>: by" in page
    assert "\n\n*Synthetic:* Because.\n\n" in page  # a paragraph below the claims names the data that it explains
    assert "| LOCB | 0.976 ± 0.067 |" in page
    assert "![Curve](results/verify/curve.svg)" in page
    assert "## Policies on many scenarios" in page
    assert "Every setting" not in page
    csv_file = docs / "results" / "reproduce" / "accuracy-x.csv"
    csv_file.write_text(csv_file.read_text().replace("0.97635", "0.99999"))
    assert render(docs / "results") != page


def test_verdicts_of_variants_are_shown_side_by_side(tmp_path: Path) -> None:
    found = findings()
    first, second = found.claims
    high, low = [Criterion("a above b", Measurement(9.0, 1.0))], [Criterion("a above b", Measurement(-9.0, 1.0))]

    def variant(claim: Claim, data: str, criteria: list[Criterion]) -> Claim:
        return replace(claim, data=data, criteria=criteria, family="Synthetic", vacuous="")

    claims = [
        variant(first, "Synthetic, rewards of 0 or 1", high),
        variant(first, "Synthetic, Gaussian noise 0.1", low),
        variant(first, "Synthetic, rewards of 0 or 1, as printed", high),
        variant(first, "Synthetic, Gaussian noise 0.1, as printed", high),
        variant(second, "Synthetic, rewards of 0 or 1", high),
        variant(second, "Synthetic, Gaussian noise 0.1", high),
    ]
    write_findings(replace(found, claims=claims), tmp_path / "reproduce")
    for name in ("verify", "scenarios"):
        write_findings(replace(found, claims=[], figures=[]), tmp_path / name)
    (tmp_path / "docs").mkdir()
    main(str(tmp_path / "docs"), *(f"{name}={tmp_path / name}" for name in ("reproduce", "verify", "scenarios")))
    page = (tmp_path / "docs" / "results.md").read_text()
    table = (
        "| claim | rewards of 0 or 1 | Gaussian noise 0.1 |\n| --- | --- | --- |\n"
        f"| {first.statement} | holds | **does not hold** |\n"
        f"| {first.statement.removesuffix('.')} (as printed) | holds | holds |\n"
        f"| {second.statement} | holds | holds |\n"
    )
    assert f"**On Synthetic**: 1 of 2 claims hold.\n\n{table}" in page
    claims[-1] = variant(second, "Synthetic, Gaussian noise 0.2", high)  # no table unless all claims have all variants
    write_findings(replace(found, claims=claims), tmp_path / "reproduce")
    main(str(tmp_path / "docs"), f"reproduce={tmp_path / 'reproduce'}")  # the other parts keep their results
    page = (tmp_path / "docs" / "results.md").read_text()
    assert "| claim | rewards of 0 or 1 |" not in page
    assert "## Policies on many scenarios" in page
    with pytest.raises(SystemExit, match="empty has no results of verify; run make results PARTS=verify first"):
        main(str(tmp_path / "docs"), "verify=empty")
    with pytest.raises(SystemExit, match="unknown part 'other'; choose from reproduce, verify, scenarios"):
        main(str(tmp_path / "docs"), "other=empty")
