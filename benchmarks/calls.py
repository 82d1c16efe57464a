"""Time of ``recommend`` and ``update``, called from Python for one round at a time, and of ``recommend_many``.

The rounds have 100 users, 10 features and 10 arms. ``play`` runs the same rounds in one call. ``recommend_many`` is
measured with 100,000 users, with one thread and with all threads.
"""

import time
from typing import Any

from synthetic_rounds import make_block
from timing import best_of, print_table

import locb
from locb.kernels.common import batch_choice

USERS, ARMS, FEATURES = 100, 10, 10
BLOCK, BLOCKS = 500, 100  # the fastest block counts, so that other processes distort the result less
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("LinUCB-IND", "linucb-ind", {}),
    ("CLUB, complete graph", "club", {}),
    ("SCLUB", "sclub", {}),
    ("LOCB, 30 seeds", "locb", {"n_seeds": 30}),
    ("LOCB, 30 seeds, float32", "locb", {"n_seeds": 30, "dtype": "float32"}),
    ("ELOC, 30 seeds", "eloc", {"n_seeds": 30}),
]
MANY_USERS, BATCH = 100_000, 200_000
MANY_CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("LinUCB-IND", "linucb-ind", {}),
    ("LOCB, 30 seeds, pooled bonus", "locb", {"n_seeds": 30, "bonus": "pooled"}),
    ("ELOC, 30 seeds", "eloc", {"n_seeds": 30}),
]


def measure_calls(policy: Any, rounds: locb.Rounds) -> tuple[float, float]:
    """Return the time per call of ``recommend`` and of ``update`` in seconds, in the fastest blocks."""
    users, contexts, rewards = rounds.users.tolist(), list(rounds.contexts), rounds.rewards.tolist()
    fastest = [float("inf"), float("inf")]
    for start in range(0, len(rounds), BLOCK):
        block = range(start, start + BLOCK)
        recommended, learned = 0.0, 0.0
        for t in block:
            user, offered, earned = users[t], contexts[t], rewards[t]
            started = time.perf_counter()
            arm = policy.recommend(user, offered)
            between = time.perf_counter()
            policy.update(user, offered[arm], earned[arm])
            learned += time.perf_counter() - between
            recommended += between - started
        fastest = [min(fastest[0], recommended / BLOCK), min(fastest[1], learned / BLOCK)]
    return fastest[0], fastest[1]


def measure_play(policy: Any, rounds: locb.Rounds) -> float:
    """Return the time per round of ``play`` in seconds, in the fastest block."""
    fastest = float("inf")
    for start in range(0, len(rounds), BLOCK):
        block = rounds.slice(start, start + BLOCK)
        started = time.perf_counter()
        policy.play(block)
        fastest = min(fastest, (time.perf_counter() - started) / BLOCK)
    return fastest


def measure_many(policy: Any, users: Any, contexts: Any, threads: int) -> float:
    """Return the time per decision of ``recommend_many`` in seconds, in the fastest of several calls."""
    usual, batch_choice.MAX_THREADS = batch_choice.MAX_THREADS, threads
    try:
        return best_of(lambda: lambda: policy.recommend_many(users, contexts), 5) / len(users)
    finally:
        batch_choice.MAX_THREADS = usual


def print_many() -> None:
    """Measure ``recommend_many`` and print the table."""
    rows, reference = [], 0.0
    rounds = make_block(BATCH, MANY_USERS, ARMS, FEATURES, seed=2)
    for title, name, parameters in MANY_CASES:
        policy: Any = locb.make_policy(name, n_users=MANY_USERS, dim=FEATURES, **parameters)
        policy.play(make_block(2 * MANY_USERS, MANY_USERS, ARMS, FEATURES, seed=1))
        one, all_threads = (
            measure_many(policy, rounds.users, rounds.contexts, n) for n in (1, batch_choice.MAX_THREADS)
        )
        reference = reference or one
        million_per_second = 1e-6 / all_threads
        rows.append(
            (
                title,
                f"{1e6 * one:.2f}",
                f"{one / reference:.2f}",
                f"{one / all_threads:.2f}",
                f"{million_per_second:.2f}",
            )
        )
    title = f"recommend_many: {MANY_USERS:,} users, {FEATURES} features, {ARMS} arms, {BATCH:,} decisions per call"
    headings = ("policy", "one thread, µs", "× LinUCB-IND", "speedup by threads", "million decisions per second")
    print_table(title, headings, rows)


def main() -> None:
    """Measure all policies and print the tables."""
    rounds = make_block(BLOCK * BLOCKS, USERS, ARMS, FEATURES, seed=0)
    warm_up = make_block(20_000, USERS, ARMS, FEATURES, seed=1)
    rows, reference = [], 0.0
    for title, name, parameters in CASES:
        called, played = (locb.make_policy(name, n_users=USERS, dim=FEATURES, **parameters) for _ in range(2))
        called.play(warm_up)
        played.play(warm_up)
        recommend, update = measure_calls(called, rounds)
        play = measure_play(played, rounds)
        total = recommend + update
        reference = reference or total
        rows.append((title, *(f"{1e6 * s:.2f}" for s in (recommend, update, total, play)), f"{total / reference:.2f}"))
    title = f"calls from Python: {USERS} users, {FEATURES} features, {ARMS} arms"
    print_table(title, ("policy", "recommend, µs", "update, µs", "both, µs", "play, µs", "both, × LinUCB-IND"), rows)
    print_many()


if __name__ == "__main__":
    main()
