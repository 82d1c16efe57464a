"""ELOC: clusters, gate (mixing weights), degenerate environments and exact sums."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locb
from compiled_calls import call_compiled
from locb.common.jit import plain
from locb.kernels.eloc.neighbourhoods import refresh_sums, solve_neighbourhood
from locb.kernels.eloc.posterior import allocate_scratch
from locb.kernels.eloc.rewards import set_scale
from locb.kernels.eloc.state import (
    EVERYONE,
    GAP,
    LEAST_SQUARES,
    MAX_NEIGHBOURHOODS,
    NOISE,
    R_CLIPPED,
    RETENTION,
)
from locb.policies.base.checkpoints import Checkpoint
from locb.policies.base.user_batch import membership_probabilities
from locb.policies.state.eloc_state import MAX_DUPLICATE_DIFFERENCE, rebuild_derived
from policies.helpers import make, state_of

pytestmark = pytest.mark.filterwarnings("ignore::locb.RewardScaleWarning")  # the scale of the rewards is arbitrary


def exact_sums(policy: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of ELOC from the rows of the users: Σ q (b, G) of each neighbourhood and everyone, and all terms.

    The terms are those of the least squares for μ_0. The symbols are defined in ``locb.kernels.eloc.state``.
    """
    state = policy._state
    weights = np.zeros((len(state.served), len(state.pooled_sums)))
    weights[:, -1] = 1.0
    for z in range(MAX_NEIGHBOURHOODS):
        slot = state.user_neighbourhoods[:, z] % len(state.seeds)
        members = np.flatnonzero(
            (state.user_neighbourhoods[:, z] >= 0) & (state.neighbourhood_ids[slot] == state.user_neighbourhoods[:, z])
        )
        weights[members, slot[members]] = state.weights[members, z]
    return weights.T @ state.sums.astype(float), state.centre_terms.sum(axis=0, dtype=float)


@pytest.mark.parametrize(("noise", "min_f1"), [("bernoulli", 0.93), (0.1, 0.97)])
def test_clusters_match_the_truth(noise: str | float, min_f1: float) -> None:
    scores = []
    for seed in range(3):
        env = locb.Synthetic(noise=noise, seed=seed)
        policy = locb.ELOC(n_users=env.n_users, dim=env.dim, seed=seed)
        policy.play(env.rounds(50_000, seed=seed))
        scores.append(locb.match_clusters(policy.clusters(), env.true_clusters()).f1)
        assert policy.noise == pytest.approx(0.37 if noise == "bernoulli" else noise, rel=0.15)
    assert np.mean(scores) > min_f1


def test_gate_selects_the_expert_of_the_environment() -> None:
    heaviest = {}
    for n_clusters in (1, 5, 100):
        env = locb.Synthetic(n_clusters=n_clusters, spread=0.02, seed=4)
        policy = locb.ELOC(n_users=100, dim=env.dim)
        assert policy.gate["population"] > 0.8
        policy.play(env.rounds(10_000, seed=1))
        assert sum(policy.gate.values()) == pytest.approx(1.0)
        heaviest[n_clusters] = max(policy.gate, key=policy.gate.__getitem__)
    assert heaviest == {1: "everyone", 5: "mixture", 100: "population"}


def test_sums_do_not_drift() -> None:
    """The sums stay exact over more than three refresh cycles, with float64 and float32."""
    env = locb.Synthetic(n_users=50, n_clusters=4, raw_dim=3, n_arms=4, seed=2)
    for dtype in ("float64", "float32"):
        policy = locb.ELOC(n_users=50, dim=env.dim, n_seeds=20, dtype=dtype)
        for block in env.stream(60_000, seed=1):
            policy.play(block)
        pooled, terms = exact_sums(policy)
        assert np.abs(policy._state.pooled_sums - pooled).max() < 1e-8 * np.abs(pooled).max()
        assert np.abs(policy._state.population[LEAST_SQUARES] - terms).max() < 1e-8 * np.abs(terms).max()


