"""Error messages of the command line: they name options, quote user input unchanged, and show tracebacks on request."""

import os
import pickle
import signal
import subprocess
import sys
from contextvars import copy_context
from pathlib import Path

import pytest

from commandline import call, run
from locb.cli import errors
from locb.cli.errors import debug_mode, leave, leave_without_package
from locb.common.validation import ParameterError, ParameterName, check_int

SMALL = ["--rounds", "100", "--repeats", "1", "--users", "6", "--clusters", "2", "--arms", "3"]
FAILING = """
import locb

class Failing(locb.Policy):
    def recommend(self, user, contexts):
        return contexts.no_such_method()

    def update(self, user, context, reward):
        pass
"""


def test_words_in_paths_and_values_are_not_changed(tmp_path: Path) -> None:
    """The names of three parameters are also words of a file name, of a value and of a folder."""
    missing = call("data", "table", "n_users.csv", "--columns", "user=a,item=b,rating=c", cwd=tmp_path)
    assert (missing.returncode, missing.stderr) == (
        2,
        "locb: [Errno 2] Table does not exist or is not a file: 'n_users.csv'\n",
    )
    unknown = call("compare", "--policies", "n_arms", cwd=tmp_path)
    assert unknown.stderr.startswith("locb: --policies: unknown policy 'n_arms'; choose from locb, ")
    (tmp_path / "gamma must").write_text("")
    file = call("compare", *SMALL, "--policies", "linucb-one", "--output", "gamma must", cwd=tmp_path)
    assert file.stderr.startswith("locb: --output: gamma must is a file, not a folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["data", "netflix", "x", "--users", "3"], "NAME must be one of movielens, yelp, yahoo, table, not 'netflix'"),
        (["compare", "--scenarios", "flat"], "--scenarios: unknown scenario 'flat'; choose from "),
        (
            ["compare", "--scenarios", "all", "--seed", "-1"],
            "--seed must be at least 0 and --seed + --repeats at most ",
        ),
        (["compare", "--seed", "-1"], "--seed must be an integer of at least 0, not -1"),
        (["compare", "--users", "0"], "--users must be an integer of at least 1, not 0"),
        (["compare", "--alphas", "-1"], "--alphas must be at least 0, not -1.0"),
        (["compare", "--n-seeds", "0"], "--n-seeds must be at least 1, not 0"),
        (["reproduce", "--rounds", "1"], "--rounds must be at least 100, not 1"),
        (["reproduce", "--backend", "spark"], "--backend must be one of loky, dask, ray, not 'spark'"),
        (["verify", "--address", "a:1"], "--address 'a:1' requires --backend 'dask' or 'ray', not 'loky'"),
        (["verify", "--jobs", "0"], "--jobs must be -1 or at least 1, not 0"),
        (["load", "http://127.0.0.1:1", "--arms", "0"], "--arms must be an integer of at least 1, not 0"),
        (["load", "nowhere"], "URL must be an address such as http://127.0.0.1:8080 (http or https, with a valid host"),
    ],
)
def test_invalid_value_is_reported_with_the_option(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"locb: {message}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "--debug" not in done.stderr  # the message is complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "locb", "--alpha", "-1"], "--alpha must be at least 0, not -1.0"),
        (["--parameter", "beta=-1"], "--parameter beta must be at least 0, not -1.0"),
        (["--policy", "none.py:X"], "--policy: no file 'none.py'; the form of a custom policy is file.py:Class"),
    ],
)
def test_invalid_parameter_of_a_served_policy(arguments: list[str], message: str, tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    done = call("serve", "--data-dir", "state", "--dim", "3", "--port", "0", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"locb: {message}\n" in done.stderr


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    command = ["compare", *SMALL, "--clusters", "50"]
    message = "locb: --clusters must be at most --users = 6, not 50\n"
    assert call(*command, cwd=tmp_path).stderr == message
    for arguments in (["--debug", *command], [*command, "--debug"]):
        done = call(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("Traceback (most recent call last):\n")
        assert "synthetic.py" in done.stderr
        assert done.stderr.endswith(message)


def test_interruption_of_any_command_gives_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that keep results, or that cannot keep them, have messages of their own."""
    monkeypatch.setattr("locb.service.core.audit.check_log", lambda *_: signal.raise_signal(signal.SIGINT))
    done = call("store", "check", "--data-dir", "state", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "locb: interrupted; run the same command to start again\n")


def test_debug_is_suggested_if_the_cause_is_in_other_code(tmp_path: Path) -> None:
    """The second process runs the policy, so its traceback comes from there."""
    (tmp_path / "mine.py").write_text(FAILING)
    command = ["compare", *SMALL, "--policies", "mine.py:Failing,linucb-one"]
    done = call(*command, "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith("(add --debug to show the traceback)\n")
    shown = run(*command, "--jobs", "2", "--debug", cwd=tmp_path)
    assert shown.returncode == 2
    assert 'mine.py", line 6, in recommend' in shown.stderr
    assert "(add --debug" not in shown.stderr


def test_debug_shows_the_error_that_a_message_replaces(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands end with ``leave`` for errors that are not a ValueError, such as a missing package."""

    def command() -> None:
        debug_mode.set(True)
        try:
            import no_such_package  # noqa: F401 - the import fails
        except ImportError:
            leave("the command needs a package", 2)

    with pytest.raises(SystemExit, match=r"^2$"):
        copy_context().run(command)
    shown = capsys.readouterr().err
    assert "ModuleNotFoundError: No module named 'no_such_package'" in shown
    assert shown.endswith("locb: the command needs a package\n")


def test_only_packages_that_are_not_installed_are_reported_as_missing() -> None:
    """An error in locb itself is shown with its traceback."""
    with pytest.raises(SystemExit, match=r"^2$"):
        leave_without_package("serve", "service", ModuleNotFoundError("No module named 'x'", name="x"))
    for error in (ImportError("cannot import", name="locb.a"), ModuleNotFoundError("No module", name="locb.a")):
        with pytest.raises(ImportError) as caught:
            leave_without_package("serve", "service", error)
        assert caught.value is error


def test_parameter_error() -> None:
    with pytest.raises(ParameterError, match="^n_users must be at least 1, not 0$") as caught:
        check_int("n_users", 0, 1)
    error = ParameterError("low", " must be at most ", ParameterName("high"), ", not 'low'")
    for copy in (error, pickle.loads(pickle.dumps(error))):  # worker processes send errors in pickled form
        assert str(copy) == "low must be at most high, not 'low'"
        assert copy.describe(str.upper) == "LOW must be at most HIGH, not 'low'"
    assert caught.value.describe(lambda name: f"--{name}") == "--n_users must be at least 1, not 0"


def test_missing_package_is_reported_without_a_traceback(tmp_path: Path) -> None:
    """A module that cannot be imported, as if it were not installed, is in front of the real one."""
    (tmp_path / "scipy.py").write_text("raise ModuleNotFoundError(\"No module named 'scipy'\", name='scipy')\n")
    (tmp_path / "log.csv").write_text("user,arm,reward\nann,film,1\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "from locb.cli import main; main()", "groups", str(tmp_path / "log.csv")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    advice = "run make .venv/data in the clone, or pip install 'locb[data]'"
    assert done.stderr == f"locb: locb groups needs the package scipy: {advice}\n"


def test_make_target_is_named_in_a_clone_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(extras: str) -> str:
        with pytest.raises(SystemExit):
            errors.leave(f"run pip install 'locb[{extras}]'", 2)
        return capsys.readouterr().err.removeprefix("locb: ").rstrip()

    assert shown("client,service") == "run make .venv/service in the clone, or pip install 'locb[client,service]'"
    assert shown("dask") == "run pip install 'locb[dask]'"  # no make target installs it
    monkeypatch.setattr(errors, "PACKAGE", str(tmp_path / "lib" / "python3.11" / "site-packages" / "locb"))
    assert shown("data") == "run pip install 'locb[data]'"


def test_tables_in_a_pipe_are_complete(tmp_path: Path) -> None:
    rows = [f"ann,{arm},{reward},0.5\n" for arm in ("dumbbell", "yoga-mat") for reward in (0, 1)]
    (tmp_path / "log.csv").write_text("user,arm,reward,propensity\n" + "".join(rows) * 10)
    policies = ["--policy", "arm:dumbbell", "--policy", "arm:yoga-mat"]
    command = [
        sys.executable,
        "-c",
        "from locb.cli import main; main()",
        "evaluate",
        str(tmp_path / "log.csv"),
        *policies,
    ]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert [line for line in lines if "arm:dumbbell" in line and "arm:yoga-mat" not in line], done.stdout
    assert max(map(len, lines)) > 80
    assert "…" not in "".join(line for line in lines if "│" in line)
