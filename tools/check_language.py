"""Check that the repository contains no retired words. ``make lint`` runs this program.

A retired word is a name or phrase that the project does not use any more; ``tools/language_rules.py`` lists them.
Identifiers are split into words at underscores and capitals, so a rule for ``place`` finds ``user_place`` and
``PlaceOf``, but not ``replace``. Strings, comments and documentation are searched for phrases. Exceptions are listed
with a reason. ``python -m tools.check_language src/locb/report`` checks one folder.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from tools.language_rules import ALLOWED, IDENTIFIER_WORDS, PHRASES, SKIPPED_FILES, TEXT_SUFFIXES

ROOT = Path(__file__).parent.parent
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SCRIPT_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_PHRASES = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PHRASES.items()]


class Finding(NamedTuple):
    """Occurrence of a retired word: its location, the word, and advice on what to write instead."""

    path: str
    line: int
    word: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: {self.advice}"


def check_identifier(name: str) -> Iterator[tuple[str, str]]:
    """Yield (word, advice) for each retired word of an identifier.

    Examples
    --------
    >>> [word for word, _ in check_identifier("user_place")], list(check_identifier("replace"))
    (['place'], [])
    """
    for word in (part.lower() for part in _WORD.findall(name)):
        if word in IDENTIFIER_WORDS:
            yield word, IDENTIFIER_WORDS[word]


def check_text(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line from 0, phrase, advice) for each retired phrase of a text."""
    for pattern, advice in _PHRASES:
        for match in pattern.finditer(text):
            yield text.count("\n", 0, match.start()), match[0], advice


def check_python(path: str, source: str) -> Iterator[Finding]:
    """Yield the retired words in Python source: in identifiers, comments and strings."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            for word, advice in check_identifier(token.string):
                yield Finding(path, token.start[0], word, advice)
        elif token.type in (tokenize.COMMENT, tokenize.STRING) or "FSTRING_MIDDLE" in tokenize.tok_name[token.type]:
            for line, phrase, advice in check_text(token.string):
                yield Finding(path, token.start[0] + line, phrase, advice)


def check_script(path: str, source: str) -> Iterator[Finding]:
    """Yield the retired words in JavaScript source: in identifiers, comments and strings."""
    for number, line in enumerate(source.splitlines(), 1):
        for match in _SCRIPT_NAME.finditer(re.sub(r"//.*|/\*.*?\*/|\"[^\"]*\"|'[^']*'|`[^`]*`", "", line)):
            for word, advice in check_identifier(match[0]):
                yield Finding(path, number, word, advice)
    for line_offset, phrase, advice in check_text(source):
        yield Finding(path, line_offset + 1, phrase, advice)


def check_file(path: str, source: str) -> list[Finding]:
    """Return the retired words in one file, except those that ``ALLOWED`` permits."""
    if path.endswith(".py"):
        found = list(check_python(path, source))
    elif path.endswith(".js"):
        found = list(check_script(path, source))
    else:
        found = [Finding(path, line + 1, phrase, advice) for line, phrase, advice in check_text(source)]
    found += [Finding(path, 1, word, advice) for word, advice in check_identifier(Path(path).stem)]
    return [finding for finding in found if not _is_allowed(finding)]


def _is_allowed(finding: Finding) -> bool:
    return any(
        fnmatch(finding.path, pattern) and re.fullmatch(word, finding.word, re.IGNORECASE)
        for pattern, word, _reason in ALLOWED
    )


def tracked_files() -> list[str]:
    """Return the paths of the text files of the repository, except ``SKIPPED_FILES``."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        path
        for path in listed
        if (Path(path).suffix in TEXT_SUFFIXES or Path(path).name in TEXT_SUFFIXES)
        and not any(fnmatch(path, pattern) for pattern in SKIPPED_FILES)
        and (ROOT / path).is_file()
    ]


def main(prefixes: list[str]) -> int:
    """Print the retired words in files whose path starts with a prefix, or in all files if there is no prefix.

    Return the exit status: 1 if there is a retired word, 2 if there is no file to check, else 0.
    """
    paths = [path for path in tracked_files() if not prefixes or path.startswith(tuple(prefixes))]
    if not paths:
        print(f"No file has a path that starts with {' or '.join(prefixes)}." if prefixes else "No files found.")
        return 2
    findings = [finding for path in paths for finding in check_file(path, (ROOT / path).read_text(encoding="utf-8"))]
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} retired words: see tools/language_rules.py for the rules and the exceptions")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
