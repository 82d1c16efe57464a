"""Time of one decision (choose an arm and learn its reward) with locb and with other libraries.

Each library runs in one process and one thread on the same rounds: 100 users, 10 arms, 10 features per arm. Each is
used as its documentation recommends. The time does not include conversions of data that every application needs.
Libraries with one model per arm and without features of arms get the features of the first arm as the context. If you
give the path of a Markdown page, its table between <!-- peers --> and <!-- end of peers --> is updated.
"""

import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[variable] = "1"  # must be set before NumPy is imported

import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import vowpalwabbit
from coba.learners import LinUCBLearner
from contextualbandits.online import LinUCB as ContextualLinUCB
from mabwiser.mab import MAB, LearningPolicy
from river import bandit
from timing import best_of, print_table, replace_table

import locb

USERS, DIM, ARMS = 100, 10, 10
Job = Callable[[], None]


def locb_job(rounds: locb.Rounds, name: str, **parameters: Any) -> Job:
    """Return a function that makes one decision at a time with a policy of locb, in a Python loop."""
    policy = locb.make_policy(name, n_users=USERS, dim=DIM, **parameters)
    users, contexts, rewards = rounds.users.tolist(), list(rounds.contexts), rounds.rewards.tolist()
    policy.update(0, policy.recommend(0, contexts[0]) * contexts[0][0], 0.0)  # compile before the timing

    def job() -> None:
        for user, arms, arm_rewards in zip(users, contexts, rewards, strict=True):
            arm = policy.recommend(user, arms)
            policy.update(user, arms[arm], arm_rewards[arm])

    return job


def locb_play_job(rounds: locb.Rounds, name: str, **parameters: Any) -> Job:
    """Return a function that plays all rounds in one call of ``play`` of a policy of locb."""
    policy = locb.make_policy(name, n_users=USERS, dim=DIM, **parameters)
    policy.prepare()

    def job() -> None:
        policy.play(rounds)

    return job


def vowpal_wabbit_job(rounds: locb.Rounds) -> Job:
    """Return a function that makes decisions with --cb_explore_adf of Vowpal Wabbit.

    The user is a shared feature, crossed with the features of the arms.
    """
    model = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet --quadratic UA")
    rewards = rounds.rewards.tolist()
    text = []
    for user, contexts in zip(rounds.users.tolist(), rounds.contexts, strict=True):
        arms = ["|A " + " ".join(f"f{j}:{value:.6g}" for j, value in enumerate(x)) for x in contexts]
        text.append([f"shared |U u{user}", *arms])

    def job() -> None:
        for example, arm_rewards in zip(text, rewards, strict=True):
            probabilities = model.predict(example)
            arm = probabilities.index(max(probabilities))
            labelled = example.copy()
            labelled[arm + 1] = f"0:{-arm_rewards[arm]}:{probabilities[arm]} {example[arm + 1]}"
            model.learn(labelled)

    return job


def coba_job(rounds: locb.Rounds) -> Job:
    """Return a function that makes decisions with LinUCB of coba: features of arms, and one estimate for all users."""
    learner = LinUCBLearner(alpha=1.0, features=["a"])
    contexts, rewards = [[tuple(x) for x in arms] for arms in rounds.contexts.tolist()], rounds.rewards.tolist()

    def job() -> None:
        for arms, arm_rewards in zip(contexts, rewards, strict=True):
            action, probability = learner.predict(None, arms)
            learner.learn(None, action, arm_rewards[arms.index(action)], probability)

    return job


def river_job(rounds: locb.Rounds) -> Job:
    """Return a function that makes decisions with LinUCBDisjoint of river: one Bayesian regression per arm."""
    policy: Any = bandit.LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    arms: list[Any] = list(range(ARMS))
    contexts = [{f"f{j}": value for j, value in enumerate(x)} for x in rounds.contexts[:, 0].tolist()]
    rewards = rounds.rewards.tolist()

    def job() -> None:
        for context, arm_rewards in zip(contexts, rewards, strict=True):
            arm = policy.pull(arms, context=context)
            policy.update(arm, context, arm_rewards[arm])

    return job