@pytest.mark.interpreted
@pytest.mark.parametrize("dim", [1, 2, 7, 12])
def test_initial_state_is_that_of_the_kernel(dim: int) -> None:
    """To the last bit, although no compiled code computes it."""
    policy, computed = (locb.ELOC(n_users=5, dim=dim, n_seeds=3) for _ in range(2))
    state, scratch = computed._state, plain(allocate_scratch)(computed._state, 1, dim)
    for array in (state.population, state.centre_posteriors, state.variance_levels, state.learned_scalars[NOISE:]):
        array[...] = 0
    call_compiled(set_scale)(state, scratch)
    for s in range(4):
        call_compiled(solve_neighbourhood)(state, s, scratch)
    for name, array in policy._state._asdict().items():
        assert np.array_equal(array, getattr(state, name)), name


@pytest.mark.interpreted
def test_refresh_recomputes_the_sums() -> None:
    policy = make("eloc")
    pooled, terms = exact_sums(policy)
    policy._state.pooled_sums[:] += 1.0
    policy._state.population[LEAST_SQUARES] += 1.0
    for row in range(len(pooled) + 1):
        call_compiled(refresh_sums)(policy._state, row)
    assert policy._state.pooled_sums == pytest.approx(pooled, abs=1e-10)
    assert policy._state.population[LEAST_SQUARES] == pytest.approx(terms, abs=1e-9)


def test_every_row_of_sums_is_refreshed() -> None:
    env = locb.Synthetic(n_users=30, n_clusters=2, raw_dim=1, n_arms=2, seed=1)
    policy = locb.ELOC(n_users=30, dim=2, n_seeds=30)
    policy._state.pooled_sums[:, 2] += 1e-3
    policy.play(env.rounds(16_384, seed=1))
    assert np.abs(policy._state.pooled_sums - exact_sums(policy)[0]).max() < 1e-6


def test_memory_of_a_million_users() -> None:
    policy = locb.ELOC(n_users=1_000_000, dim=6, dtype="float32")
    used = sum(array.nbytes for array in policy._state)
    assert (
        used / 1_000_000 < 2 * 27 * 4 + MAX_NEIGHBOURHOODS * 8 + 21
    )  # sums and centre terms; neighbourhood ids and weights; ``served``, ``seed_of`` and ``evidence_gaps``
    rng = np.random.default_rng(1)
    users = rng.integers(1_000_000, size=2_000)
    contexts = rng.standard_normal((2_000, 5, 6)) / 3
    chosen = policy.play(locb.Rounds(users, contexts, rng.random((2_000, 5))))
    assert set(np.unique(chosen)) == set(range(5))
    assert policy.served.sum() == 2_000
    unseen = np.ones(1_000_000, bool)
    unseen[users] = False
    assert not policy._state.sums[unseen].any()


@pytest.mark.interpreted
@pytest.mark.parametrize("reward", [0.0, 1.0, -3.0, 1e6, 1e30])
@pytest.mark.parametrize(("n_users", "dim", "dtype"), [(1, 1, "float64"), (3, 2, "float32")])
def test_degenerate_environments(reward: float, n_users: int, dim: int, dtype: str) -> None:
    """With one user, one feature, zero contexts or constant rewards, results are finite and the better arm is found."""
    policy = locb.ELOC(n_users=n_users, dim=dim, dtype=dtype)
    assert len(policy.clusters()) == n_users + 1
    zero, nonzero = np.zeros(dim), np.full(dim, 0.5)
    for t in range(60):
        arm = policy.recommend(t % n_users, [zero, nonzero])
        assert arm in (0, 1)
        policy.update(t % n_users, nonzero if t % 2 else zero, reward if t % 2 else 0.0)
    assert np.isfinite(policy.theta).all()
    assert np.isfinite(policy.radii).all()
    assert policy.noise > 0.0
    if 0.0 < reward <= 1.0:
        assert policy.recommend(0, [zero, nonzero]) == 1
        assert policy.theta[0] @ nonzero == pytest.approx(reward, abs=0.05)


