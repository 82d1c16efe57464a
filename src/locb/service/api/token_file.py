"""Token file: access tokens with their scopes, read at startup and again when the file changes.

This module imports only the standard library, because ``locb watch`` reads token files without the service installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from locb.service.api.scopes import ALL, SCOPES

if TYPE_CHECKING:
    from locb.service.api.auth import Tokens

HASHED = "sha256:"  # precedes the digest of a token
MIN_TOKEN_LENGTH = 16  # characters
CHECK_INTERVAL = 1.0  # seconds between checks whether the file has changed
_log = logging.getLogger("locb.service")


def token_digest(text: str) -> bytes:
    """Return the digest (SHA-256) for an entry of a token file: a token, or ``sha256:`` followed by its digest."""
    if text.startswith(HASHED):
        return bytes.fromhex(text.removeprefix(HASHED))
    return hashlib.sha256(text.encode()).digest()


def read_token_file(path: Path) -> dict[str, frozenset[str]]:
    """Return the scopes of each token in a file. The key of a hashed token is ``sha256:`` and the digest in lower case.

    A line has a token and, after white space, the scopes of the token, separated by white space or commas. The word
    ``all`` stands for all scopes. Instead of a token, the line can have ``sha256:`` and the SHA-256 digest of the token
    in hexadecimal digits. A token without a scope allows nothing. A ``#`` at the start of a line or after white
    space starts a comment. The file is UTF-8 text, with or without a byte-order mark.

    Raises
    ------
    ValueError
        If the file cannot be read or is invalid. The message contains the path and, for an invalid line, the line
        number, but no part of the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise ValueError(f"--token-file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:  # the message of this exception contains bytes of the file, which can be a token
        raise ValueError(f"--token-file: {path} is not UTF-8 text; save the file as UTF-8") from None
    found: dict[str, frozenset[str]] = {}
    digests: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        token, *rest = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].split(maxsplit=1) or [""]
        if not token:
            continue
        words = set(" ".join(rest).replace(",", " ").split())
        if token.startswith(HASHED):
            token = token.lower()
        problem = _check_line(token, words)
        if problem is None and token_digest(token) in digests:
            problem = "the token is already in an earlier line; keep one of the two lines"
        if problem is not None:
            raise ValueError(f"--token-file: {path}, line {number}: {problem}")
        digests.add(token_digest(token))
        found[token] = frozenset(SCOPES if ALL in words else words)
    if not found:
        raise ValueError(f"--token-file: {path} contains no token; write one token per line, followed by its scopes")
    return found


def _check_line(token: str, words: set[str]) -> str | None:
    """Return what is wrong with a line, or None if the line is valid."""
    if "," in token:
        return "a token cannot contain a comma; separate the token from its scopes by a space"
    if token.startswith(HASHED) and not re.fullmatch(r"[0-9a-f]{64}", token.removeprefix(HASHED)):
        return f"{HASHED!r} must be followed by 64 hexadecimal digits, the SHA-256 digest of the token"
    if len(token) < MIN_TOKEN_LENGTH:
        return f"the token has fewer than {MIN_TOKEN_LENGTH} characters; use a longer token"
    if not words <= {*SCOPES, ALL}:
        allowed = ", ".join((*SCOPES, ALL))
        return f"a word after the token is not a scope; allowed are {allowed}, and comments after ' #'"
    return None


class TokenFile:
    """Token file of a running service.

    Parameters
    ----------
    path : Path
        The file.
    tokens : Tokens
        Receives the tokens of the file, now and after each change.

    Raises
    ------
    ValueError
        If the file cannot be read or is invalid.
    """

    def __init__(self, path: Path, tokens: Tokens) -> None:
        self._path = path
        self._tokens = tokens
        self._reload_requested = False
        self._version = self._read_version()  # before the content, so that a change in between is noticed
        self._load()

    def request_reload(self) -> None:
        """Make the next check read the file, even if it seems unchanged. Signal handlers can call this method."""
        self._reload_requested = True

    async def watch(self) -> None:
        """Check the file every ``CHECK_INTERVAL`` seconds until the task is cancelled."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            await asyncio.to_thread(self.reload_if_changed)  # a file system that hangs must not block requests

    def reload_if_changed(self) -> None:
        """Read the file again if it has changed, or if ``request_reload`` was called since the last check.

        If the file cannot be read or is invalid, the previous tokens stay valid.
        """
        version = self._read_version()
        if version == self._version and not self._reload_requested:
            return
        self._version, self._reload_requested = version, False
        try:
            self._load()
        except ValueError as error:
            _log.error("the token file was not reloaded, and the previous tokens stay valid: %s", error)

    def _read_version(self) -> tuple[int, int, int] | None:
        """Return numbers that differ after a change of the file, or None if the file cannot be found."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _load(self) -> None:
        scopes = read_token_file(self._path)
        self._tokens.replace(scopes)
        _log.info("tokens read from %s: %d", self._path, len(scopes))
        with suppress(OSError):
            if os.name != "nt" and self._path.stat().st_mode & stat.S_IRWXO:
                _log.warning("all users of this machine can access the token file; run: chmod o= %s", self._path)
        without = sum(not granted for granted in scopes.values())
        if without:
            allowed = ", ".join((*SCOPES, ALL))
            _log.warning(
                "tokens without a scope in %s: %d; they allow nothing: add one or more of %s after the token",
                self._path,
                without,
                allowed,
            )
