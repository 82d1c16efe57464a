"""100,000 users who join one by one while rounds go on, against starting with all of them."""

import time

import numpy as np
from timing import show

import locb

USERS, FEATURES, ARMS, SEEDS = 100_000, 10, 10, 100
ROUNDS_A_USER = 10  # played after each joining, in one call


def main() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20_000, ARMS, FEATURES))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    rewards = (rng.random((len(x), ARMS)) < 0.5).astype(float)
    starts = rng.integers(len(x) - ROUNDS_A_USER, size=USERS)
    rows = []
    taken: dict[str, float] = {}
    for title in ("all there from the start", "joining one by one"):
        joining = title.startswith("joining")
        policy = locb.LOCB(n_users=SEEDS if joining else USERS, dim=FEATURES, seeds=range(SEEDS), bonus="pooled")
        policy.prepare()
        policy.add_users(0)
        who = np.random.default_rng(2)
        began = time.perf_counter()
        for count in range(SEEDS, USERS):
            if joining:
                policy.add_users(1)
            part = slice(starts[count], starts[count] + ROUNDS_A_USER)
            users = who.integers(count + 1, size=ROUNDS_A_USER)  # of those who are there by now
            policy.play(locb.Rounds(users, x[part], rewards[part]))
        taken[title] = time.perf_counter() - began
        rows.append((title, f"{taken[title]:.1f}", f"{taken[title] / taken['all there from the start']:.2f}"))
    show(f"{USERS:,} users, {ROUNDS_A_USER} rounds after each: LOCB pooled, {SEEDS} seeds", ("", "s", "ratio"), rows)


if __name__ == "__main__":
    main()
