"""The documentation: its examples run, its links resolve, its images and tables are complete and up to date."""

import ast
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


def table_rows(page: Path, name: str) -> list[list[str]]:
    """Return the cells of the table between the comments <!-- name --> and <!-- end of name -->, without headings."""
    _, _, text = page.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    table, end, _ = text.partition(f"<!-- end of {name} -->")
    assert end, f"{page} has no table {name}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def assigned_constants(source: str) -> dict[str, str]:
    """Return the name and the value, as written, of each constant that a module assigns."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            (target,), value = node.targets, node.value
            pairs = zip(target.elts, value.elts, strict=True) if isinstance(target, ast.Tuple) else [(target, value)]
            found |= {name.id: ast.get_source_segment(source, number) for name, number in pairs}
    return found


def test_table_of_constants_matches_the_kernels() -> None:
    kernels = ROOT / "src" / "locb" / "kernels" / "eloc"
    source = (kernels / "state.py").read_text(encoding="utf-8")
    _, found, model = source.partition("# Initial values, relative to the scale")  # the lines before define indices
    model, end, _ = model.partition("class ELOCState")
    assert found
    assert end
    rows = table_rows(DOCS / "explanation" / "eloc.md", "constants of ELOC")
    assert [(row[0].strip("`"), row[1].strip("`")) for row in rows] == list(assigned_constants("#" + model).items())
    for name, _, _, files, *_ in rows:
        for path in re.findall("`(.*?)`", files):
            assert name.strip("`") in (kernels / path).read_text(encoding="utf-8"), (name, path)


def test_every_constant_names_the_scenarios_that_informed_it() -> None:
    from locb.experiments.scenarios.registry import DEVELOPMENT, EVALUATION, SCENARIOS

    rows = table_rows(DOCS / "reference" / "scenarios.md", "constants and scenarios")
    constants = [name for row in rows for name in re.findall("`([A-Z_]+)`", row[0])]
    model = [row[0].strip("`") for row in table_rows(DOCS / "explanation" / "eloc.md", "constants of ELOC")]
    assert sorted(constants) == sorted(model)
    for _, _, *columns in rows:
        for role, names in zip((DEVELOPMENT, EVALUATION), columns, strict=True):
            assert {SCENARIOS[name].role for name in re.findall("`(.*?)`", names)} <= {role}


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
