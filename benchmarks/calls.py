"""What one decision costs from Python: recommend + update against Vowpal Wabbit's predict + learn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import vowpalwabbit
from timing import best_of, show

import locb

ROUNDS, USERS, DIM, ARMS = 5_000, 100, 10, 10


def locb_job(rounds: locb.Rounds, name: str, parameters: dict[str, Any]) -> Callable[[], None]:
    policy = locb.make_policy(name, n_users=USERS, dim=DIM, **parameters)
    users, contexts, rewards = rounds.users.tolist(), list(rounds.contexts), rounds.rewards.tolist()
    policy.update(0, policy.recommend(0, contexts[0]) * contexts[0][0], 0.0)  # compile outside of the timing

    def job() -> None:
        for user, arms, earned in zip(users, contexts, rewards, strict=True):
            arm = policy.recommend(user, arms)
            policy.update(user, arms[arm], earned[arm])

    return job


def wabbit_job(rounds: locb.Rounds, text: list[list[str]]) -> Callable[[], None]:
    """Examples are written out beforehand, as kindly as can be: only predict and learn are timed."""
    model = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet --quadratic UA")
    rewards = rounds.rewards.tolist()

    def job() -> None:
        for example, earned in zip(text, rewards, strict=True):
            chances = model.predict(example)
            arm = chances.index(max(chances))
            labelled = example.copy()
            labelled[arm + 1] = f"0:{-earned[arm]}:{chances[arm]} {example[arm + 1]}"
            model.learn(labelled)

    return job


def main() -> None:
    env = locb.Synthetic(n_users=USERS, raw_dim=DIM - 1, n_arms=ARMS, seed=7)
    rounds = env.rounds(ROUNDS, seed=1)
    text = []
    for user, contexts in zip(rounds.users.tolist(), rounds.contexts, strict=True):
        arms = ["|A " + " ".join(f"f{j}:{value:.6g}" for j, value in enumerate(x)) for x in contexts]
        text.append([f"shared |U u{user}", *arms])
    jobs: dict[str, Callable[[], Callable[[], None]]] = {
        "locb LOCB, 30 seeds": lambda: locb_job(rounds, "locb", {"n_seeds": 30}),
        "locb LinUCB-IND": lambda: locb_job(rounds, "linucb-ind", {}),
        f"Vowpal Wabbit {vowpalwabbit.__version__}": lambda: wabbit_job(rounds, text),
    }
    cost = {title: best_of(make, goes=3) for title, make in jobs.items()}
    ours = cost["locb LOCB, 30 seeds"]
    rows = [(title, f"{1e6 * s / ROUNDS:.1f}", f"{s / ours:.2f}") for title, s in cost.items()]
    title = f"one decision from Python: choose and learn, n = {USERS}, d = {DIM}, k = {ARMS}"
    show(title, ("", "µs", "× LOCB"), rows)
    assert np.isfinite(ours)


if __name__ == "__main__":
    main()
