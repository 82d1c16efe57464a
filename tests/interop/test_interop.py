"""Policies and environments in other libraries: the same choices and rewards as ``locb.simulate``, bit for bit."""

import re
import sys
from typing import Any

import numpy as np
import pytest

import locb

N, ROUNDS, SEED = 12, 300, 3
MISSING = "{0} is not installed: run pip install 'locb[interop]'"
OBP_MISSING = "obp is not installed: its last release, 0.5.7, requires Python below 3.11"
KINDS: dict[str, dict[str, Any]] = {"locb": {"n_seeds": 4}, "eloc": {"n_seeds": 4}, "linucb-ind": {}}


@pytest.fixture(scope="module")
def env() -> locb.Synthetic:
    return locb.Synthetic(n_users=N, n_clusters=2, n_arms=5, seed=7)


def make(name: str, env: locb.Environment) -> locb.Policy:
    return locb.make_policy(name, n_users=env.n_users, dim=env.dim, **KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_coba_experiment_gives_the_rewards_of_simulate(name: str, env: locb.Synthetic) -> None:
    coba = pytest.importorskip("coba", reason=MISSING.format("coba"))
    source = locb.interop.CobaEnvironment(env, rounds=ROUNDS, seed=SEED)
    learner = locb.interop.CobaLearner(make(name, env))
    result = coba.Experiment([source], [learner, coba.RandomLearner()]).run(quiet=True)
    run = locb.simulate(make(name, env), env, rounds=ROUNDS, seed=SEED)
    rows = [row for row in result.interactions.to_dicts() if row["learner_id"] == 0]
    assert [row["reward"] for row in rows] == run.rewards.tolist()
    contexts = env.rounds(ROUNDS, seed=SEED).contexts
    actions = contexts[np.arange(ROUNDS), run.chosen]  # coba rounds actions in its results to five digits
    assert np.array([list(row["action"]) for row in rows]) == pytest.approx(actions, abs=1e-5)
    played = locb.interop.CobaLearner(make(name, env))
    for interaction in source.read():
        action, probability = played.predict(interaction["context"], interaction["actions"])["action_prob"]
        reward = interaction["rewards"][interaction["actions"].index(action)]
        played.learn(interaction["context"], action, reward, probability)
    assert np.array_equal(played.policy.theta, run.policy.theta)


def test_environment_from_coba_has_its_interactions(env: locb.Synthetic) -> None:
    coba = pytest.importorskip("coba", reason=MISSING.format("coba"))
    back = locb.interop.from_coba(locb.interop.CobaEnvironment(env, rounds=ROUNDS, seed=SEED))
    again, rounds = back.rounds(ROUNDS), env.rounds(ROUNDS, seed=SEED)
    for field in ("users", "contexts", "rewards"):
        assert np.array_equal(getattr(again, field), getattr(rounds, field))
    (synthetic,) = coba.Environments.from_linear_synthetic(200, n_actions=4, seed=1)
    converted = locb.interop.from_coba(synthetic, dim=64)
    run = locb.simulate(locb.LinUCB(n_users=1, dim=64), converted, rounds=200)
    (result,) = (coba.Experiment([synthetic], [locb.interop.CobaLearner("linucb-ind", dim=64)]).run(quiet=True),)
    rewards = [row["reward"] for row in result.interactions.to_dicts()]
    assert rewards == pytest.approx(run.rewards.tolist(), abs=1e-5)  # coba rounds its results to five digits
    with pytest.raises(ValueError, match="dim is required, because contexts have features"):
        locb.interop.from_coba(synthetic)
    with pytest.raises(ValueError, match="count must be from 0 to 200, the number of recorded rounds, not 201"):
        converted.rounds(201)


def test_coba_actions_of_different_numbers() -> None:
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    items, arms = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0, 1, 2], [2, 0, -1]]
    rounds = locb.Rounds.of_items([0, 1], items, [[0.0, 1.0, 0.5], [0.25, 0.75, 0.0]], arms=arms)
    given = locb.interop.CobaEnvironment(locb.RecordedRounds(rounds), rounds=2)
    assert [interaction["rewards"] for interaction in given.read()] == [[0.0, 1.0, 0.5], [0.25, 0.75]]
    back = locb.interop.from_coba(given).rounds(2)
    assert [offered.tolist() for offered in back.contexts] == [offered.tolist() for offered in rounds.contexts]
    assert back.earned([1, 1]).tolist() == [1.0, 0.75]
    missing = locb.Rounds([0], [[[1.0], [2.0]]], [[1.0, np.nan]])
    with pytest.raises(
        ValueError, match=r"coba needs the rewards of all actions, but those of user 0 are \[1.0, nan\]"
    ):
        list(locb.interop.CobaEnvironment(locb.RecordedRounds(missing), rounds=1).read())


