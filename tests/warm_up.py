"""Compile the kernels of all policies before the tests, in two processes. Otherwise each test process compiles them."""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import conftest  # noqa: F401 - sets the directory of compiled kernels

DTYPES = ("float64", "float32")
POLICIES = ("eloc", "locb", "sclub", "club", "linucb-ind")  # slowest first
# Tests use these in float64 only.
FLOAT64_ONLY = ("rclumb", "mixed-effects", "dynucb", "cab", "hybrid-linucb", "lints-ind")
# Only played in float32, because only the type of their rows changes.
PLAYED_ONLY = ("sclub", "club")


def compile_policy(name: str, dtype: str) -> float:
    """Call every method of a policy that has a kernel once, and return the seconds."""
    import locb

    started = time.perf_counter()
    env = locb.Synthetic(n_users=8, n_clusters=2, raw_dim=2, n_arms=3)
    rounds = env.rounds(20)
    policy: Any = locb.make_policy(name, n_users=8, dim=env.dim, dtype=dtype)
    policy.play(rounds)
    if dtype == "float32" and name in PLAYED_ONLY:
        return time.perf_counter() - started
    policy.update(0, rounds.contexts[0, policy.recommend(0, rounds.contexts[0])], 1.0)
    policy.explain(0, rounds.contexts[0])
    if name != "cab":
        policy.correct(0, rounds.contexts[0, 0], 1.0, 0.0)
    policy.add_users(1)
    policy.clusters()
    policy.similar_users(0)
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy")
        locb.load(Path(folder) / "policy")
    return time.perf_counter() - started


def main() -> None:
    """Compile all policies, two at a time, first in float64, then in float32."""
    from locb.experiments.compilation import run_in_processes

    warnings.simplefilter("error")
    tasks = [(name, dtype) for dtype in DTYPES for name in POLICIES]
    tasks[len(POLICIES) : len(POLICIES)] = [(name, "float64") for name in FLOAT64_ONLY]
    for _ in run_in_processes(compile_policy, tasks, 2):
        pass


if __name__ == "__main__":
    sys.exit(main())
