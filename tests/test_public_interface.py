"""The public names of the package, and its types in a program outside the repository."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import locb
from locb.cli.comparison.compare import compare
from locb.cli.data.evaluate import evaluate
from locb.cli.data.groups import groups
from locb.cli.data.tune import tune

CONSUMER = '''
from pathlib import Path
from typing import Any

import locb


class Last(locb.Policy):
    """A custom policy."""

    def recommend(self, user: int, contexts: Any) -> int:
        return len(contexts) - 1

    def update(self, user: int, context: Any, reward: float) -> None:
        return None


def main() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, raw_dim=5, n_arms=4, seed=7)
    policy = locb.LOCB(n_users=10, dim=env.dim, gamma=0.3, seeds=[0, 1], radius="regret", min_eigenvalue=None)
    arm: int = policy.recommend(0, env.rounds(1).contexts[0])
    policy.add_users(2)
    first: locb.Cluster = policy.clusters()[0]
    bound: float = policy.certificate(first)
    run = locb.simulate(Last(n_users=10, dim=env.dim), env, rounds=100)
    score: locb.ClusterScore = locb.match_clusters([first], env.true_clusters())
    recommender = locb.Recommender("locb", arms={"a": {"genre": "drama", "new": True}, "b": [1.0, 0.5]}, gamma=0.3)
    decision: locb.Recommendation = recommender.recommend("ann", ["a", "b"], count=None)
    recommender.reward(decision.decision_id, 1)
    name: str = recommender.groups()[0].users[0]
    policy.save(Path("policy.locb"))
    print(arm, name, bound, run.regret[-1], score.f1, locb.load("policy.locb").n_users, locb.make_policy("club").dim)
'''
WRONG = [
    ('locb.LOCB(n_users="ten", dim=3)', "arg-type"),
    ("locb.LOCB(n_users=10)", "call-arg"),
    ("locb.LOCB(n_users=10, dim=3, speed=2)", "call-arg"),
    ("locb.Last", "attr-defined"),
    ("locb.Policy(n_users=1, dim=1).save", "attr-defined"),
]


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(locb) == sorted(locb.__all__)
    for name in locb.__all__:
        assert getattr(locb, name) is not None
    assert dir(locb) == sorted(locb.__all__)
    with pytest.raises(AttributeError, match="module 'locb' has no attribute 'oracle'"):
        locb.oracle  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    ("command", "function"),
    [(compare, locb.compare), (evaluate, locb.evaluate), (groups, locb.find_groups), (tune, locb.tune)],
    ids=["compare", "evaluate", "groups", "tune"],
)
def test_commands_have_the_defaults_of_the_library(command: Callable[..., Any], function: Callable[..., Any]) -> None:
    options, parameters = inspect.signature(command).parameters, inspect.signature(function).parameters
    common = {name for name in options.keys() & parameters.keys() if options[name].default is not None}
    assert len(common) >= 4
    for name in common:
        assert options[name].default == parameters[name].default, name


def test_a_typed_consumer(tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER)
    lines = "".join(f"{text}\n" for text, _ in WRONG)
    (tmp_path / "wrong.py").write_text(f"import locb\n{lines}")
    source = Path(locb.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, "--config-file", "", "consumer.py", "wrong.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(source)},
        timeout=300,
    )
    found = [line.split(":", 2) for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in found if line[0] != "wrong.py"] == [], done.stdout + done.stderr
    for number, (text, code) in enumerate(WRONG, start=2):
        messages = [message for _, line, message in found if int(line) == number]
        assert any(message.endswith(f"[{code}]") for message in messages), (text, messages, done.stderr)
