"""Every policy makes the same choices as the oracle in every round, with the same scores and the same clusters."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
import naive
from locb.kernels.eloc.state import RETENTION, SCORE
from locb.policies.base.compiled import new_generator

JIT_OFF = os.environ.get("NUMBA_DISABLE_JIT") == "1"
# Compiled kernels are invisible to coverage, and tracing slows the oracle down by half.
pytestmark = [pytest.mark.interpreted] if JIT_OFF else [pytest.mark.interpreted, pytest.mark.no_cover]
pytestmark.append(
    pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")
)  # the scale of the rewards is arbitrary
# 24 settings of 900 rounds are 21,600 rounds per policy. A policy with options gets half of them for each option.
# `make verify` runs four times as many. Interpreted kernels run a few small settings, to measure coverage.
SETTINGS = range(8) if JIT_OFF else range(int(os.environ.get("ORACLE_SETTINGS", "24")))
OPTION_SETTINGS = range((len(SETTINGS) + 1) // 2) if not JIT_OFF else SETTINGS
BASELINE_SETTINGS = (
    range((len(SETTINGS) + 2) // 3) if not JIT_OFF else range(2)
)  # policies that others are compared with
ROUNDS = 240 if JIT_OFF else 900
EXPLAIN_EVERY = 5  # every fifth round is explained
CORRECT_EVERY = 10  # in settings with corrections, a reward is corrected after every 10 rounds
BATCH = 30 if JIT_OFF else 90  # clusters are compared after every batch of rounds

RADII = ("regret", "clustering", "theory", "ellipsoid")
RULES = [(radius, "radius") for radius in RADII] + [("ellipsoid", "certificate"), ("clustering", "published")]


def make_setting(seed: int) -> tuple[np.random.Generator, int, int, locb.Rounds]:
    """Return a random setting: n users in three clusters, d features, k arms, two kinds of noise, any context norms."""
    rng = np.random.default_rng([2021, seed])
    n, d, k = int(rng.integers(5, 61)), int(rng.integers(2, 13)), int(rng.integers(2, 16))
    if seed % 12 == 11:
        n, d = int(rng.choice([64, 65, 100, 129])), min(d, 5)  # bit sets of more than one word
    if JIT_OFF:
        n, d, k = min(n, 9), min(d, 4), min(k, 4)
    centres = rng.standard_normal((3, d))
    theta = centres[rng.integers(3, size=n)] + 0.05 * rng.standard_normal((n, d))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    weight = 1.0 / np.arange(1, n + 1) if seed % 3 == 0 else np.ones(n)  # some settings have long-tailed arrivals
    users = rng.choice(n, size=ROUNDS, p=weight / weight.sum())
    contexts = rng.standard_normal((ROUNDS, k, d))
    if seed % 2 == 0:
        contexts /= np.linalg.norm(contexts, axis=2, keepdims=True)
    else:
        contexts *= rng.uniform(0.1, 1.5, size=(ROUNDS, k, 1))
    has_ties = rng.random(ROUNDS) < 0.1  # two arms are equal, so that scores tie
    contexts[has_ties, k - 1] = contexts[has_ties, 0]
    means = np.einsum("tkd,td->tk", contexts, theta[users])
    if seed % 4 < 2:
        rewards = (rng.random(means.shape) < np.clip(0.5 + 0.5 * means, 0, 1)).astype(float)
    else:
        rewards = means + 0.1 * rng.standard_normal(means.shape)
    return rng, n, d, locb.Rounds(users, contexts, rewards, means)


def correction_rng(seed: int) -> np.random.Generator | None:
    """Return the generator that selects the rewards to correct; None in two of three settings."""
    return np.random.default_rng([7, seed]) if seed % 3 == 1 else None


def is_safe(seed: int) -> bool:
    """Return whether the policies of a setting have the safety screen: in two of five settings."""
    return seed % 5 < 2


def cluster_set(policy: Any) -> set[Any]:
    if isinstance(policy, locb.LOCB):
        return {(c.seed, frozenset(c.members.tolist()), c.returned_at) for c in policy.clusters()}
    if isinstance(policy, locb.ELOC):
        return {(c.seed, frozenset(c.members.tolist())) for c in policy.clusters()}
    return {frozenset(c.members.tolist()) for c in policy.clusters()}


def compare(
    make: Any,
    oracle: Any,
    rounds: locb.Rounds,
    add_after: int | None = None,
    corrections: np.random.Generator | None = None,
) -> Any:
    """Run the rounds with the oracle, with ``play``, and with ``recommend`` and ``update``; all must agree."""
    played, stepped = make(), make()
    learned: list[Any] = []  # user, context and reward of every round
    stride = BATCH if corrections is None else CORRECT_EVERY
    for start in range(0, len(rounds), stride):
        batch = rounds.slice(start, start + stride)
        expected = []
        for t, user in enumerate(batch.users.tolist()):
            estimate, bonus = oracle.evaluate(user, batch.contexts[t])
            arm = oracle.choose(estimate + bonus)
            if (start + t) % EXPLAIN_EVERY == 0:
                explained = stepped.explain(user, batch.contexts[t])
                assert explained.estimate + explained.bonus == pytest.approx(estimate + bonus, abs=1e-8)
                recommended = explained.arm
            else:
                recommended = stepped.recommend(user, batch.contexts[t])
            assert recommended == arm, f"round {start + t}"
            x, reward = batch.contexts[t, arm], float(batch.rewards[t, arm])
            for policy in (oracle, stepped):
                policy.update(user, x, reward)
            learned.append((user, x, reward))
            expected.append(arm)
        assert played.play(batch).tolist() == expected
        if (start + stride) % BATCH == 0:
            assert cluster_set(played) == oracle.groups()
            assert cluster_set(stepped) == oracle.groups()
        if corrections is not None:
            index = int(corrections.integers(len(learned)))
            user, x, before = learned[index]
            learned[index] = user, x, 1.0 - before
            for policy in (played, stepped, oracle):
                policy.correct(user, x, before, 1.0 - before)
        if add_after is not None and start + stride == add_after + BATCH:
            for policy in (played, stepped, oracle):
                policy.add_users(3)
    return played


def add_late_users(rng: np.random.Generator, n: int, rounds: locb.Rounds) -> int:
    """Serve three additional users from the third batch on; return the rounds before the batch that adds them."""
    late = rng.random(len(rounds)) < 0.2
    late[: 2 * BATCH] = False
    rounds.users[late] = n + rng.integers(3, size=int(late.sum()))
    return BATCH


@pytest.mark.parametrize("seed", OPTION_SETTINGS)
@pytest.mark.parametrize("shared", [False, True])
def test_linucb(seed: int, shared: bool) -> None:
    rng, n, d, rounds = make_setting(seed)
    alpha, ties = float(rng.uniform(0, 2)), ("first", "random")[seed % 2]

    def make() -> locb.LinUCB:
        return locb.LinUCB(n_users=n, dim=d, alpha=alpha, shared=shared, ties=ties, seed=seed)

    generator = int(make()._state.generator[0])
    policy = compare(make, naive.LinUCB(n, d, alpha, shared, ties, generator), rounds, None, correction_rng(seed))
    assert policy.served.tolist() == np.bincount(rounds.users, minlength=n).tolist()


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
@pytest.mark.parametrize("shared", [False, True])
def test_lints(seed: int, shared: bool) -> None:
    rng, n, d, rounds = make_setting(seed)
    alpha, ties = float(rng.uniform(0, 2)), ("first", "random")[seed % 2]

    def make() -> locb.LinTS:
        return locb.LinTS(n_users=n, dim=d, alpha=alpha, shared=shared, ties=ties, seed=seed)

    oracle = naive.LinTS(n, d, alpha, shared, ties, int(make()._state.generator[0]))
    compare(make, oracle, rounds, None, correction_rng(seed))


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
def test_hybrid(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    n, d, rounds = min(n, 8), min(d, 5), rounds.slice(0, 360)  # the oracle inverts a matrix of (n + 1) d rows
    rounds = locb.Rounds(rounds.users % n, rounds.contexts[:, :, :d], rounds.rewards)
    alpha, ties = float(rng.uniform(0, 2)), ("first", "random")[seed % 2]

    def make() -> locb.HybridLinUCB:
        return locb.HybridLinUCB(n_users=n, dim=d, alpha=alpha, ties=ties, seed=seed)

    oracle = naive.HybridLinUCB(n, d, alpha, ties, int(make()._state.generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after, correction_rng(seed))
    shared, own = oracle.theta()
    assert policy.theta == pytest.approx(shared + own, abs=1e-8)


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
def test_mixed_effects(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    parameters = {
        "alpha": float(rng.uniform(0, 2)),
        "sigma": float(rng.uniform(0.1, 1.0)),
        "explore": ("ucb", "thompson")[seed % 2],
        "ties": ("first", "random")[seed // 2 % 2],
    }

    def make() -> locb.MixedEffects:
        return locb.MixedEffects(n_users=n, dim=d, seed=seed, **parameters)

    oracle = naive.MixedEffects(n, d, **parameters, generator=int(make()._state.generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after, correction_rng(seed))
    assert policy.theta == pytest.approx(np.array([oracle.posterior(i)[0] for i in range(len(oracle.m))]), abs=1e-8)
    assert policy.population_covariance == pytest.approx(oracle.Sigma, abs=1e-8)
    assert policy.population_mean == pytest.approx(oracle.mu, abs=1e-8)


@pytest.mark.parametrize("seed", SETTINGS)
def test_club(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    alpha, alpha2 = float(rng.uniform(0, 2)), float(rng.uniform(0.3, 1.2))
    ties, graph, safe = ("first", "random")[seed % 2], ("complete", "erdos-renyi")[seed // 2 % 2], is_safe(seed)

    def make() -> locb.CLUB:
        return locb.CLUB(n_users=n, dim=d, alpha=alpha, alpha2=alpha2, graph=graph, ties=ties, seed=seed, safe=safe)

    start = make()
    edges = [(i, j) for j in range(n) for i in range(j)] if graph == "complete" else start._edges().tolist()
    oracle = naive.CLUB(n, d, alpha, alpha2, edges, ties, int(start._state.generator[0]), safe)
    compare(make, oracle, rounds, None, correction_rng(seed))


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
def test_rclumb(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    alpha, alpha2, epsilon = float(rng.uniform(0, 2)), float(rng.uniform(0.3, 1.0)), float(rng.uniform(0, 0.3))
    ties, graph, safe = ("first", "random")[seed % 2], ("complete", "erdos-renyi")[seed // 2 % 2], is_safe(seed)
    more = {"graph": graph, "ties": ties, "seed": seed, "safe": safe}

    def make() -> locb.RCLUMB:
        return locb.RCLUMB(n_users=n, dim=d, alpha=alpha, alpha2=alpha2, epsilon=epsilon, **more)

    start = make()
    edges = [(i, j) for j in range(n) for i in range(j)] if graph == "complete" else start._edges().tolist()
    oracle = naive.RCLUMB(n, d, alpha, alpha2, epsilon, edges, ties, int(start._state.generator[0]), safe)
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    compare(make, oracle, rounds, add_after, correction_rng(seed))


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
def test_dynucb(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    rounds = rounds.slice(0, 360)
    parameters = {"alpha": float(rng.uniform(0, 2)), "n_clusters": 2 + seed, "ties": ("first", "random")[seed % 2]}

    def make() -> locb.DynUCB:
        return locb.DynUCB(n_users=n, dim=d, seed=seed, **parameters)

    generator = new_generator(np.random.default_rng(seed))
    oracle = naive.DynUCB(n, d, **parameters, generator=int(generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after, correction_rng(seed))
    assert policy._state.cluster[: policy.n_users].tolist() == oracle.cluster


@pytest.mark.parametrize("seed", BASELINE_SETTINGS)
def test_cab(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    rounds = rounds.slice(0, 360)
    alpha, ties = float(rng.uniform(0.05, 0.5)), ("first", "random")[seed % 2]
    parameters = {"alpha": alpha, "gamma": 4 * alpha, "ties": ties}

    def make() -> locb.CAB:
        return locb.CAB(n_users=n, dim=d, seed=seed, **parameters)

    oracle = naive.CAB(n, d, **parameters, generator=int(make()._state.generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after)
    assert policy.theta == pytest.approx(oracle.users.theta, abs=1e-8)
    assert oracle.users.m.sum() > len(rounds)  # users have learned rewards of other users


@pytest.mark.parametrize("seed", SETTINGS)
def test_sclub(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    alpha, alpha_theta = float(rng.uniform(0, 2)), float(rng.uniform(0.3, 1.5))
    alpha_p, ties = float(rng.uniform(0.05, 1.0)), ("first", "random")[seed % 2]

    def make() -> locb.SCLUB:
        limits = {"alpha_theta": alpha_theta, "alpha_p": alpha_p}
        return locb.SCLUB(n_users=n, dim=d, alpha=alpha, **limits, ties=ties, seed=seed, safe=is_safe(seed))

    generator = int(make()._state.generator[0])
    oracle = naive.SCLUB(n, d, alpha, alpha_theta, alpha_p, ties, generator, is_safe(seed))
    compare(make, oracle, rounds, None, correction_rng(seed))


@pytest.mark.parametrize("seed", range(4) if JIT_OFF else SETTINGS)
def test_eloc(seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    rounds = rounds.slice(0, 120 if JIT_OFF else 300)  # ELOC's oracle is the slowest
    if seed % 8 == 3:
        rounds.rewards[:] = rounds.means + 0.1 * rng.standard_t(1.5, size=rounds.means.shape)
    if seed % 8 == 6:  # rewards far from 0
        rounds.contexts[:, :, 0] = 0.5
        rounds.rewards[:] = 0.1 * rounds.rewards - 7.0
    if seed % 8 == 7:  # features without values: one in all rounds, one in the first half
        rounds.contexts[:, :, -1] = 0.0
        rounds.contexts[: len(rounds) // 2, :, -2] = 0.0
    screen = {1: "theory", 4: "off"}.get(seed % 6, "noise")
    parameters = {
        "seeds": rng.permutation(n)[: int(rng.integers(1, min(n, 24) + 1))].tolist(),
        "beta": float(rng.uniform(0, 2)),
        "memory": "auto" if seed % 6 == 5 else float(rng.uniform(5, 50)) if seed % 3 == 2 else None,
        "ties": ("first", "random")[seed // 2 % 2],
        "screen": screen,
        "robust": screen != "theory" and seed % 5 != 0,
    }

    def make() -> locb.ELOC:
        return locb.ELOC(n_users=n, dim=d, seed=seed, **parameters)

    oracle = naive.ELOC(n, d, **parameters, generator=int(make()._state.generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after, correction_rng(seed))
    assert policy.theta == pytest.approx(np.array([oracle.posterior(i)[0] for i in range(oracle.n)]), abs=1e-8)
    assert policy.noise == pytest.approx(math.sqrt(oracle.noise), rel=1e-9)


@pytest.mark.parametrize("seed", range(1 if JIT_OFF else 6))
def test_eloc_moves_the_same_seeds_as_the_oracle(seed: int) -> None:
    """All seeds are in one cluster, so that some seeds are redundant and no neighbourhood explains other users."""
    env = locb.Synthetic(n_users=9, n_clusters=3, raw_dim=3, n_arms=4, noise=0.05, seed=seed)
    parameters = {"beta": 0.8, "memory": None, "ties": "first"}
    parameters["seeds"] = max(env.true_clusters(), key=len)[:3].tolist()
    oracle = naive.ELOC(9, 4, **parameters, generator=1)
    policy = compare(lambda: locb.ELOC(n_users=9, dim=4, **parameters), oracle, env.rounds(360, seed=seed))
    assert policy._state.seeds.tolist() == oracle.seeds
    assert oracle.seeds != parameters["seeds"]


@pytest.mark.parametrize("seed", range(1 if JIT_OFF else 6))
def test_eloc_merges_the_same_neighbourhoods_as_the_oracle(seed: int) -> None:
    """All users are seeds, so that most neighbourhoods have a twin. Late users are in a third cluster."""
    env = locb.Synthetic(n_users=12, n_clusters=3, raw_dim=3, n_arms=4, noise=0.05, seed=seed)
    late = np.flatnonzero([user in env.true_clusters()[0] for user in range(12)])[:3]
    rounds = env.rounds(720, seed=seed)
    first = rounds.users[:360]
    first[np.isin(first, late)] = np.setdiff1d(np.arange(12), late)[seed]
    parameters = {"beta": 0.8, "memory": 100.0 if seed % 3 == 2 else None, "ties": "first"}
    parameters["seeds"] = np.setdiff1d(np.arange(12), late).tolist()
    oracle = naive.ELOC(12, 4, **parameters, generator=1)
    corrections = correction_rng(seed) if parameters["memory"] is None else None
    policy = compare(lambda: locb.ELOC(n_users=12, dim=4, **parameters), oracle, rounds, None, corrections)
    assert policy._state.seeds.tolist() == oracle.seeds
    assert oracle.seeds.count(-1) >= 2


def test_eloc_starts_to_forget_in_the_same_round_as_the_oracle() -> None:
    env = locb.Synthetic(n_users=3, n_clusters=2, raw_dim=2, n_arms=4, noise=0.02, drift=30.0, seed=1)
    parameters = {"seeds": [0, 1], "beta": 0.8, "memory": "auto", "ties": "first"}
    oracle = naive.ELOC(3, 3, **parameters, generator=1)
    policy = compare(lambda: locb.ELOC(n_users=3, dim=3, **parameters), oracle, env.rounds(90 if JIT_OFF else 360))
    assert policy._state.memories[0, SCORE] == pytest.approx(oracle.scores[oracle.in_use])
    assert policy.memory_in_use == (None if JIT_OFF else pytest.approx(100.0))


def test_eloc_changes_between_all_memories_like_the_oracle(tmp_path: Path) -> None:
    """Set scores so that the memory changes; users are added and the policy is saved between two changes."""
    env = locb.Synthetic(n_users=6, n_clusters=2, raw_dim=2, n_arms=4, noise=0.1, seed=3)
    rounds = env.rounds(240, seed=3)
    rounds.users[:80] %= 4
    parameters = {"seeds": [0, 2, 3], "beta": 0.8, "memory": "auto", "ties": "first"}
    policy, oracle = locb.ELOC(n_users=4, dim=3, **parameters), naive.ELOC(4, 3, **parameters, generator=1)
    memories = [None, 300.0, 100.0]
    for t, user in enumerate(rounds.users.tolist()):
        if t % 40 == 0 and t > 0:
            best = (1, 2, 0, 2, 1)[t // 40 - 1]
            oracle.scores[:] = -50.0
            oracle.scores[best] = 0.0
            retention = oracle.retention[:, None] == policy._state.memories[:, RETENTION]
            policy._state.memories[:, SCORE] = oracle.scores[retention.argmax(axis=0)]
        if t == 80:
            policy.add_users(2)
            oracle.add_users(2)
            policy.save(tmp_path / "policy")
            policy = locb.load(tmp_path / "policy")
        x = rounds.contexts[t]
        estimate, bonus = oracle.evaluate(user, x)
        arm = oracle.choose(estimate + bonus)
        assert policy.recommend(user, x) == arm, f"round {t}"
        for learner in (policy, oracle):
            learner.update(user, x[arm], float(rounds.rewards[t, arm]))
        if t % 40 == 0 and t > 0:
            assert policy.memory_in_use == (memories[best] and pytest.approx(memories[best]))
    assert cluster_set(policy) == oracle.groups()


@pytest.mark.parametrize(("n", "n_seeds", "rounds"), [(3, 2, 2_400), (210, 205, 150)])
def test_eloc_with_many_rounds_or_seeds(n: int, n_seeds: int, rounds: int) -> None:
    if JIT_OFF:
        n, n_seeds, rounds = min(n, 30), min(n_seeds, 25), min(rounds, 150)
    env = locb.Synthetic(n_users=n, n_clusters=2, raw_dim=1, n_arms=3, arrivals="zipf", seed=5)
    parameters = {"seeds": list(range(n_seeds)), "beta": 0.8, "memory": None, "ties": "first"}
    oracle = naive.ELOC(n, 2, **parameters, generator=1)
    policy = compare(lambda: locb.ELOC(n_users=n, dim=2, **parameters), oracle, env.rounds(rounds, seed=1))
    assert policy.served.max() > 1_024 or n > 3 or JIT_OFF


def sample_locb_parameters(
    rng: np.random.Generator, n: int, radius: str, stop: str, bonus: str, seed: int
) -> dict[str, Any]:
    """Return parameters with which some clusters change, some become final and some stay active."""
    scale = {"regret": 0.5, "clustering": 1.0, "theory": 8.0, "ellipsoid": 4.0}[radius]
    return {
        "gamma": float(rng.uniform(0.5, 2.0)) * scale,
        "seeds": rng.permutation(n)[: int(rng.integers(1, n + 1))].tolist(),
        "alpha": float(rng.uniform(0, 2)),
        "tau": float(rng.uniform(4, 12)),
        "delta": float(rng.uniform(0.01, 0.5)),
        "sigma": float(rng.uniform(0.05, 0.5)),
        "radius": radius,
        "min_eigenvalue": 8.0 if radius == "theory" else None,
        "stop": stop,
        "bonus": bonus,
        "ties": ("first", "random")[seed // 2 % 2],
        "late_seeds": seed % 3,
        "safe": is_safe(seed),
    }


@pytest.mark.parametrize(
    ("radius", "stop", "seed"),
    # "published" differs from "radius" in one branch, so it gets a third of the settings.
    [
        (radius, stop, seed)
        for radius, stop in RULES
        for seed in OPTION_SETTINGS
        if stop != "published" or seed % 3 == 1
    ],
)
def test_locb(radius: str, stop: str, seed: int) -> None:
    rng, n, d, rounds = make_setting(seed)
    parameters = sample_locb_parameters(rng, n, radius, stop, ("mean", "pooled")[seed % 2], seed)

    def make() -> locb.LOCB:
        policy = locb.LOCB(n_users=n, dim=d, seed=seed, **parameters)
        if seed % 4 == 3:  # some settings use the code path for many users
            policy._state.drift_bound_min_users[0] = n - n % 5
        return policy

    oracle = naive.LOCB(n, d, **parameters, generator=int(make()._state.generator[0]))
    add_after = add_late_users(rng, n, rounds) if seed % 4 == 1 else None
    policy = compare(make, oracle, rounds, add_after, correction_rng(seed))
    for cluster in policy.clusters()[:3]:
        assert policy.certificate(cluster) == pytest.approx(oracle.certificate(cluster.members.tolist()), rel=1e-9)
    assert policy.radii == pytest.approx([oracle.B(i) for i in range(oracle.n)], rel=1e-9)


def test_locb_settings_cover_returned_and_active_clusters() -> None:
    """Check that all kinds of clusters occur, because the comparison above is meaningful only then."""
    if JIT_OFF:
        pytest.skip("too few rounds with the compiler disabled")
    returned = active = smaller = 0
    for seed in SETTINGS:
        for radius, stop in RULES:
            rng, n, d, rounds = make_setting(seed)
            policy = locb.LOCB(
                n_users=n, dim=d, seed=seed, **sample_locb_parameters(rng, n, radius, stop, "mean", seed)
            )
            policy.play(rounds)
            for cluster in policy.clusters():
                returned += cluster.returned_at is not None
                active += cluster.returned_at is None
                smaller += len(cluster) < n
    assert min(returned, active, smaller) > 200, (returned, active, smaller)


class RecordingOracle(naive.LOCB):
    """The oracle of LOCB, which records whether late users were accepted."""

    def accepts_late_user(self, s: int, i: int, B: list[float]) -> bool:  # noqa: N803 - the paper's letter
        accepted = super().accepts_late_user(s, i, B)
        self.decisions = [*getattr(self, "decisions", []), accepted]
        return accepted


@pytest.mark.parametrize("stop", ["radius", "certificate", "published"])
def test_returned_clusters_accept_the_same_late_users_as_the_oracle(stop: str) -> None:
    env = locb.Synthetic(n_users=9, n_clusters=2, raw_dim=2, n_arms=3, spread=0.1, noise=0.05, seed=11)
    rounds = env.rounds(720, seed=1)
    add_after = 360  # a multiple of both batch sizes; the three users are added after the following batch
    rounds.users[: add_after + BATCH] %= 6
    parameters = {"gamma": 3.0, "seeds": [0, 3, 5], "alpha": 1.0, "tau": 2.0, "delta": 0.1, "sigma": 0.05}
    parameters |= {"radius": "ellipsoid", "min_eigenvalue": None, "stop": stop, "bonus": "mean", "ties": "first"}
    oracle = RecordingOracle(6, 3, **parameters, generator=1)
    compare(lambda: locb.LOCB(n_users=6, dim=3, **parameters), oracle, rounds, add_after)
    assert max(oracle.returned.values()) <= add_after + BATCH
    assert oracle.decisions.count(True) > 0
    assert oracle.decisions.count(False) > 0
