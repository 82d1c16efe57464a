"""The language check: which retired words it finds, and which uses it ignores."""

import pytest

from tools import check_language, check_layout
from tools.language_rules import ALLOWED, IDENTIFIER_WORDS


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


def test_every_exception_has_a_reason() -> None:
    assert all(len(reason) > 10 for _path, _word, reason in ALLOWED)
    assert all(len(reason) > 10 for reason in check_layout.EXCEPTIONS.values())
    assert all(word == word.lower() for word in IDENTIFIER_WORDS)


def test_size_limits() -> None:
    long_function = "def f():\n" + "    x = 1\n" * 60
    assert check_layout.check_file("src/a.py", long_function) == ["src/a.py:1: f has 61 lines, at most 60"]
    assert check_layout.check_file("src/a.py", "def f():\n" + "    x = 1\n" * 59) == []
    assert check_layout.check_file("src/a.js", "x\n" * 351) == ["src/a.js: 351 lines, at most 350"]
    paths = [f"src/a/{n}.py" for n in range(15)] + ["src/a/__init__.py"]
    assert check_layout.check_folders(paths) == ["src/a: 15 entries, at most 14"]
    assert check_layout.check_folders(paths[1:]) == []
