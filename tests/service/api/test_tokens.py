"""Tokens and their scopes. No message contains a token."""

from pathlib import Path

import pytest

from locb.service.api.auth import Tokens, is_loopback, read_tokens

FIRST, SECOND = "first-token-of-a-client", "second-token-of-a-client"


def write_tokens(folder: Path, *lines: str) -> Path:
    path = folder / "tokens"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_read_tokens(tmp_path: Path) -> None:
    path = write_tokens(
        tmp_path,
        "# comment",
        "",
        f"{FIRST} decide # the shop",
        f"  {SECOND}\tread, delete  ",
        "third-token-for-all",
    )
    tokens = read_tokens(path)
    assert bool(tokens)
    assert tokens.granted(FIRST.encode()) == {"decide"}
    assert tokens.granted(SECOND.encode()) == {"read", "delete"}
    assert tokens.granted(b"third-token-for-all") == {"decide", "read", "delete"}
    for wrong in (b"", FIRST.encode()[:-1], FIRST.encode() + b"x", FIRST.upper().encode(), b"\xff\0"):
        assert tokens.granted(wrong) is None


def test_no_tokens() -> None:
    assert not Tokens()
    assert Tokens().granted(b"") is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["short-SECRET"], "line 1 has fewer than 16 characters"),
        (["# first", f"{FIRST}-SECRET decide", f"{SECOND}-SECRET decide,write"], "line 3 has an unknown scope"),
        (["# comments only"], "contains no token"),
        ([], "contains no token"),
    ],
)
def test_invalid_file(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--token-file: .*{message}") as caught:
        read_tokens(write_tokens(tmp_path, *lines))
    assert "SECRET" not in str(caught.value)


def test_message_for_a_binary_file_does_not_contain_it(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_bytes(b"\xffSECRET-and-more-of-it decide")
    with pytest.raises(ValueError, match="--token-file") as caught:
        read_tokens(tmp_path / "tokens")
    assert "SECRET" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--token-file: cannot read .*missing: No such file or directory"):
        read_tokens(tmp_path / "missing")


def test_tokens_are_not_stored() -> None:
    tokens = Tokens({FIRST: frozenset({"read"})})
    assert FIRST not in repr(vars(tokens))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_hosts(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", ""])
def test_other_hosts(host: str) -> None:
    assert not is_loopback(host)
