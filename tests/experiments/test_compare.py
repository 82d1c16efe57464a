import numpy as np
import pytest

import locb
from locb.experiments.compare import checkpoints, moments, plan

SMALL = {"rounds": 600, "repeats": 2, "world": {"n_users": 15, "n_clusters": 3, "n_arms": 4}, "jobs": 1}


def test_all_policies_play_the_same_rounds() -> None:
    result = locb.compare(["locb", "linucb-ind"], n_seeds=5, seed=4, **SMALL)
    assert [entry.policy for entry in result.results] == ["locb", "linucb-ind"]
    assert result.seeds == [4, 5]
    for entry in result.results:
        for repeat, seed in enumerate(result.seeds):
            env = locb.Synthetic(**SMALL["world"], seed=seed)
            extra = {"n_seeds": 5} if entry.policy == "locb" else {}
            policy = locb.make_policy(entry.policy, n_users=15, dim=env.dim, seed=seed, **extra)
            run = locb.simulate(policy, env, rounds=600, seed=seed)
            assert np.array_equal(entry.regret[repeat], run.regret[result.checkpoints - 1])
            assert entry.reward[repeat] == run.rewards.mean()
            assert np.array_equal(entry.cumulative_reward[repeat], np.cumsum(run.rewards)[result.checkpoints - 1])
    found = result.results[0]
    assert (found.n_clusters >= 1).all()
    assert ((found.f1 > 0) & (found.f1 <= 1)).all()
    assert np.isnan(result.results[1].f1).all()
    assert result.user_map is not None
    assert result.user_map.policy == "locb"


@pytest.mark.parametrize("name", ["locb", "club"])
def test_groups_are_kept_as_they_form(name: str) -> None:
    result = locb.compare([name], n_seeds=5, **SMALL) if name == "locb" else locb.compare([name], **SMALL)
    (entry,) = result.results
    assert entry.cluster_history is not None
    assert entry.cluster_history.count.shape == entry.cluster_history.f1.shape == (2, len(result.cluster_checkpoints))
    assert entry.cluster_history.count[:, -1].tolist() == entry.n_clusters.tolist()
    assert entry.cluster_history.f1[:, -1].tolist() == entry.f1.tolist()
    for repeat, seed in enumerate(result.seeds):
        env = locb.Synthetic(**SMALL["world"], seed=seed)
        for place in (3, 10):
            extra = {"n_seeds": 5} if name == "locb" else {}
            policy = locb.make_policy(name, n_users=15, dim=env.dim, seed=seed, **extra)
            policy.play(env.rounds(int(result.cluster_checkpoints[place]), seed=seed))
            found = {tuple(cluster.members.tolist()) for cluster in policy.clusters()}
            assert entry.cluster_history.count[repeat, place] == len(found)
            assert entry.cluster_history.f1[repeat, place] == locb.match_clusters(found, env.true_clusters()).f1
            if repeat == 0:
                assert {tuple(members.tolist()) for members in entry.cluster_history.clusters[place]} == found


def test_moments_are_more_where_looks_cost_little() -> None:
    assert moments(3, 10) == (1, 2, 3)
    assert len(moments(50_000, 100)) == 24
    assert len(moments(50_000, 100_000)) == 12
    assert moments(50_000, 100)[-1] == moments(50_000, 100_000)[-1] == 50_000
    assert list(moments(600, 15)) == sorted(set(moments(600, 15)))


def test_processes_do_not_change_the_result() -> None:
    one = locb.compare(["locb", "club"], **SMALL)
    two = locb.compare(["locb", "club"], **{**SMALL, "jobs": 2})
    for a, b in zip(one.results, two.results, strict=True):
        assert np.array_equal(a.regret, b.regret)
        assert np.array_equal(a.f1, b.f1)


def test_a_sweep_runs_every_alpha_and_a_policy_without_one_runs_once() -> None:
    class Random(locb.Policy):
        def recommend(self, user, contexts):
            return 0

        def update(self, user, context, reward):
            pass

    locb.POLICIES["random"] = Random
    try:
        result = locb.compare(["linucb-one", "random"], alphas=[0.1, 1.0], **SMALL)
    finally:
        del locb.POLICIES["random"]
    assert [(e.policy, e.alpha) for e in result.results] == [("linucb-one", 0.1), ("linucb-one", 1.0), ("random", None)]
    assert result.user_map is None


class NeedsAlpha(locb.Policy):
    def __init__(self, n_users, dim, alpha):
        super().__init__(n_users=n_users, dim=dim)

    def recommend(self, user, contexts):
        return 0

    def update(self, user, context, reward):
        pass


class Forgetful(NeedsAlpha):
    def __init__(self, *, n_users, dim):
        pass  # forgets super().__init__


class Unfinished(locb.Policy):
    def recommend(self, user, contexts):
        return 0


def test_policies_of_ones_own_are_prepared_as_they_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "own", NeedsAlpha)
    planned = plan(["own"], **{name: value for name, value in SMALL.items() if name != "jobs"})
    planned.prepare()
    assert planned.run(jobs=1).results[0].policy == "own"


def test_a_broken_policy_is_named_with_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(locb.POLICIES, "forgetful", Forgetful)
    with pytest.raises(ValueError, match=r"policy forgetful failed while it played: AttributeError: .*_dim.*line"):
        locb.compare(["forgetful"], **SMALL)
    monkeypatch.setitem(locb.POLICIES, "unfinished", Unfinished)
    with pytest.raises(ValueError, match=r"policy unfinished cannot be made: TypeError: .*update"):
        locb.compare(["unfinished"], **SMALL)


def test_checkpoints_end_with_the_last_round() -> None:
    assert checkpoints(3).tolist() == [1, 2, 3]
    assert checkpoints(50_000)[[0, -1]].tolist() == [1, 50_000]
    assert len(checkpoints(50_000)) == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": ["ucb"]}, "policies must be among locb, .* not 'ucb'"),
        ({"policies": "locb"}, "policies must be a list of names, not 'locb'"),
        ({"alphas": [1.0, 1.0]}, "alphas must differ"),
        ({"jobs": -2}, "jobs must be -1 or at least 1, not -2"),
        ({"policies": []}, "policies must name at least one"),
        ({"policies": ["club", "club"]}, "policies must differ, not club, club"),
        ({"alphas": []}, "alphas must name at least one"),
        ({"alphas": [-1.0]}, "alpha must be between 0"),
        ({"rounds": 0}, "rounds must be at least 1, not 0"),
        ({"repeats": 0}, "repeats must be at least 1, not 0"),
        ({"n_seeds": 16}, "n_seeds must be at most n_users = 15, not 16"),
        ({"world": {"n_users": 3, "n_clusters": 9}}, "n_clusters must be at most n_users"),
    ],
)
def test_bad_settings_fail_before_any_work(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        locb.compare(**{**SMALL, "policies": ["locb"], **change})