def test_new_users() -> None:
    policy = make("eloc")
    before, theta = state_of(policy), policy.theta
    policy.add_users(0)
    assert state_of(policy) == before
    policy.add_users(40)
    assert policy.theta.shape == (52, 3)
    assert np.array_equal(policy.theta[:12], theta)
    assert np.array_equal(policy.theta[12], policy.theta[51])
    policy.update(51, [0.5, 0.5, 0.5], 1.0)
    assert policy.served[51] == 1
    assert not np.array_equal(policy.theta[12], policy.theta[51])
    assert 51 in {user for cluster in policy.clusters() for user in cluster.members}


def test_clusters_and_similar_users() -> None:
    policy = make("eloc", 3000)
    groups = policy.clusters()
    assert [c.seed for c in groups if c.seed is not None] == [s for s in policy._state.seeds.tolist() if s >= 0]
    assert all(c.seed is None or c.seed in c for c in groups)
    for user in range(12):
        members = set(np.concatenate([[user], *(c.members for c in policy.clusters_of(user))]).tolist())
        similar = policy.similar_users(user, limit=100)
        assert {other.user for other in similar} == members - {user}
        assert [other.distance for other in similar] == sorted(other.distance for other in similar)
        for other in similar[:2]:
            assert other.distance == pytest.approx(np.linalg.norm(policy.theta[user] - policy.theta[other.user]))
            assert other.radius == pytest.approx(policy.radii[other.user])
    assert policy.rounds_played == 3000


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_twins_are_merged(dtype: str, tmp_path: Path) -> None:
    """Twenty seeds in three groups: most become inactive, and all that refers to their neighbourhoods is consistent."""
    env = locb.Synthetic(n_users=40, n_clusters=3, noise=0.1, seed=2)
    policy = locb.ELOC(n_users=40, dim=env.dim, n_seeds=20, dtype=dtype)
    rounds = env.rounds(4_000, seed=1)
    policy.play(rounds)
    state = policy._state
    active = np.flatnonzero(state.seeds >= 0)
    assert 3 <= active.size <= 8
    assert state.prior_weights.sum() == pytest.approx(1.0)
    assert not state.pooled_sums[:-1][state.seeds < 0].any()
    assert state.pooled_sums == pytest.approx(exact_sums(policy)[0], abs=1e-5)
    contributors = state.contributors.copy()
    rebuild_derived(state)
    assert np.array_equal(state.contributors, contributors)
    clusters, summary = policy.clusters(), policy.group_summary()
    assert summary.seeds.tolist() == [*state.seeds.tolist(), -1]
    assert summary.same_as is not None
    assert set(summary.same_as[active].tolist()) <= set(active.tolist())
    assert [c.seed for c in clusters if c.seed is not None] == state.seeds[active].tolist()
    assert locb.match_clusters(clusters, env.true_clusters()).f1 > 0.95
    inside = policy.user_batch(np.arange(40)).groups
    for cluster in clusters:
        column = 20 if cluster.seed is None else int(state.seed_of[cluster.seed])
        members = np.concatenate([block[:, 0] for _, block in inside.blocks(np.array([column]))])
        assert np.array_equal(np.flatnonzero(members), cluster.members)
    explanation = policy.explain(0, rounds.contexts[0])
    assert sum(source.weight for source in explanation.sources) == pytest.approx(1.0)
    assert {source.seed for source in explanation.sources} <= {None, *state.seeds[active].tolist()}
    policy.correct(int(rounds.users[0]), rounds.contexts[0, 0], 0.0, 1.0)
    assert state.pooled_sums == pytest.approx(exact_sums(policy)[0], abs=1e-5)
    policy.save(tmp_path / "policy.zip")
    loaded = locb.load(tmp_path / "policy.zip")
    assert state_of(loaded) == state_of(policy)
    more = env.rounds(1_000, seed=3)
    assert np.array_equal(loaded.play(more), policy.play(more))


