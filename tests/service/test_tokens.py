"""Tokens: who may do what, and nothing of them in any message."""

from pathlib import Path

import pytest

from locb.service.api.auth import Tokens, is_loopback, read_tokens

LONG, OTHER = "a-token-of-somebody", "another-token-still"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "tokens"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_file_of_tokens(tmp_path: Path) -> None:
    tokens = read_tokens(
        written(
            tmp_path,
            "# who may do what",
            "",
            f"{LONG} decide # the shop",
            f"  {OTHER}\tread, delete  ",
            "third-token-for-all",
        )
    )
    assert bool(tokens)
    assert tokens.granted(LONG.encode()) == {"decide"}
    assert tokens.granted(OTHER.encode()) == {"read", "delete"}
    assert tokens.granted(b"third-token-for-all") == {"decide", "read", "delete"}
    for wrong in (b"", LONG.encode()[:-1], LONG.encode() + b"x", LONG.upper().encode(), b"\xff\0"):
        assert tokens.granted(wrong) is None


def test_no_tokens_at_all() -> None:
    assert not Tokens()
    assert Tokens().granted(b"") is None


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["short-SECRET"], "line 1 has fewer than 16 characters"),
        (["# first", f"{LONG}-SECRET decide", f"{OTHER}-SECRET decide,write"], "line 3 has an unknown scope"),
        (["# nothing but remarks"], "contains no token"),
        ([], "contains no token"),
    ],
)
def test_a_file_that_cannot_be_understood(lines: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"--token-file: .*{told}") as caught:
        read_tokens(written(tmp_path, *lines))
    assert "SECRET" not in str(caught.value)


def test_a_file_that_is_not_text_tells_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_bytes(b"\xffSECRET-and-more-of-it decide")
    with pytest.raises(ValueError, match="--token-file") as caught:
        read_tokens(tmp_path / "tokens")
    assert "SECRET" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nobody"):
        read_tokens(tmp_path / "nobody")


def test_the_tokens_themselves_are_not_kept() -> None:
    tokens = Tokens({LONG: frozenset({"read"})})
    assert LONG not in repr(vars(tokens))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", ""])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)
