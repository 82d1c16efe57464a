"""Comparison of policies: the same rounds for all, recorded clusters, and errors of custom policies."""

import numpy as np
import pytest

import locb
from locb.experiments.comparison.comparison_plan import plan_comparison
from locb.experiments.comparison.curve_points import cluster_checkpoints, regret_checkpoints
from locb.parallel.workers import Workers

SMALL = {"rounds": 600, "repeats": 2, "environment": {"n_users": 15, "n_clusters": 3, "n_arms": 4}, "jobs": 1}


def test_policies_get_the_same_rounds() -> None:
    compared = locb.compare(["locb", "linucb-ind"], n_seeds=5, seed=4, **SMALL)
    assert [entry.policy for entry in compared.results] == ["locb", "linucb-ind"]
    assert compared.seeds == [4, 5]
    for entry in compared.results:
        for repeat, seed in enumerate(compared.seeds):
            env = locb.Synthetic(**SMALL["environment"], seed=seed)
            extra = {"n_seeds": 5} if entry.policy == "locb" else {}
            policy = locb.make_policy(entry.policy, n_users=15, dim=env.dim, seed=seed, **extra)
            run = locb.simulate(policy, env, rounds=600, seed=seed)
            assert np.array_equal(entry.regret[repeat], run.regret[compared.checkpoints - 1])
            assert entry.reward[repeat] == run.rewards.mean()
            assert np.array_equal(entry.cumulative_reward[repeat], np.cumsum(run.rewards)[compared.checkpoints - 1])
    found = compared.results[0]
    assert (found.n_clusters >= 1).all()
    assert ((found.f1 > 0) & (found.f1 <= 1)).all()
    assert np.isnan(compared.results[1].f1).all()
    assert compared.user_map is not None
    assert compared.user_map.policy == "locb"


@pytest.mark.parametrize("name", ["locb", "club"])
def test_clusters_are_recorded_at_checkpoints(name: str) -> None:
    compared = locb.compare([name], n_seeds=5, **SMALL) if name == "locb" else locb.compare([name], **SMALL)
    (entry,) = compared.results
    assert entry.cluster_history is not None
    assert entry.cluster_history.count.shape == entry.cluster_history.f1.shape == (2, len(compared.cluster_checkpoints))
    assert entry.cluster_history.count[:, -1].tolist() == entry.n_clusters.tolist()
    assert entry.cluster_history.f1[:, -1].tolist() == entry.f1.tolist()
    for repeat, seed in enumerate(compared.seeds):
        env = locb.Synthetic(**SMALL["environment"], seed=seed)
        for index in (3, 10):
            extra = {"n_seeds": 5} if name == "locb" else {}
            policy = locb.make_policy(name, n_users=15, dim=env.dim, seed=seed, **extra)
            policy.play(env.rounds(int(compared.cluster_checkpoints[index]), seed=seed))
            found = {tuple(cluster.members.tolist()) for cluster in policy.clusters()}
            assert entry.cluster_history.count[repeat, index] == len(found)
            assert entry.cluster_history.f1[repeat, index] == locb.match_clusters(found, env.true_clusters()).f1
            if repeat == 0:
                assert {tuple(members.tolist()) for members in entry.cluster_history.clusters[index]} == found


def test_more_cluster_checkpoints_where_recording_is_cheap() -> None:
    assert cluster_checkpoints(3, 10) == (1, 2, 3)
    assert len(cluster_checkpoints(50_000, 100)) == 24
    assert len(cluster_checkpoints(50_000, 100_000)) == 12
    assert cluster_checkpoints(50_000, 100)[-1] == cluster_checkpoints(50_000, 100_000)[-1] == 50_000
    assert list(cluster_checkpoints(600, 15)) == sorted(set(cluster_checkpoints(600, 15)))


def test_result_does_not_depend_on_processes() -> None:
    one = locb.compare(["locb", "club"], **SMALL)
    two = locb.compare(["locb", "club"], **{**SMALL, "jobs": 2})
    assert len(one.results) == 2
    for a, b in zip(one.results, two.results, strict=True):
        assert a.regret.size > 0
        assert np.array_equal(a.regret, b.regret)
        assert np.array_equal(a.f1, b.f1)