def test_certificates_are_unavailable_with_memory() -> None:
    policy = locb.ELOC(n_users=4, dim=2, memory=50.0)
    with pytest.raises(ValueError, match="do not change: memory must be None, not 50.0"):
        policy.certificate([0, 1])
    with pytest.raises(ValueError, match="memory must be above 1, not"):
        locb.ELOC(n_users=4, dim=2, memory=0.5)
    with pytest.raises(ValueError, match="memory must be a number above 1, 'auto' or None, not 'off'"):
        locb.ELOC(n_users=4, dim=2, memory="off")


def test_automatic_memory_forgets_only_if_preferences_change() -> None:
    regret = {}
    for drift in (0.0, 0.8):
        env = locb.Synthetic(drift=drift, noise=0.1, seed=2)
        for memory in (None, "auto"):
            policy = locb.ELOC(n_users=env.n_users, dim=env.dim, memory=memory)
            regret[drift, memory] = locb.simulate(policy, env, rounds=15_000, seed=2).regret[-1]
        assert (policy.memory_in_use is not None) == (drift > 0.0)
    assert regret[0.0, "auto"] == regret[0.0, None]
    assert regret[0.8, "auto"] < 0.8 * regret[0.8, None]


def test_sums_of_all_memories_stay_exact(tmp_path: Path) -> None:
    env = locb.Synthetic(drift=0.8, noise=0.1, seed=2)
    policy = locb.ELOC(n_users=env.n_users, dim=env.dim, memory="auto", dtype="float32")
    policy.play(env.rounds(15_000, seed=2))
    sums, terms = exact_sums(policy)
    assert policy._state.pooled_sums == pytest.approx(sums, rel=1e-5, abs=1e-5)
    assert policy._state.population[LEAST_SQUARES] == pytest.approx(terms, rel=1e-5, abs=1e-5)
    policy.save(tmp_path / "policy")
    loaded = locb.load(tmp_path / "policy")
    assert state_of(loaded) == state_of(policy)
    assert loaded.memory_in_use == policy.memory_in_use


def test_files_without_memories_can_be_loaded(tmp_path: Path) -> None:
    """Files of an earlier version have no array ``memories``, and one more entry in ``float_params``."""
    policy = make("eloc", memory=50.0)
    old = Checkpoint(policy._header(), policy._arrays() | {"float_params": np.zeros(6)})
    del old._arrays["memories"]
    old.save(tmp_path / "old")
    assert state_of(locb.load(tmp_path / "old")) == state_of(policy)


def test_files_with_other_memories_are_rejected(tmp_path: Path) -> None:
    policy = make("eloc", memory="auto")
    policy._state.memories[1, RETENTION] = 0.5
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="array 'memories' is invalid or inconsistent"):
        locb.load(tmp_path / "policy")


def test_certificates_use_the_rounds_of_each_user_alone() -> None:
    own, eloc = make("linucb-ind", 0), make("eloc", 0)
    rng = np.random.default_rng(3)
    for t in range(200):
        x, reward = rng.standard_normal(3) / 2, float(rng.random())
        own.update(t % 12, x, reward)
        eloc.update(t % 12, x, reward)
    assert eloc.certificate(range(12)) == pytest.approx(own.certificate(range(12)), rel=1e-9)


def test_float32_does_not_increase_regret() -> None:
    env = locb.Synthetic(n_users=40, seed=3)
    rounds = env.rounds(10_000, seed=1)
    regret = {
        dtype: rounds.regret(locb.ELOC(n_users=40, dim=env.dim, dtype=dtype).play(rounds)).sum()
        for dtype in ("float64", "float32")
    }
    assert regret["float32"] == pytest.approx(regret["float64"], rel=0.25)


