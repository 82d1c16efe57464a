"""Tokens and their scopes, and the file that contains them. No message contains a token."""

import hashlib
import logging
import os
from pathlib import Path

import pytest

from locb.cli.watch import _read_token
from locb.service.api.auth import Tokens
from locb.service.api.middleware import is_loopback
from locb.service.api.scopes import SCOPES
from locb.service.api.token_file import TokenFile, read_token_file

FIRST, SECOND = "first-token-of-a-client", "second-token-of-a-client"
HASHED = f"sha256:{hashlib.sha256(FIRST.encode()).hexdigest()}"
ALL_SCOPES = frozenset(SCOPES)


def write_tokens(folder: Path, *lines: str) -> Path:
    path = folder / "tokens"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "token", "scopes"),
    [
        (f"{FIRST} decide", FIRST, {"decide"}),
        (f"  {FIRST}\tread, delete  ", FIRST, {"read", "delete"}),
        (f"{FIRST} read,delete", FIRST, {"read", "delete"}),
        (f"{FIRST} decide # the shop", FIRST, {"decide"}),
        (f"{FIRST} decide #delete", FIRST, {"decide"}),
        (f"{FIRST}#tail decide", f"{FIRST}#tail", {"decide"}),
        (f"#{FIRST} decide\n{SECOND} read", SECOND, {"read"}),
        (f"\t# comment\n\n{SECOND} read", SECOND, {"read"}),
        (f"\ufeff{FIRST} decide", FIRST, {"decide"}),
        (f"\ufeff# comment\n{FIRST} decide", FIRST, {"decide"}),
        (f"{FIRST} decide\r\n{SECOND} read\r\n", SECOND, {"read"}),
        (f"{FIRST} all", FIRST, set(SCOPES)),
        (f"{FIRST} all read", FIRST, set(SCOPES)),
        (FIRST, FIRST, set()),
        (f"{HASHED} decide # the shop", HASHED, {"decide"}),
        (f"{HASHED.upper().replace('SHA', 'sha')} read", HASHED, {"read"}),
        (f"{FIRST} # all", FIRST, set()),
        (f"{FIRST} ,", FIRST, set()),
    ],
)
def test_lines(line: str, token: str, scopes: set[str], tmp_path: Path) -> None:
    found = read_token_file(write_tokens(tmp_path, line))
    assert found[token] == scopes
    assert set(found) <= {token, FIRST, SECOND}
    assert Tokens(found).granted((FIRST if token == HASHED else token).encode()) == scopes
    assert Tokens(found).granted(HASHED.encode()) is None  # the hash is not a token


def test_tokens_match_exactly() -> None:
    tokens = Tokens({FIRST: frozenset({"decide"}), SECOND: frozenset()})
    assert tokens.required
    assert tokens.granted(FIRST.encode()) == {"decide"}
    assert tokens.granted(SECOND.encode()) == frozenset()
    for wrong in (b"", FIRST.encode()[:-1], FIRST.encode() + b"x", FIRST.upper().encode(), b"\xff\0"):
        assert tokens.granted(wrong) is None


