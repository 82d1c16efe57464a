"""The language check: which retired words it finds, and which uses it ignores."""

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tools import check_language, check_layout
from tools.language_rules import ALLOWED, IDENTIFIER_WORDS

ROOT = Path(__file__).parent.parent.parent
checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None, reason="this folder is not a Git checkout"
)


@pytest.mark.parametrize(
    ("path", "source", "words"),
    [
        ("src/locb/a.py", "def user_place(i): ...\n", ["place"]),
        ("src/locb/a.py", "class TellingPolicy: ...\n", ["telling"]),
        ("src/locb/a.py", "MOST_ROUNDS = 3\n", ["most"]),
        ("src/locb/a.py", "text.replace('a', 'b')\nalmost = 1\n", []),
        ("src/locb/a.py", "# what it was told\nx = 1\n", ["told"]),
        ("src/locb/a.py", 'x = """First.\n\nMade anew.\n"""\n', ["anew"]),
        ("src/locb/a.py", "x = f'{1} µs a round'\n", ["µs a round"]),
        ("src/locb/a.py", "x = f'{1} µs per round'\n", []),
        ("src/locb/tally.py", "x = 1\n", ["tally"]),
        ("docs/a.md", "One.\nThe policy that nobody chose, in a world.\n", ["nobody", "world"]),
        ("docs/a.md", "A verdict a claim.\n", ["verdict a claim", "A verdict a claim"]),
        ("page/a.js", "const userPlace = told;\n", ["place", "told", "told"]),
        ("page/a.js", "// the room\nconst label = 'room 1';\n", []),
    ],
)
def test_retired_words_are_found(path: str, source: str, words: list[str]) -> None:
    assert sorted(finding.word for finding in check_language.check_file(path, source)) == sorted(words)


def test_a_finding_names_file_line_word_and_advice() -> None:
    (finding,) = check_language.check_file("docs/a.md", "Fine.\nIt is told.\n")
    assert str(finding).startswith("docs/a.md:2: 'told': name the output")


def test_an_exception_holds_for_its_path_only() -> None:
    assert check_language.check_file("src/locb/kernels/eloc/loop.py", "gate = 1\n") == []
    assert check_language.check_file("src/locb/service/api/app.py", "gate = 1\n") != []


def test_rules_of_identifiers_are_lower_case() -> None:
    assert all(word == word.lower() for word in IDENTIFIER_WORDS)


@checkout
def test_every_exception_is_needed_and_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for path in check_language.tracked_files() if any(fnmatch(path, pattern) for pattern, *_ in ALLOWED)]
    monkeypatch.setattr(check_language, "ALLOWED", ())
    findings = [finding for path in files for finding in check_language.check_file(path, (ROOT / path).read_text())]
    for pattern, word, reason in ALLOWED:
        assert len(reason.split()) >= 3
        assert any(
            fnmatch(finding.path, pattern) and re.fullmatch(word, finding.word, re.IGNORECASE) for finding in findings
        ), f"{pattern} does not contain {word}"


def test_every_exception_of_the_layout_is_needed_and_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = check_layout.EXCEPTIONS
    monkeypatch.setattr(check_layout, "EXCEPTIONS", {})
    for name, reason in exceptions.items():
        assert len(reason.split()) >= 3
        path, _, function = name.partition(":")
        if (ROOT / path).is_dir():
            assert [
                problem
                for problem in check_layout.check_folders(check_language.tracked_files())
                if problem.startswith(f"{path}: ")
            ]
            continue
        problems = check_layout.check_file(path, (ROOT / path).read_text(encoding="utf-8"))
        assert any(f": {function} has " in problem if function else "lines; at most" in problem for problem in problems)


@checkout
def test_the_whole_repository_is_checked() -> None:
    files = check_language.tracked_files()
    assert {"README.md", "Makefile", "src/locb/cli/common.py", "tests/serving.py"} <= set(files)


@checkout
def test_programs_fail_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_language.main(["src/nowhere"]) == 2
    assert capsys.readouterr().out == "No file has a path that starts with src/nowhere.\n"
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for module in (check_language, check_layout):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    assert (check_language.main([]), check_layout.main()) == (2, 2)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("what_was_told = 1\n" * 351)
    assert (check_language.main([]), check_layout.main()) == (1, 1)
    assert "src/a.py:1: 'told'" in capsys.readouterr().out


def test_size_limits() -> None:
    long_function = "def f():\n" + "    x = 1\n" * 60
    assert check_layout.check_file("src/a.py", long_function) == ["src/a.py:1: f has 61 lines; at most 60 are allowed"]
    assert check_layout.check_file("src/a.py", "def f():\n" + "    x = 1\n" * 59) == []
    assert check_layout.check_file("src/a.js", "x\n" * 351) == ["src/a.js: 351 lines; at most 350 are allowed"]
    paths = [f"src/a/{n}.py" for n in range(15)] + ["src/a/__init__.py"]
    assert check_layout.check_folders(paths) == ["src/a: 15 entries; at most 14 are allowed"]
    assert check_layout.check_folders(paths[1:]) == []