@pytest.mark.parametrize("constant", [False, True])
def test_categories(constant: bool) -> None:
    """Categories without observations are explored. Without groups, ELOC is about as good as LinUCB, else better."""
    for n_clusters, limit in ((40, 1.3), (4, 0.9)):
        ratios = []
        for seed in range(3):
            env = locb.Categorical(n_users=40, n_clusters=n_clusters, categories=(10,), constant=constant, seed=seed)
            rounds = env.rounds(15_000, seed=seed)
            regret = [
                rounds.regret(policy.play(rounds)).sum()
                for policy in (
                    locb.ELOC(n_users=40, dim=env.dim, seed=seed),
                    locb.LinUCB(n_users=40, dim=env.dim, alpha=0.3),
                )
            ]
            ratios.append(regret[0] / regret[1])
        assert np.exp(np.mean(np.log(ratios))) < limit, (n_clusters, ratios)


def test_features_that_are_always_0_do_not_increase_regret() -> None:
    """Hashed names leave entries of the vectors empty, which must not widen the neighbourhoods."""

    def regret(seed: int, unused: int) -> float:
        env = locb.Synthetic(n_users=60, n_clusters=4, seed=seed)
        rounds = env.rounds(5000, seed=seed)
        contexts = np.pad(rounds.contexts, [(0, 0), (0, 0), (0, unused)])
        policy = locb.ELOC(n_users=60, dim=env.dim + unused, n_seeds=15, seed=seed)
        chosen = policy.play(locb.Rounds(rounds.users, contexts, rounds.rewards, rounds.means))
        return float((rounds.means.max(axis=1) - rounds.means[np.arange(5000), chosen]).sum())

    assert sum(regret(seed, 10) for seed in range(4)) < 1.15 * sum(regret(seed, 0) for seed in range(4))


def test_outliers_do_not_spoil_the_estimates() -> None:
    env = locb.Synthetic(n_users=40, n_clusters=3, noise=0.1, seed=4)
    rounds = env.rounds(8_000, seed=1)
    rng = np.random.default_rng(5)
    rounds.rewards[:] += np.where(
        rng.random(rounds.rewards.shape) < 0.05, rng.normal(0.0, 5.0, rounds.rewards.shape), 0.0
    )
    regret = {}
    for robust in (True, False):
        policy = locb.ELOC(n_users=40, dim=env.dim, robust=robust)
        regret[robust] = rounds.regret(policy.play(rounds)).sum()
    assert regret[True] < 0.5 * regret[False]
    clicks = locb.ELOC(n_users=40, dim=env.dim)
    clicks.play(locb.Synthetic(n_users=40, n_clusters=3, seed=4).rounds(2_000, seed=1))
    assert clicks._state.reward_stats[R_CLIPPED] == 0.0


def test_certificates_are_unavailable_after_outliers_were_limited() -> None:
    env = locb.Synthetic(n_users=10, n_clusters=2, noise=0.1, seed=4)
    rounds = env.rounds(2_000, seed=1)
    rounds.rewards[::17] += 8.0
    kept, limited = locb.ELOC(n_users=10, dim=6, robust=False), locb.ELOC(n_users=10, dim=6)
    for policy in (kept, limited):
        policy.play(rounds)
    assert kept.certificate([0, 1]) > 0.0
    with pytest.raises(ValueError, match="the effect of outliers was limited: create the policy with robust=False"):
        limited.certificate([0, 1])