def test_every_alpha_runs_and_a_policy_without_alpha_runs_once() -> None:
    class Random(locb.Policy):
        def recommend(self, user, contexts):
            return 0

        def update(self, user, context, reward):
            pass

    locb.POLICIES["random"] = Random
    try:
        compared = locb.compare(["linucb-one", "random"], alphas=[0.1, 1.0], **SMALL)
    finally:
        del locb.POLICIES["random"]
    assert [(entry.policy, entry.alpha) for entry in compared.results] == [
        ("linucb-one", 0.1),
        ("linucb-one", 1.0),
        ("random", None),
    ]
    assert compared.user_map is None


class NeedsAlpha(locb.Policy):
    def __init__(self, n_users, dim, alpha):
        super().__init__(n_users=n_users, dim=dim)

    def recommend(self, user, contexts):
        return 0

    def update(self, user, context, reward):
        pass


class WithoutSuperInit(NeedsAlpha):
    def __init__(self, *, n_users, dim):
        pass


class WithoutUpdate(locb.Policy):
    def recommend(self, user, contexts):
        return 0


def test_custom_policy_is_prepared_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "custom", NeedsAlpha)
    plan = plan_comparison(["custom"], **{name: value for name, value in SMALL.items() if name != "jobs"})
    plan.prepare()
    with Workers(jobs=1) as workers:
        assert plan.run(None, workers).results[0].policy == "custom"


def test_error_of_a_policy_names_policy_and_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "broken", WithoutSuperInit)
    with pytest.raises(
        ValueError, match=r"policy 'broken' raised an error during the run: AttributeError: .*_dim.*line"
    ):
        locb.compare(["broken"], **SMALL)
    monkeypatch.setitem(locb.POLICIES, "abstract", WithoutUpdate)
    with pytest.raises(ValueError, match=r"creating policy 'abstract' raised TypeError: .*update"):
        locb.compare(["abstract"], **SMALL)


def test_reward_range_is_a_parameter_of_all_policies() -> None:
    setup = SMALL | {"environment": SMALL["environment"] | {"noise": 5.0}}
    names = ["locb", "club"]
    with pytest.warns(locb.RewardScaleWarning, match=r"assumes rewards of about 0 to 1.*Set reward_range") as caught:
        plain = locb.compare(names, **setup)
    assert [(warning.filename, str(warning.message)) for warning in caught] == [(__file__, plain.notes[0])]
    ranged = locb.compare(names, reward_range=(-20, 21), **setup)
    assert ranged.notes == []
    assert ranged.settings["reward_range"] == [-20.0, 21.0]
    for entry in ranged.results:
        for repeat, seed in enumerate(ranged.seeds):
            env = locb.Synthetic(**setup["environment"], seed=seed)
            policy = locb.make_policy(entry.policy, n_users=15, dim=env.dim, seed=seed, reward_range=(-20, 21))
            run = locb.simulate(policy, env, rounds=600, seed=seed)
            assert np.array_equal(entry.regret[repeat], run.regret[ranged.checkpoints - 1])


def test_regret_checkpoints_include_the_last_round() -> None:
    assert regret_checkpoints(3).tolist() == [1, 2, 3]
    assert regret_checkpoints(50_000)[[0, -1]].tolist() == [1, 50_000]
    assert len(regret_checkpoints(50_000)) == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": ["ucb"]}, "unknown policy 'ucb'; choose from locb, "),
        ({"policies": "locb,club"}, "unknown policy 'locb,club'; choose from locb, "),
        ({"alphas": [1.0, 1.0]}, "alphas must be distinct"),
        ({"jobs": -2}, "jobs must be -1 or at least 1, not -2"),
        ({"policies": []}, "policies must have at least one element"),
        ({"policies": ["club", "club"]}, "policies must be distinct names, not club, club"),
        ({"alphas": []}, "alphas must have at least one element"),
        ({"alphas": [-1.0]}, "alpha must be at least 0, not -1.0"),
        ({"rounds": 0}, "rounds must be at least 1, not 0"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"reward_range": (1, 0)}, "reward_range must be \\(low, high\\), where high exceeds low"),
        ({"n_seeds": 16}, "n_seeds must be at most n_users = 15, not 16"),
        ({"environment": {"n_users": 3, "n_clusters": 9}}, "n_clusters must be at most n_users"),
    ],
)
def test_invalid_settings_fail_before_any_run(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.compare(**{**SMALL, "policies": ["locb"], **change})
