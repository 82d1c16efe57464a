"""The command ``locb warmup``, and the detection of compiled policies."""

import re
from pathlib import Path

import pytest

from commandline import call, run
from locb.experiments import compilation


def test_second_call_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCB_QUIET", "0")
    command = ("warmup", "--policy", "linucb-ind", "--policy", "linucb-one", "--jobs", "1")
    first = run(*command, cwd=tmp_path)
    assert re.search(r"^linucb-ind: compiled in \d+\.\d s$", first.stdout, re.MULTILINE)
    assert re.search(r"^Compiled [1-9]\d* functions in \d+\.\d s\. Cache: ", first.stdout, re.MULTILINE)
    assert first.stderr == ""
    second = run(*command, cwd=tmp_path)
    assert second.stdout.splitlines()[:2] == ["linucb-ind: already compiled", "linucb-one: already compiled"]
    assert second.stdout.splitlines()[2].startswith("Found all compiled code in ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "linear"), "policy: unknown policy 'linear'; choose from locb, eloc"),
        (("--jobs", "0"), "--jobs must be -1 or at least 1"),
    ],
)
def test_invalid_options(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = call("warmup", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_default_policies_start_with_the_slowest() -> None:
    names = compilation.default_names()
    assert names[0] == "eloc"
    assert {"locb", "club", "sclub", "linucb-ind", "linucb-one"} < set(names)


def test_number_of_compiled_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "kernel_cache_dir", lambda: tmp_path / "kernels")
    assert compilation.count_cached() == 0
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.kernel").touch()
    (tmp_path / "kernels" / "incomplete-1").touch()
    assert compilation.count_cached() == 1
