"""The documentation: its examples run, its links resolve, and its images and repository files are complete."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import locb

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = (DOCS / "_build", DOCS / "gallery", DOCS / "reference" / "generated")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if not any(folder in page.parents for folder in GENERATED)),
]
# Executed against a running service by tests/service/test_service_docs.py.
SERVICE_PAGES = [
    DOCS / name
    for name in ("tutorials/service.md", "how-to/client.md", "how-to/analyse-decisions.md", "how-to/load-test.md")
]
MODULES = [module.name for module in pkgutil.walk_packages(locb.__path__, "locb.")]
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Any start of a Python block in MyST, also those that PYTHON_BLOCK does not find: indented, or as a directive.
PYTHON_FENCE = re.compile(r"^[ >]*(?:`{3,}|~{3,}) *(?:\{code(?:-block|-cell)?\} *)?(?:i?python|py|pycon)", re.MULTILINE)
MAX_README_LINES = 130


def page_name(page: Path) -> str:
    """Return the path of a page relative to the repository, for the names of tests."""
    return str(page.relative_to(ROOT))


def count_examples(name: str) -> int:
    """Return the number of doctest examples in the source of a module that are not skipped, without importing it."""
    path = ROOT / "src" / name.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return len(re.findall(r"^\s*>>> (?!.*# doctest: \+SKIP)", path.read_text(encoding="utf-8"), re.MULTILINE))


PAGES_WITH_EXAMPLES = [
    page for page in PAGES if page not in SERVICE_PAGES and PYTHON_FENCE.search(page.read_text(encoding="utf-8"))
]
MODULES_WITH_EXAMPLES = [name for name in MODULES if count_examples(name) > 0]


def test_examples_are_found() -> None:
    """Otherwise, the two tests below would run nothing and pass."""
    assert {"README.md", "docs/tutorials/library.md"} <= {page_name(page) for page in PAGES_WITH_EXAMPLES}
    assert {"locb.policies.locb", "locb.policies.eloc"} <= set(MODULES_WITH_EXAMPLES) < set(MODULES)


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=page_name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = PYTHON_BLOCK.findall(text)
    assert len(blocks) == len(PYTHON_FENCE.findall(text)) > 0
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    # Each block counts its execution, because a block could end the process with status 0.
    counted = [f"{block}\nopen('executed', 'a').write('x')" for block in blocks]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(counted)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "executed").read_text()) == len(blocks)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_resolve(page: Path) -> None:
    for target in re.findall(r"(?:\]\(|src=\")([^)\"\s]+)", page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if DOCS / "gallery" in linked.parents:  # generated: sphinx-build checks these links
            continue
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings], target


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_paths_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":  # names files of earlier versions
        return
    folders = "src|tests|benchmarks|docs|examples|stress|deploy|tools"
    for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text(encoding="utf-8")):
        generated = any(folder in (ROOT / path, *(ROOT / path).parents) for folder in GENERATED)
        assert generated or "NAME" in path or (ROOT / path).exists(), path


@pytest.mark.parametrize("name", MODULES_WITH_EXAMPLES)
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert (result.failed, result.attempted) == (0, count_examples(name))


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


def test_results_page_matches_its_csv_files() -> None:
    from locb.report.pages.results_page import PARTS, render

    results = DOCS / "results"
    assert (DOCS / "results.md").read_text(encoding="utf-8") == render(results)
    assert {"reproduce", "verify"} <= {folder.name for folder in results.iterdir()} <= set(PARTS)


def test_images_are_generated_and_shown() -> None:
    from tools.screenshots import DATA_IMAGES, RUN_IMAGES, SERVICE_IMAGES

    generated = {*RUN_IMAGES, *SERVICE_IMAGES, *DATA_IMAGES}
    measured = re.compile("gate|scaling-.*")  # drawn by the benchmarks
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for image in (DOCS / "images").iterdir():
        assert image.stem in generated or measured.fullmatch(image.stem), image.name
        assert f"images/{image.name}" in text, f"no page shows {image.name}"


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    for target in phony.split():
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target


def test_version_is_cited_and_in_the_changelog() -> None:
    assert f"\nversion: {locb.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert locb.__version__ in headings


def test_pre_commit_runs_the_tools_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    for tool, arguments in re.findall(r"\$\(BIN\)/(\S+)(?: (-m \S+|\w+))?", recipe[1]):
        assert f".venv/bin/{tool} {arguments}".strip() in hooks
