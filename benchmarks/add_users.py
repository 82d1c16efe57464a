"""Cost of adding 100,000 users to LOCB one by one, compared with creating the policy with all users."""

import time

import numpy as np
from timing import print_table

import locb

USERS, FEATURES, ARMS, SEEDS = 100_000, 10, 10, 100
ROUNDS_PER_USER = 10  # rounds played after each added user, in one call


def main() -> None:
    """Measure both ways to create the users and print the table."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((20_000, ARMS, FEATURES))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    rewards = (rng.random((len(x), ARMS)) < 0.5).astype(float)
    starts = rng.integers(len(x) - ROUNDS_PER_USER, size=USERS)
    seconds: dict[bool, float] = {}
    for one_by_one in (False, True):
        policy = locb.LOCB(n_users=SEEDS if one_by_one else USERS, dim=FEATURES, seeds=range(SEEDS), bonus="pooled")
        policy.prepare()
        policy.add_users(0)
        user_rng = np.random.default_rng(2)
        started = time.perf_counter()
        for count in range(SEEDS, USERS):
            if one_by_one:
                policy.add_users(1)
            block = slice(starts[count], starts[count] + ROUNDS_PER_USER)
            users = user_rng.integers(count + 1, size=ROUNDS_PER_USER)  # among the users added so far
            policy.play(locb.Rounds(users, x[block], rewards[block]))
        seconds[one_by_one] = time.perf_counter() - started
    titles = {False: "all users from the start", True: "users added one by one"}
    rows = [(titles[key], f"{value:.1f}", f"{value / seconds[False]:.2f}") for key, value in seconds.items()]
    title = f"LOCB with the pooled bonus and {SEEDS} seed users: {USERS:,} users, {ROUNDS_PER_USER} rounds per user"
    print_table(title, ("", "s", "ratio"), rows)


if __name__ == "__main__":
    main()