def test_no_tokens() -> None:
    assert not Tokens().required
    assert Tokens().granted(b"") is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["short-SECRET all"], "tokens, line 1: the token has fewer than 16 characters"),
        (["# first", f"{FIRST}-SECRET read", f"{SECOND}-SECRET read,write"], "tokens, line 3: a word after the token"),
        ([f"{FIRST} {SECOND}-SECRET"], "tokens, line 1: a word after the token is not a scope; allowed are decide, "),
        ([f"{FIRST} decide,#SECRET"], "tokens, line 1: a word after the token"),
        ([f"{FIRST} ALL"], "tokens, line 1: a word after the token"),
        ([f"{FIRST}-SECRET,decide"], "tokens, line 1: a token cannot contain a comma"),
        ([f"{FIRST}-SECRET read", f"{FIRST}-SECRET all"], "tokens, line 2: the token is already in an earlier line"),
        ([f"{FIRST} read", f"{HASHED} all"], "tokens, line 2: the token is already in an earlier line"),
        (["sha256:SECRET0123456789 all"], "tokens, line 1: 'sha256:' must be followed by 64 hexadecimal digits"),
        ([f"{HASHED}0 all"], "tokens, line 1: 'sha256:' must be followed by 64 hexadecimal digits"),
        (["# comments only"], "tokens contains no token"),
        ([], "tokens contains no token"),
    ],
)
def test_invalid_file(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--token-file: {tmp_path}/{message}") as caught:
        read_token_file(write_tokens(tmp_path, *lines))
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xffSECRET-and-more-of-it decide", "SECRET-and-more decide".encode("utf-16")])
def test_message_for_a_binary_file_does_not_contain_it(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_bytes(content)
    with pytest.raises(ValueError, match="--token-file: .*tokens is not UTF-8 text") as caught:
        read_token_file(tmp_path / "tokens")
    assert "SECRET" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--token-file: cannot read .*missing: No such file or directory"):
        read_token_file(tmp_path / "missing")


def test_tokens_are_not_stored() -> None:
    tokens = Tokens({FIRST: frozenset({"read"})})
    assert FIRST not in repr(vars(tokens))


def test_changed_file_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_tokens(tmp_path, f"{FIRST} all", SECOND)
    tokens = Tokens()
    with caplog.at_level(logging.INFO):
        file = TokenFile(path, tokens)
    assert ": 1; they allow nothing: add one or more of decide, read, delete, all" in caplog.text
    assert tokens.granted(FIRST.encode()) == ALL_SCOPES
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        file.reload_if_changed()
        assert caplog.text == ""
        for change in (
            lambda: write_tokens(tmp_path, f"{SECOND} decide read"),  # in place
            lambda: write_tokens(tmp_path, f"{SECOND} read"),
            lambda: replace_file(path, f"{SECOND} all "),  # with the size and time of the previous file
        ):
            change()
            file.reload_if_changed()
            assert tokens.granted(FIRST.encode()) is None
            assert tokens.granted(SECOND.encode()) == read_token_file(path)[SECOND]
        assert caplog.text.count("tokens read from") == 3
    assert FIRST not in caplog.text
    assert SECOND not in caplog.text


def replace_file(path: Path, text: str) -> None:
    """Replace a file by a new one with the same name, as editors do, and with the same modification time."""
    new, status = path.with_name("new"), path.stat()
    new.write_text(text, encoding="utf-8")
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(path)


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)])
def test_warning_for_a_file_that_others_can_access(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warns: bool
) -> None:
    path = write_tokens(tmp_path, f"{FIRST} read")
    path.chmod(mode)
    with caplog.at_level(logging.WARNING):
        TokenFile(path, Tokens())
    assert (f"all users of this machine can access the token file; run: chmod o= {path}" in caplog.text) == warns


def test_watch_skips_hashed_tokens(tmp_path: Path) -> None:
    assert _read_token(None, write_tokens(tmp_path, f"{HASHED} read", f"{SECOND} read")) == SECOND


def test_previous_tokens_stay_valid_while_the_file_is_invalid(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_tokens(tmp_path, f"{FIRST} read")
    tokens = Tokens()
    file = TokenFile(path, tokens)
    for break_file in (
        lambda: write_tokens(tmp_path, f"{SECOND} everything"),
        lambda: write_tokens(tmp_path, ""),
        path.unlink,
    ):
        break_file()
        caplog.clear()
        file.reload_if_changed()
        file.reload_if_changed()
        (record,) = caplog.records  # reported once, not at every check
        assert record.levelname == "ERROR"
        assert "--token-file" in record.message
        assert SECOND not in record.message
        assert tokens.granted(FIRST.encode()) == {"read"}
        assert tokens.granted(SECOND.encode()) is None
    write_tokens(tmp_path, f"{SECOND} read")
    file.reload_if_changed()
    assert tokens.granted(FIRST.encode()) is None
    assert tokens.granted(SECOND.encode()) == {"read"}


def test_requested_reload_reads_a_file_that_seems_unchanged(tmp_path: Path) -> None:
    path = write_tokens(tmp_path, f"{FIRST} read")
    tokens = Tokens()
    file = TokenFile(path, tokens)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    write_tokens(tmp_path, f"{FIRST} all ")  # as long as before
    os.utime(path, ns=times)
    file.reload_if_changed()
    assert tokens.granted(FIRST.encode()) == {"read"}
    file.request_reload()
    file.reload_if_changed()
    assert tokens.granted(FIRST.encode()) == ALL_SCOPES


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_hosts(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", ""])
def test_other_hosts(host: str) -> None:
    assert not is_loopback(host)