def test_screen_replaces_arms_that_own_rewards_contradict() -> None:
    """The model believes that all users are alike, but one user has never had a reward for what the others like."""
    rng = np.random.default_rng(1)
    policies = {
        screen: locb.ELOC(n_users=30, dim=2, screen=screen, robust=False) for screen in ("noise", "theory", "off")
    }
    for policy in policies.values():
        for _ in range(40):
            for user in range(30):
                policy.update(user, [1.0, 0.0], float(user > 0 and rng.random() < 0.9))
                if user > 0:
                    policy.update(user, [0.0, 1.0], float(rng.random() < 0.1))
        policy._state.learned_scalars[EVERYONE], policy._state.learned_scalars[GAP] = 1e3, 0.0
    arms = np.eye(2)
    explanations = {screen: policy.explain(0, arms) for screen, policy in policies.items()}
    for screen, explanation in explanations.items():
        assert explanation.arm == policies[screen].recommend(0, arms)
        assert explanation.screened == (explanation.arm != np.argmax(explanation.estimate + explanation.bonus))
    assert {screen: explanation.arm for screen, explanation in explanations.items()} == {
        "noise": 1,
        "theory": 1,
        "off": 0,
    }


def test_probabilities_name_the_true_groups() -> None:
    env = locb.Synthetic(n_users=60, n_clusters=3, seed=3)
    policy, truth = locb.ELOC(n_users=60, dim=env.dim, n_seeds=12), np.zeros(60, int)
    for group, members in enumerate(env.true_clusters()):
        truth[members] = group
    policy.play(env.rounds(100, seed=1))
    probabilities = membership_probabilities(policy.group_summary(), policy.user_batch(np.arange(60)))
    assert probabilities is not None
    assert (probabilities[:, :-1] < 0.9).all(), "100 rounds are not enough to be sure of a group"
    policy.play(env.rounds(12_000, seed=2))
    summary, batch = policy.group_summary(), policy.user_batch(np.arange(60))
    probabilities, same_as = membership_probabilities(summary, batch), summary.same_as
    assert probabilities is not None
    assert same_as is not None
    seeds = summary.seeds[:-1]
    assert (truth[seeds] == truth[seeds[same_as[:-1]]]).all(), "duplicates of one group have seeds of one group"
    assert len(set(same_as[:-1][seeds >= 0].tolist())) == 3
    np.testing.assert_array_equal(probabilities, probabilities[:, same_as])
    originals = np.unique(same_as)
    total = probabilities[:, originals].sum(axis=1)
    assert (total < 1.0 + 1e-12).all()
    assert (total > 0.5).mean() > 0.95, "few users are like no group"
    best, sure = probabilities.argmax(axis=1), probabilities.max(axis=1) >= 0.9
    assert sure.mean() > 0.8
    assert (truth[seeds[best[sure]]] == truth[sure]).mean() > 0.95


def test_duplicates_have_nearly_the_same_predictions() -> None:
    env = locb.Synthetic(n_users=40, n_clusters=4, seed=5)
    policy = locb.ELOC(n_users=40, dim=env.dim, n_seeds=15)
    summary = policy.group_summary()
    assert summary.same_as is not None
    assert summary.same_as.tolist() == list(range(16)), "nothing is known yet"
    rounds = env.rounds(1_500, seed=1)
    contexts = rounds.contexts[np.arange(1_500), policy.play(rounds)]
    same_as = policy.group_summary().same_as
    assert same_as is not None
    state, d = policy._state, env.dim
    covariance = np.zeros((d, d))
    covariance[np.triu_indices(d)] = state.population[0, d:]
    covariance += np.triu(covariance, 1).T
    limit = MAX_DUPLICATE_DIFFERENCE * 2.0 * np.mean([x @ covariance @ x for x in contexts])
    data = [sum(state.pooled_sums[s, d:][np.equal(*np.triu_indices(d))]) for s in range(15)]
    originals: list[int] = []
    active = [s for s in range(15) if state.seeds[s] >= 0]
    for s in sorted(active, key=lambda s: -data[s]):
        gaps = {r: np.mean((contexts @ (state.centres[s, :d] - state.centres[r, :d])) ** 2) for r in originals}
        nearest = min(gaps, key=gaps.__getitem__, default=s)
        expected = nearest if gaps and gaps[nearest] < limit else s
        assert same_as[s] == expected
        originals += [s] if expected == s else []
    assert 1 < len(originals) < len(active)