def test_coba_learner_adds_unknown_users_and_hashes_features() -> None:
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    learner = locb.interop.CobaLearner("linucb-ind", dim=32, n_users=2)
    for _ in range(30):
        for user, liked in (("ann", "drama"), ("bob", "crime")):
            action, probability = learner.predict({"user": user, "hour": 9}, ["crime", "drama"])["action_prob"]
            assert probability == 1.0
            learner.learn({"user": user, "hour": 9}, action, float(action == liked), 1.0)
    assert learner.policy.n_users == 2  # the first users take the indices without a user
    assert learner.user_ids == ["ann", "bob"]
    assert learner.score({"user": "ann", "hour": 9}, ["crime", "drama"], "drama") == 1.0
    assert learner.score({"user": "bob", "hour": 9}, ["crime", "drama"], "drama") == 0.0
    with pytest.raises(ValueError, match="dim is required if policy is a name \\('locb'\\), unless the first action"):
        locb.interop.CobaLearner("locb").predict("ann", ["crime", "drama"])
    with pytest.raises(ValueError, match="has its own parameters; omit dim, gamma"):
        locb.interop.CobaLearner(locb.LinUCB(n_users=1, dim=2), dim=2, gamma=1.0)


def play_coba(learner: Any, rounds: locb.Rounds, ids: list[Any]) -> list[float]:
    """Play rounds with the learner interface of coba, and return the rewards; ``ids`` has the id of each user."""
    earned = []
    for user, contexts, rewards in zip(rounds.users.tolist(), rounds.contexts, rounds.rewards, strict=True):
        actions = [tuple(arm) for arm in contexts.tolist()]
        action, probability = learner.predict(ids[user], actions)["action_prob"]
        earned.append(float(rewards[actions.index(action)]))
        learner.learn(ids[user], action, earned[-1], probability)
    return earned


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("n_users", [None, N])
def test_text_users_get_the_rewards_of_integer_users(name: str, n_users: int | None, env: locb.Synthetic) -> None:
    """Text users were added after the first ``n_users``, so all seed users were users who never arrived."""
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    drawn = env.rounds(ROUNDS, seed=SEED)
    order = list(dict.fromkeys(drawn.users.tolist()))  # number the users in the order in which they arrive
    rounds = drawn.with_arrays(drawn.arrays() | {"users": np.array([order.index(user) for user in drawn.users])})
    texts = [f"user {user}" for user in range(N)]
    learners = [locb.interop.CobaLearner(name, dim=env.dim, n_users=n_users) for _ in range(2)]
    by_text, by_number = play_coba(learners[0], rounds, texts), play_coba(learners[1], rounds, list(range(N)))
    assert by_text == by_number
    assert np.array_equal(learners[0].policy.theta, learners[1].policy.theta)
    assert learners[0].user_ids[:N] == texts
    if name != "linucb-ind":
        seeds = {cluster.seed for cluster in learners[0].policy.clusters()}
        assert set(range(N)) <= seeds  # every user is a seed user: there are fewer than 30
    if n_users is not None:
        policy = locb.make_policy(name, n_users=N, dim=env.dim)
        assert by_text == locb.simulate(policy, locb.RecordedRounds(rounds), rounds=ROUNDS).rewards.tolist()


