"""Custom policies from Python files: their modules and names do not replace those of others."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commandline import call, run
from locb.experiments.custom_policy import register_custom_policy
from locb.policies import POLICIES, REGISTRY

SOURCE = """
import locb

class {name}(locb.Policy):
    def recommend(self, user, contexts):
        return 0

    def update(self, user, context, reward):
        pass
"""
SMALL = ["--rounds", "100", "--repeats", "2", "--users", "6", "--clusters", "2", "--arms", "3"]


def write_policy(path: Path, name: str) -> str:
    """Write a policy to a file and return the reference to it."""
    path.write_text(SOURCE.format(name=name))
    return f"{path}:{name}"


@pytest.fixture(autouse=True)
def restored_registry() -> Iterator[None]:
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def test_file_named_like_a_standard_module_does_not_replace_it(tmp_path: Path) -> None:
    name = register_custom_policy(write_policy(tmp_path / "json.py", "Mine"))
    assert sys.modules["json"] is json
    assert POLICIES[name].__module__ != "json"


def test_comparison_with_a_file_named_like_a_standard_module(tmp_path: Path) -> None:
    """Two processes run the policy, so that the class is also sent to a worker."""
    (tmp_path / "mine").mkdir()
    write_policy(tmp_path / "mine" / "json.py", "Mine")
    done = run("compare", *SMALL, "--policies", "mine/json.py:Mine", "--jobs", "2", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["results"][0]["policy"] == "Mine"


def test_class_with_the_name_of_a_built_in_policy_is_refused(tmp_path: Path) -> None:
    spec = REGISTRY["locb"]
    reference = write_policy(tmp_path / "mine.py", "locb")
    with pytest.raises(ValueError, match="mine.py has the class 'locb', which is the name of a built-in policy"):
        register_custom_policy(reference)
    assert REGISTRY["locb"] is spec


def test_two_files_with_the_same_class_name_are_refused(tmp_path: Path) -> None:
    for name in ("one.py", "two.py"):
        write_policy(tmp_path / name, "Mine")
    done = call("compare", *SMALL, "--policies", "one.py:Mine,two.py:Mine", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "locb: --policies: one.py:Mine and two.py:Mine have the same class name; rename one of them\n"


def test_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("1 / 0")
    before = set(sys.modules)
    with pytest.raises(ValueError, match=r"loading .*mine.py raised ZeroDivisionError"):
        register_custom_policy(f"{tmp_path / 'mine.py'}:Mine")
    assert not [name for name in set(sys.modules) - before if "mine" in name]
