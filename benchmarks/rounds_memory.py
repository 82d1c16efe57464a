"""Measure memory and time of rounds over a catalogue: 193,000 rounds, 800 items, 10 features, played with LinUCB.

Run it with ``python benchmarks/rounds_memory.py``. An array of all contexts would take 11.5 GiB.
"""

from __future__ import annotations

import resource
import time

import numpy as np

import locb

ROUNDS, ITEMS, DIM, USERS = 193_000, 800, 10, 100


def peak() -> float:
    """Return the peak memory of the process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the memory of the arrays, the increase of the peak memory of the process, and the CPU time per round."""
    rng = np.random.default_rng(1)
    policy = locb.LinUCB(n_users=USERS, dim=DIM)
    policy.prepare()
    policy.play(locb.Rounds.of_items([0], np.eye(DIM), np.zeros((1, DIM))))
    before = peak()
    items, users = rng.normal(size=(ITEMS, DIM)), rng.integers(USERS, size=ROUNDS)
    arms = np.empty((ROUNDS, ITEMS), np.uint16)
    for t in range(ROUNDS):
        arms[t] = rng.permutation(ITEMS)
    observed, rewards = rng.integers(ITEMS, size=ROUNDS), rng.random(ROUNDS)
    given = peak()
    rounds = locb.Rounds.of_items(users, items, rewards, arms=arms, observed=observed)
    made = peak()
    started = time.process_time()
    chosen = policy.play(rounds)
    seconds = time.process_time() - started
    stored = sum(array.nbytes for array in rounds.arrays().values()) + rounds.contexts.items.nbytes
    print(rounds)
    print(f"arrays of the rounds {stored / 2**20:.0f} MB, of which indices {arms.nbytes / 2**20:.0f} MB")
    print(
        f"peak memory: arguments +{given - before:.0f} MB, Rounds +{made - given:.0f} MB, play +{peak() - made:.0f} MB"
    )
    print(f"play: {1e6 * seconds / ROUNDS:.1f} µs of CPU per round, {policy.served.sum():,} rewards learned")
    everywhere = locb.Rounds.of_items(users, items, np.zeros((ROUNDS, ITEMS), bool))
    made, started = peak(), time.process_time()
    chosen = locb.LinUCB(n_users=USERS, dim=DIM).play(everywhere)
    seconds = time.process_time() - started
    print(f"play of all items in each round: {1e6 * seconds / ROUNDS:.1f} µs of CPU per round, +{peak() - made:.0f} MB")
    assert len(chosen) == ROUNDS


if __name__ == "__main__":
    main()
