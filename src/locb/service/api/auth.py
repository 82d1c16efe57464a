"""Who may do what: bearer tokens and their scopes."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from functools import lru_cache
from pathlib import Path

SCOPES = ("decide", "read", "delete")
SHORTEST = 16


class Tokens:
    """Tokens by their digests; the tokens themselves are not kept.

    Parameters
    ----------
    scopes : mapping of token to scopes
        None at all: everybody who reaches the service may do everything.
    """

    def __init__(self, scopes: dict[str, frozenset[str]] | None = None) -> None:
        self._digests = [(_digest(token.encode()), granted) for token, granted in (scopes or {}).items()]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def granted(self, token: bytes) -> frozenset[str] | None:
        """The scopes of a token; None if it is not known. Takes as long for one as for another."""
        given = _digest(token)
        found = None
        for digest, granted in self._digests:
            if hmac.compare_digest(digest, given):
                found = granted
        return found


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def read_tokens(path: Path) -> Tokens:
    """Tokens from a file: one a line, then the scopes it is for (all if none is named); ``#`` begins a remark.

    Raises
    ------
    ValueError
        If a line cannot be understood; it is told by its number, never by its words.
    """
    found: dict[str, frozenset[str]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:  # it holds what it could not decode
        raise ValueError(f"--token-file: {path} is not text in UTF-8") from None
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if not words:
            continue
        token, scopes = words[0], frozenset(words[1:]) or frozenset(SCOPES)
        if len(token) < SHORTEST:
            raise ValueError(f"--token-file: the token in line {number} has fewer than {SHORTEST} characters")
        if not scopes <= set(SCOPES):
            raise ValueError(f"--token-file: line {number} names a scope that is none of {', '.join(SCOPES)}")
        found[token] = scopes
    if not found:
        raise ValueError(f"--token-file: {path} holds no token")
    return Tokens(found)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
