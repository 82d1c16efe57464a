"""What the documentation says is run, and what can be asked for is documented."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import locb
from commandline import call

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [module.name for module in pkgutil.walk_packages(locb.__path__, "locb.")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path) -> None:
    if page.name == "service.md":  # with a service to ask: tests/service/test_page.py
        return
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if not blocks:
        return
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"(?:\]\(|src=\")([^)\"]+)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings], target


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_name_has_an_example_or_a_mention() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in locb.__all__:
        assert re.search(rf"\b{name}\b", text), f"{name} is not documented"


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("compare", "experiments.md"),
        ("data", "data.md"),
        ("demo", "watch.md"),
        ("load", "load.md"),
        ("reproduce", "experiments.md"),
        ("serve", "service.md"),
        ("verify", "experiments.md"),
        ("watch", "watch.md"),
    ],
)
def test_every_option_is_documented(command: str, page: str, tmp_path: Path) -> None:
    shown = call(command, "--help", cwd=tmp_path).stdout
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", shown)) - {"--help"}
    assert len(options) >= 3
    for option in options:
        assert f"`{option}`" in text, f"{option} is not in docs/{page}"


def test_the_page_of_results_is_what_its_csv_files_say() -> None:
    from locb.report.pages.results_page import PARTS, render

    results = ROOT / "docs" / "results"
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == render(results)
    assert {"reproduce", "verify"} <= {folder.name for folder in results.iterdir()} <= set(PARTS)


def test_every_picture_is_made_by_a_script_and_shown() -> None:
    from tools.pictures import OF_A_RUN, OF_A_SERVICE, OF_DATA

    made = {*OF_A_RUN, *OF_A_SERVICE, *OF_DATA}
    measured = re.compile("gate|scaling-.*")  # by benchmarks
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (ROOT / "docs" / "pictures").iterdir():
        assert picture.stem in made or measured.fullmatch(picture.stem), picture.name
        assert f"pictures/{picture.name}" in text, f"{picture.name} is shown nowhere"


def test_every_make_target_is_in_its_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    for target in phony.split():
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target