def mabwiser_job(rounds: locb.Rounds) -> Job:
    """Return a function that makes decisions with LearningPolicy.LinUCB of mabwiser: one ridge regression per arm.

    The model is fitted once before the timing, because mabwiser requires an initial fit.
    """
    mab = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=1.0))
    contexts, rewards = list(rounds.contexts[:, :1]), rounds.rewards.tolist()
    mab.fit(list(range(ARMS)), [0.0] * ARMS, rounds.contexts[:ARMS, 0])

    def job() -> None:
        for context, arm_rewards in zip(contexts, rewards, strict=True):
            arm = mab.predict(context)
            mab.partial_fit([arm], [arm_rewards[arm]], context)

    return job


def contextualbandits_job(rounds: locb.Rounds) -> Job:
    """Return a function that makes decisions with online.LinUCB of contextualbandits: one ridge regression per arm."""
    policy = ContextualLinUCB(nchoices=ARMS, alpha=1.0, random_state=1, njobs=1)
    contexts, rewards = list(rounds.contexts[:, :1]), rounds.rewards

    def job() -> None:
        for context, arm_rewards in zip(contexts, rewards, strict=True):
            arm = policy.predict(context)
            policy.partial_fit(context, arm, arm_rewards[arm])

    return job


def main() -> None:
    """Measure all libraries and print the table."""
    warnings.simplefilter("ignore")
    env = locb.Synthetic(n_users=USERS, raw_dim=DIM - 1, n_arms=ARMS, seed=7)
    # Title → (function that creates the job, rounds per repetition). Slow libraries get fewer rounds.
    jobs: dict[str, tuple[Callable[[locb.Rounds], Job], int]] = {
        f"locb {locb.__version__}: LOCB, 30 seeds, `play`": (lambda r: locb_play_job(r, "locb", n_seeds=30), 50_000),
        "locb: LOCB, 30 seeds": (lambda r: locb_job(r, "locb", n_seeds=30), 5_000),
        "locb: LinUCB-IND": (lambda r: locb_job(r, "linucb-ind"), 5_000),
        f"Vowpal Wabbit {version('vowpalwabbit')}: cb_explore_adf": (vowpal_wabbit_job, 5_000),
        f"coba {version('coba')}: LinUCB, one for all": (coba_job, 2_000),
        f"contextualbandits {version('contextualbandits')}: LinUCB": (contextualbandits_job, 500),
        f"mabwiser {version('mabwiser')}: LinUCB": (mabwiser_job, 500),
        f"river {version('river')}: LinUCBDisjoint": (river_job, 500),
    }
    cost = {}
    for title, (make, count) in jobs.items():
        rounds = env.rounds(count, seed=1)
        cost[title] = best_of(lambda make=make, rounds=rounds: make(rounds), repetitions=3) / count  # type: ignore[misc]  # mypy cannot infer lambda defaults
    locb_cost = cost["locb: LOCB, 30 seeds"]
    fastest = min((title for title in cost if not title.startswith("locb")), key=lambda title: cost[title])
    distinguishes_users = {"locb": "yes", "Vowpal": "yes, hashed"}
    rows = [
        (title, f"{1e6 * s:,.1f}", f"{s / locb_cost:,.2f}", distinguishes_users.get(title.split()[0].rstrip(":"), "no"))
        for title, s in sorted(cost.items(), key=lambda item: item[1])
    ]
    title = f"one decision, choose and learn: {USERS} users, {DIM} features, {ARMS} arms, one thread"
    headings = ("one decision: choose and learn", "µs", "× LOCB from Python", "distinguishes users")
    print_table(title, headings, rows)
    for path in sys.argv[1:]:
        replace_table(Path(path), "peers", headings, rows)
    print(f"\nfastest other library: {fastest}, {cost[fastest] / locb_cost:.1f} × LOCB")
    assert np.isfinite(locb_cost)


if __name__ == "__main__":
    main()