def test_locb_splits_groups_of_text_users_in_coba_and_river() -> None:
    """Without ``n_users``, LOCB had one seed user, who never arrived, and gave all users the same recommendations."""
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    pytest.importorskip("river.bandit", reason=MISSING.format("river"))
    env = locb.Synthetic(n_users=30, n_clusters=3, seed=7)
    rounds, ids = env.rounds(3_000, seed=1), [f"user {user}" for user in range(30)]
    shared = locb.simulate(locb.LinUCB(n_users=30, dim=6, shared=True), env, rounds=3_000, seed=1).rewards.mean()
    learner = locb.interop.CobaLearner("locb")  # dim is the length of the first action
    assert learner.params == {"family": "locb LOCB", "policy": "LOCB"}
    assert np.mean(play_coba(learner, rounds, ids)) > shared + 0.05
    assert learner.policy.dim == 6
    assert min(learner.policy.cluster_sizes()) < 30
    policy, earned = locb.interop.RiverPolicy("locb"), []
    arms = list(range(env.n_arms))
    for user, contexts, rewards in zip(rounds.users.tolist(), rounds.contexts, rounds.rewards, strict=True):
        context = {"user": ids[user], "arms": contexts}
        arm = policy.pull(arms, context=context)
        policy.update(arm, context, rewards[arm])
        earned.append(rewards[arm])
    assert np.mean(earned) > shared + 0.05
    assert policy.user_ids == learner.user_ids
    fresh = policy.clone()
    fresh.pull(arms, context=context)
    assert fresh.user_ids == [ids[user]]


def test_unknown_users_do_not_take_indices_with_rewards() -> None:
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    trained = locb.LinUCB(n_users=3, dim=2)
    trained.update(0, [1.0, 0.0], 1.0)
    learner = locb.interop.CobaLearner(trained)
    for user in (2, "ann", "bob", 1):
        learner.learn(user, (0.0, 1.0), 1.0, 1.0)
    assert learner.user_ids == [None, "ann", 2, "bob", 1]
    assert trained.served.tolist() == [1, 1, 1, 1, 1]


def test_actions_of_another_length_than_dim_are_an_error() -> None:
    pytest.importorskip("coba", reason=MISSING.format("coba"))
    message = "actions must have 5 features, the dim of the policy, not 6"
    with pytest.raises(ValueError, match=message):
        locb.interop.CobaLearner("locb", dim=5, n_users=50).predict(0, [(0.1,) * 6, (0.2,) * 6])
    with pytest.raises(ValueError, match=message):
        locb.interop.CobaLearner("locb", dim=5).learn("ann", (0.1,) * 6, 1.0, 1.0)
    env = locb.interop.CobaEnvironment(locb.Synthetic(n_users=3, n_clusters=1, seed=7), rounds=3)
    with pytest.raises(ValueError, match=message):
        locb.interop.from_coba(env, dim=5)


@pytest.mark.parametrize("name", KINDS)
def test_river_policy_chooses_like_simulate(name: str, env: locb.Synthetic) -> None:
    bandit = pytest.importorskip("river.bandit", reason=MISSING.format("river"))
    policy = locb.interop.RiverPolicy(make(name, env))
    assert isinstance(policy, bandit.base.ContextualPolicy)
    rounds, arms = env.rounds(ROUNDS, seed=SEED), [f"arm {arm}" for arm in range(env.n_arms)]
    chosen = []
    for user, contexts, rewards in zip(rounds.users, rounds.contexts, rounds.rewards, strict=True):
        context = {"user": user, "arms": contexts}
        arm = policy.pull(arms, context=context)
        policy.update(arm, context, rewards[arms.index(arm)])
        chosen.append(arms.index(arm))
    assert chosen == locb.simulate(make(name, env), env, rounds=ROUNDS, seed=SEED).chosen.tolist()
    assert sum(int(count) for count in policy._counts.values()) == ROUNDS
    pulls = dict(re.findall(r"^ *(arm \d) +Mean: \S+ +(\d+) ", repr(policy), re.MULTILINE))
    assert pulls == {name: str(chosen.count(arm)) for arm, name in enumerate(arms)}
    fresh = policy.clone()
    assert fresh.policy.get_params() == policy.policy.get_params()
    assert fresh.policy.served.sum() == 0
    with pytest.raises(ValueError, match="context must have one row of 'arms' per arm, 5, not 2"):
        policy.pull(arms, context={"arms": [[0.0] * 6] * 2})


