"""Search for installed versions of Python, and the versions that the project says are tested."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import python_versions

ROOT = Path(__file__).parent.parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def add_program(folder: Path, name: str, output: str, status: int = 0) -> Path:
    """Write a program that prints its output and exits with a status, such as a fake interpreter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{output}'\nexit {status}\n")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty machine: no interpreter on PATH, and none of pyenv or uv."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    return tmp_path


def test_versions_are_found_on_path_and_in_the_folders_of_pyenv_and_uv(machine: Path) -> None:
    add_program(machine / "first", "python3", "3 12 4 final")
    expected = add_program(machine / "pyenv" / "versions" / "3.13.0" / "bin", "python3.13", "3 13 0 final")
    uv = add_program(machine / "uv" / "cpython-3.14.1" / "bin", "python3.14", "3 14 1 final")
    add_program(machine / "second", "python3.12", "3 12 9 final")  # a version that PATH has before
    add_program(machine / "first", "python3-config", "3 15 0 final")
    add_program(machine / "first", "python3.10", "3 10 9 final")
    add_program(machine / "second", "python3.11", "", 127)  # a shim of pyenv without a version
    add_program(machine / "uv" / "cpython-3.15.0a1" / "bin", "python3.15", "3 15 0 alpha")
    found = python_versions.installed_versions()
    assert [(python.version, python.path) for python in found] == [
        ((3, 12, 4), machine / "first" / "python3"),
        ((3, 13, 0), expected),
        ((3, 14, 1), uv),
    ]


def test_running_interpreter_is_found() -> None:
    python = python_versions.probe(Path(sys.executable))
    assert python is not None
    assert python.version == sys.version_info[:3]
    assert python_versions.probe(Path(sys.executable).with_name("missing")) is None


def run_main(machine: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, failing: str = "none") -> int:
    """Run the tool with a program that records the arguments of make instead of running it."""
    make = machine / "make"
    make.write_text(f'#!/bin/sh\necho "$@" >> {machine / "calls"}\ncase "$*" in *{failing}*) exit 2;; esac\n')
    make.chmod(0o755)
    monkeypatch.setenv("MAKE", str(make))
    monkeypatch.setattr(sys, "argv", ["python_versions", *arguments])
    return python_versions.main()


def test_oldest_and_newest_version_are_tested(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for minor in (11, 12, 13):
        add_program(machine / "first", f"python3.{minor}", f"3 {minor} 5 final")
    assert run_main(machine, monkeypatch, "tests/a", "tests/b", failing="3.11") == 1
    expected = [
        f"--no-print-directory test VENV=.venv-3.{minor} PYTHON={machine}/first/python3.{minor} TESTS=tests/a tests/b"
        for minor in (11, 13)
    ]
    assert (
        machine / "calls"
    ).read_text().splitlines() == expected  # the failure of one version does not stop the other
    output = capsys.readouterr()
    assert "Installed versions of Python: 3.11.5, 3.12.5, 3.13.5\n" in output.out
    assert output.err == "Tests failed with Python 3.11.\n"


def test_tested_version_is_left_out(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for minor in (11, 13):
        add_program(machine / "first", f"python3.{minor}", f"3 {minor} 5 final")
    add_program(machine / "env" / "bin", "python", "3 11 2 final")
    assert run_main(machine, monkeypatch, "--tested", str(machine / "env")) == 0
    (call,) = (machine / "calls").read_text().splitlines()
    assert "VENV=.venv-3.13" in call
    assert call.endswith(f"TESTS={' '.join(python_versions.TESTS)}")
    assert f"Python 3.11 is already tested in {machine / 'env'}." in capsys.readouterr().out


def test_a_machine_without_python_is_an_error(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_program(machine / "first", "python3", "3 9 1 final")
    assert run_main(machine, monkeypatch) == 2
    assert not (machine / "calls").exists()
    assert capsys.readouterr().err == "No Python 3.11 or newer is installed.\n"


def test_selected_tests_exist() -> None:
    paths = [path.removeprefix("--ignore=") for path in python_versions.TESTS]
    assert "tests/test_oracle.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_make_test_uses_the_given_environment_and_tests() -> None:
    command = ["make", "-n", "test", "VENV=.venv-x", "PYTHON=/x/python3", "TESTS=tests/a tests/b"]
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}  # of an outer make
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "/x/python3 -m venv .venv-x" in lines
    assert lines[-1].endswith(" .venv-x/bin/python -m pytest -n 3 --dist worksteal -q tests/a tests/b")
    assert ".venv/" not in done.stdout


def test_readme_classifiers_and_workflow_name_the_same_versions() -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [int(name.removeprefix(prefix)) for name in PYPROJECT["project"]["classifiers"] if name.startswith(prefix)]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PYPROJECT["project"]["requires-python"] == f">=3.{minors[0]}"
    assert (3, minors[0]) == python_versions.OLDEST_SUPPORTED
    names = [f"3.{minor}" for minor in minors]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"The tests run with Python {', '.join(names[:-1])} and {names[-1]}." in readme
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)
    assert re.findall(r"[\d.]+", matrix) == names


def test_ci_tests_the_installed_versions() -> None:
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.partition("  #")[0] for line in commands if line.startswith("make ")] == [
        "make lint",
        "make test",
        "make versions TESTED=.venv",
        "make interpreted",
        "make docs",
    ]


def test_tests_of_the_makefile_exist() -> None:
    paths = re.findall(r"\btests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "tests/warm_up.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
