"""Time of ``recommend`` and ``update``, called from Python for one round at a time, for every policy.

The rounds have 100 users, 10 features and 10 arms. ``play`` runs the same rounds in one call.
"""

import time
from typing import Any

from synthetic_rounds import make_block
from timing import print_table

import locb

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


def main() -> None:
    """Measure all policies and print the table."""
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


if __name__ == "__main__":
    main()