def test_gymnasium_needs_the_same_number_of_arms() -> None:
    pytest.importorskip("gymnasium", reason=MISSING.format("gymnasium"))
    rounds = locb.Rounds.of_items([0, 0], [[1.0], [2.0]], np.zeros((2, 2)), arms=[[0, 1], [1, -1]])
    with pytest.raises(ValueError, match="env must have the same number of arms in all rounds"):
        locb.interop.GymnasiumEnvironment(locb.RecordedRounds(rounds), rounds=2).reset()


@pytest.mark.parametrize("name", KINDS)
def test_gymnasium_episode_gives_the_rewards_of_simulate(name: str, env: locb.Synthetic) -> None:
    pytest.importorskip("gymnasium", reason=MISSING.format("gymnasium"))
    from gymnasium.utils.env_checker import check_env

    gym_env = locb.interop.GymnasiumEnvironment(env, rounds=ROUNDS)
    check_env(locb.interop.GymnasiumEnvironment(env, rounds=5), skip_render_check=True)
    policy, rewards, regrets, ended = make(name, env), [], [], False
    observation, _ = gym_env.reset(seed=SEED)
    while not ended:
        user, arms = observation["user"], observation["arms"]
        arm = policy.recommend(user, arms)
        observation, reward, terminated, ended, info = gym_env.step(arm)
        policy.update(user, arms[arm], reward)
        rewards.append(reward)
        regrets.append(info["regret"])
        assert not terminated
    run = locb.simulate(make(name, env), env, rounds=ROUNDS, seed=SEED)
    assert rewards == run.rewards.tolist()
    assert np.cumsum(regrets).tolist() == run.regret.tolist()
    with pytest.raises(RuntimeError, match="step was called before reset, or after the end"):
        gym_env.step(0)
    first = gym_env.reset()[0]["arms"]  # another episode: the next seed
    assert np.array_equal(first, env.rounds(1, seed=SEED + 1).contexts[0])


def test_classification_data_become_rounds() -> None:
    datasets = pytest.importorskip(
        "sklearn.datasets", reason="scikit-learn is not installed: run pip install locb[data]"
    )
    iris = datasets.load_iris()
    env = locb.interop.Classification(iris)
    assert (env.n_users, env.n_arms, env.dim) == (1, 3, 15)
    rounds = env.rounds(400, seed=2)
    rows = np.random.default_rng([2, 0]).integers(150, size=4096)[:400]
    scaled = iris.data / np.linalg.norm(iris.data, axis=1).max()
    for t, row in enumerate(rows):
        for arm in range(3):
            expected = np.zeros(15)
            expected[5 * arm : 5 * arm + 5] = [*scaled[row], 1.0]
            assert np.array_equal(rounds.contexts[t, arm], expected)
            assert rounds.rewards[t, arm] == (iris.target[row] == arm)
    run = locb.simulate(locb.LinUCB(n_users=1, dim=env.dim), env, rounds=4_000)
    assert run.rewards[-1_000:].mean() > 0.9
    users = np.where(iris.target == 0, "ann", "bob")
    by_user = locb.interop.Classification(iris.data, iris.target_names[iris.target], users=users)
    assert by_user.user_ids.tolist() == ["ann", "bob"]
    drawn = by_user.rounds(200)
    assert np.array_equal(drawn.users == 0, drawn.rewards[:, by_user.classes.tolist().index("setosa")] == 1.0)
    for arguments, message in (
        (([[1.0]],), "y is required, because x is not a data set"),
        (([[1.0]], [1, 2]), r"y must have one value for each of 1 rows, not \(2,\)"),
        (([[1.0], [2.0]], [1, 1]), "y must have at least 2 classes, not 1"),
    ):
        with pytest.raises(ValueError, match=message):
            locb.interop.Classification(*arguments)


def make_obp_policy(**options: Any) -> Any:
    return locb.interop.ObpPolicy("linucb-ind", dim=4, n_actions=3, **options)


def obp_rounds(contexts: Any, rewards: Any) -> locb.Rounds:
    """Return rounds with the features that the policies of OBP use: one block per action."""
    blocks = np.zeros((len(contexts), 3, 12))
    for arm in range(3):
        blocks[:, arm, 4 * arm : 4 * arm + 4] = contexts
    return locb.Rounds(np.zeros(len(contexts), np.int64), blocks, rewards)


def test_obp_policy_learns_like_play() -> None:
    """The loop of the simulator of OBP, which needs nothing from OBP."""
    rng = np.random.default_rng(1)
    contexts, rewards = rng.standard_normal((300, 4)), rng.random((300, 3))
    policy, chosen = make_obp_policy(), []
    for context, reward in zip(contexts, rewards, strict=True):
        (action,) = policy.select_action(context[None])
        policy.update_params(action=action, reward=reward[action], context=context[None])
        chosen.append(int(action))
    assert chosen == locb.LinUCB(n_users=1, dim=12).play(obp_rounds(contexts, rewards)).tolist()
    assert policy.action_counts.tolist() == np.bincount(chosen, minlength=3).tolist()
    policy.initialize()
    assert (policy.n_trial, policy.policy.served.sum()) == (0, 0)
    by_user = make_obp_policy(user_column=0, n_users=2)
    by_user.update_params(action=1, reward=1.0, context=np.array([[1.0, 0.5, 0.5, 0.5]]))
    assert by_user.policy.served.tolist() == [0, 1]
    assert by_user.policy.dim == 9


def test_obp_replay_and_simulator() -> None:
    pytest.importorskip("obp", reason=OBP_MISSING)
    from obp.simulator.replay import run_bandit_replay
    from obp.simulator.simulator import BanditEnvironmentSimulator, BanditPolicySimulator

    environment = BanditEnvironmentSimulator(n_actions=3, dim_context=4, random_state=1)
    batch = environment.next_bandit_round_batch(300)
    simulator = BanditPolicySimulator(environment=None, policy=make_obp_policy())
    simulator.steps(batch_bandit_rounds=batch, n_rounds=None)
    chosen = locb.LinUCB(n_users=1, dim=12).play(obp_rounds(batch.context, batch.rewards))
    assert simulator.selected_actions.tolist() == chosen.tolist()
    logged = {"n_rounds": 300, "action": chosen, "reward": batch.rewards[np.arange(300), chosen], "position": None}
    logged |= {"pscore": np.full(300, 1 / 3), "context": batch.context}
    played = run_bandit_replay(logged, make_obp_policy())
    assert np.array_equal(played[:, :, 0].argmax(axis=1), chosen)


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "locb.interop.gymnasium_adapters", raising=False)
    with pytest.raises(ImportError, match=r"locb\.interop\.GymnasiumEnvironment needs the package gymnasium: run pip"):
        locb.interop.GymnasiumEnvironment  # noqa: B018 - the access is the test
    with pytest.raises(AttributeError, match=r"module 'locb\.interop' has no attribute 'Vowpal'"):
        locb.interop.Vowpal  # noqa: B018 - the access is the test
