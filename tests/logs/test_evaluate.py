"""Evaluation of policies on a log: estimators against plain loops, diagnostics, verdicts, and invalid arguments."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import locb
from locb.logs.bootstrap import Interval, bootstrap_ratio, draw_counts, make_groups, random_stream
from locb.logs.estimators import FixedEstimators
from locb.logs.evaluate import check_choices
from locb.logs.results import BETTER, UNDECIDED, WORSE, PolicyValue, decide, needed_decisions
from locb.logs.row_arrays import number_distinct
from locb.logs.targets import FixedTarget, LearningTarget, make_target, reward_range
from logs.truth import choose, draw_log, draw_rounds, target_choice


def small_log(count: int = 400, seed: int = 0, **changes: Any) -> locb.Log:
    """Return a log of 20 users and decisions of 2 to 4 arms, with rewards that are higher for the arm c."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {name: [] for name in ("user", "arms", "arm", "reward", "propensity")}
    for _ in range(count):
        arms = list("abcd"[: rng.integers(3, 5)])
        probabilities = rng.dirichlet(np.full(len(arms), 5.0))
        arm = rng.choice(arms, p=probabilities)
        values = (f"u{rng.integers(20)}", "|".join(arms), arm, rng.normal(2.0 * (arm == "c")), 0.0)
        for name, value in zip(rows, values, strict=True):
            rows[name].append(value)
        rows["propensity"][-1] = probabilities[arms.index(arm)]
    return locb.Log.read(rows | changes)


def uniform_probabilities(user: str, arms: list[Any], contexts: Any) -> Any:
    return np.full(len(arms), 1.0 / len(arms))


def favour_last(user: str, arms: list[Any], contexts: Any) -> Any:
    return np.array([0.0] * (len(arms) - 2) + [0.25, 0.75])


def test_estimators_equal_plain_loops() -> None:
    log = small_log()
    target = make_target("last", favour_last, log, True, {})
    assert isinstance(target, FixedTarget)
    estimators = FixedEstimators(log, 200, 0)
    folds, ridge = estimators._folds, np.diag([1.0] * log.dim + [1e-6])
    expected: dict[str, list[tuple[float, float]]] = {"ips": [], "snips": [], "dr": []}
    models = {}
    for fold in set(folds.tolist()):
        train = np.flatnonzero(folds != fold)
        design = np.array([[*log.contexts(t)[log.chosen[t]], 1.0] for t in train])
        models[fold] = np.linalg.solve(design.T @ design + ridge, design.T @ log.rewards[train])
    for t in range(len(log)):
        contexts = np.hstack([log.contexts(t), np.ones((len(log.contexts(t)), 1))])
        probabilities = favour_last("", list(contexts), None)
        weight = probabilities[log.chosen[t]] / log.propensities[t]
        predicted = contexts @ models[int(folds[t])]
        residual = log.rewards[t] - predicted[log.chosen[t]]
        expected["ips"].append((weight * log.rewards[t], 1.0))
        expected["snips"].append((weight * log.rewards[t], weight))
        expected["dr"].append((float(probabilities @ predicted) + weight * residual, 1.0))
    for name, rows in expected.items():
        assert np.allclose(np.stack(estimators.terms(name, target), axis=1), rows), name


@pytest.mark.parametrize("max_cells", [0, 10**7])
def test_direct_method_equals_one_regression(max_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locb.logs.estimators.MAX_CELLS", max_cells)
    log = small_log()
    value = locb.evaluate(log, {"last": favour_last})["last"].value("dm").value.value
    design = np.array([[*log.contexts(t)[log.chosen[t]], 1.0] for t in range(len(log))])
    theta = np.linalg.solve(design.T @ design + np.diag([1.0] * log.dim + [1e-6]), design.T @ log.rewards)
    wanted = [
        favour_last("", list(log.contexts(t)), None) @ (log.contexts(t) @ theta[:-1] + theta[-1])
        for t in range(len(log))
    ]
    assert value == pytest.approx(np.mean(wanted))


def test_bootstrap_equals_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    sums = np.abs(rng.normal(size=(30, 4))) + 0.1
    counts = draw_counts(30, 500, random_stream(9, "replicates"))
    assert (counts.sum(axis=1) == 30).all()

    def statistic(rows: Any) -> tuple[float, float]:
        s1, n1, s2, n2 = rows.sum(axis=0)
        influence = (rows[:, 0] - s1 / n1 * rows[:, 1]) / n1 - (rows[:, 2] - s2 / n2 * rows[:, 3]) / n2
        return s1 / n1 - s2 / n2, math.sqrt(30 / 29 * (influence**2).sum())

    value, error = statistic(sums)
    scores = []
    for row in counts:
        drawn, spread = statistic(np.repeat(sums, row.astype(int), axis=0))
        scores.append((drawn - value) / spread)
    low, high = np.quantile(scores, (0.025, 0.975))
    found = bootstrap_ratio(sums, 500, 9)
    assert found == pytest.approx((value, value - high * error, value - low * error))


def test_intervals_that_cannot_be_computed() -> None:
    few = np.array([[1.0, 1.0], [2.0, 1.0]])
    assert bootstrap_ratio(few, 100, 0).value == 1.5
    assert math.isnan(bootstrap_ratio(few, 100, 0).low)
    assert math.isnan(bootstrap_ratio(np.ones((40, 2)), 100, 0).low)  # all users are equal
    assert math.isnan(bootstrap_ratio(np.zeros((40, 2)), 100, 0).value)


def test_many_users_are_merged() -> None:
    groups, count = make_groups(np.arange(1000, dtype=np.int32), 1000, 100, 0)
    assert count == 100
    assert groups.max() < 100
    groups, count = make_groups(*number_distinct(np.array([5, 7, 5])), 100, 0)
    assert (groups.tolist(), count) == ([0, 1, 0], 2)


def test_intervals_widen_when_users_repeat_their_decisions() -> None:
    log = small_log()
    twice = log.select(np.repeat(np.arange(len(log)), 2))
    once, doubled = (locb.evaluate(part, "random").results[0].values[0].value for part in (log, twice))
    assert doubled.value == pytest.approx(once.value)
    assert doubled.half_width == pytest.approx(once.half_width, rel=0.01)  # the same users, so the same information


def binary_rows(seed: int, scale: float = 1.0) -> dict[str, Any]:
    """Return 60 decisions of 12 users: the arm a almost never has a reward, and the arm b almost always."""
    rng = np.random.default_rng(seed)
    arm, user = rng.integers(2, size=60), rng.integers(12, size=60)
    return {"user": user, "arm": np.array(["a", "b"])[arm], "reward": scale * (rng.random(60) < 0.05 + 0.92 * arm)}


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_of_rewards_0_and_1_stay_in_the_range_of_means(seed: int) -> None:
    policies = ["arm:a", "arm:b", "linucb-one"]
    found, doubled = (
        locb.evaluate(locb.Log.read(binary_rows(seed, scale), propensity="uniform"), policies, replays=5)
        for scale in (1.0, 2.0)
    )
    clipped = set()
    for name in ("logged", *policies):
        for value, twice in zip(found[name].values, doubled[name].values, strict=True):
            for one, two, low in ((value.value, twice.value, 0.0), (value.difference, twice.difference, -1.0)):
                if one is None or two is None:  # the baseline has no difference
                    continue
                assert low <= one.low <= one.high <= 1.0
                if name != "linucb-one":  # its choices depend on the scale of rewards
                    assert one.value == pytest.approx(two.value / 2.0)
                    assert one[1:] == pytest.approx(np.clip(two[1:], 2 * low, 2.0) / 2.0)
                    if not 2 * low <= two.low <= two.high <= 2.0:
                        clipped.add(value.estimator)
    assert clipped >= {"dr", "snips", "ips", "replay", "dm"}
    assert found["linucb-one"].values[0].value.high == 1.0


def test_verdicts() -> None:
    log = small_log(2000)
    found = locb.evaluate(log, ["arm:c", "arm:a", "random", "first", "logged"])
    assert [found[name].verdict for name in ("arm:c", "arm:a")] == [BETTER, WORSE]
    assert found["arm:c"].values[0].value.value == pytest.approx(2.0, abs=0.25)
    assert "better than logged (+" in found["arm:c"].sentence
    assert found["logged"].verdict == ""
    assert found["arm:c"].value("ips").difference is not None
    with pytest.raises(KeyError, match="policy 'arm:d' was not evaluated; choose from logged, arm:c, arm:a, random"):
        found["arm:d"]
    with pytest.raises(KeyError, match="arm:c has no estimate of 'replay'; available estimators: dr, snips, ips, dm"):
        found["arm:c"].value("replay")  # the log is not uniform
    text = repr(found)
    assert text.splitlines()[0].startswith("policy")
    assert "<table>" in found._repr_html_()


def test_other_baselines() -> None:
    log = small_log(2000)
    found = locb.evaluate(log, ["arm:c", "logged"], baseline="arm:a")
    assert found.baseline == "arm:a"
    assert found["arm:c"].verdict == BETTER
    assert found["logged"].verdict == BETTER
    assert locb.evaluate(log, ["arm:a"], baseline="arm:c")["arm:a"].verdict == WORSE
    with pytest.raises(ValueError, match="baseline must be a fixed policy, such as 'logged' or 'random', not 'eloc'"):
        locb.evaluate(log, "random", baseline="eloc")


def test_same_policy_in_several_forms() -> None:
    log = draw_log(1)
    choice = target_choice(draw_rounds(1).contexts)
    found = locb.evaluate(log, {"function": choose, "array": choice, "random": "random", "even": uniform_probabilities})
    assert found["function"].values == found["array"].values
    for one, other in zip(found["random"].values, found["even"].values, strict=True):
        assert one.value.value == pytest.approx(other.value.value)


def test_policy_that_does_not_learn() -> None:
    log = draw_log(2)
    policy = locb.LinUCB(n_users=log.n_users, dim=log.dim, shared=True)
    rounds = draw_rounds(77)
    policy.play(rounds)
    before = policy.theta.copy()
    fixed = locb.evaluate(log, {"trained": policy}, learn=False)["trained"]
    assert fixed.kind == "fixed"
    assert fixed.verdict == BETTER
    learning = locb.evaluate(log, {"trained": policy})["trained"]
    assert learning.kind == "learning"
    assert np.array_equal(policy.theta, before)  # a copy learns
    wide = dataclasses.replace(log, features=np.hstack([log.features, log.features]))
    with pytest.raises(ValueError, match="has 60 users and 5 features, but the log has 60 users and 10 features"):
        locb.evaluate(wide, policy)


def test_replay_of_a_uniform_log_accepts_all_agreements() -> None:
    log = draw_log(3, uniform=True)
    result = locb.evaluate(log, "linucb-one")["linucb-one"]
    assert result.kind == "learning"
    assert result.weights is not None
    assert result.weights.mean.value == pytest.approx(1.0, abs=0.15)
    assert result.weights.decisions == result.weights.effective
    policy = locb.LinUCB(n_users=log.n_users, dim=log.dim, shared=True)
    rewards = []
    for t in range(len(log)):
        if policy.recommend(int(log.users[t]), log.contexts(t)) == log.chosen[t]:
            policy.update(int(log.users[t]), log.contexts(t)[log.chosen[t]], float(log.rewards[t]))
            rewards.append(log.rewards[t])
    assert result.values[0].value.value == pytest.approx(np.mean(rewards))


def test_wrong_propensities_are_noticed() -> None:
    log = small_log(2000)
    wrong = dataclasses.replace(log, propensities=np.minimum(1.0, 2 * log.propensities))
    result = locb.evaluate(wrong, "arm:c")["arm:c"]
    assert result.verdict == UNDECIDED
    assert "the mean weight is 0.5" in result.sentence


def test_missing_overlap_is_noticed() -> None:
    log = small_log(2000)
    logged = log.arms_of(log.chosen) != list(log.arm_ids).index("b")
    result = locb.evaluate(log.select(logged), "arm:b")["arm:b"]
    assert result.verdict == UNDECIDED
    assert "100.0% of the choices of the policy are arms that are never chosen in the log" in result.sentence
    certain = dataclasses.replace(log, propensities=np.ones(len(log)))
    result = locb.evaluate(certain, "random")["random"]
    assert "instead of 1" in result.sentence


def test_one_large_weight_is_noticed() -> None:
    log = small_log(200)
    propensities = log.propensities.copy()
    propensities[int(np.flatnonzero(log.arms_of(log.chosen) == 2)[0])] = 1e-4
    result = locb.evaluate(dataclasses.replace(log, propensities=propensities), "arm:c")["arm:c"]
    assert any("so few decisions determine the estimate" in text for text in result.warnings)
    assert result.verdict == UNDECIDED


def test_log_without_propensities() -> None:
    log = dataclasses.replace(small_log(), propensities=np.full(400, np.nan), columns=None)
    found = locb.evaluate(log, ["linucb-one", "arm:c"])
    assert found["linucb-one"].values == []
    assert [value.estimator for value in found["arm:c"].values] == ["dm"]
    assert found["arm:c"].values[0].assumes_model
    for name in ("linucb-one", "arm:c"):
        assert found[name].verdict == UNDECIDED
        assert "the log has no propensities" in found[name].sentence
    assert "dm (assumes model)" in repr(found)
    with pytest.raises(ValueError, match="baseline must be 'logged', not 'random': the log has no propensities"):
        locb.evaluate(log, "arm:c", baseline="random")


def test_missing_values_are_reported() -> None:
    log = small_log()
    rewards, propensities = log.rewards.copy(), log.propensities.copy()
    rewards[:10], propensities[10:30] = np.nan, np.nan
    found = locb.evaluate(dataclasses.replace(log, rewards=rewards, propensities=propensities), "random")
    assert "10 of 400 decisions have no reward and are not used" in found.notes[0]
    assert "20 decisions have no propensity and are not used" in found.notes[1]
    with pytest.raises(ValueError, match="the log has no rewards"):
        locb.evaluate(dataclasses.replace(log, rewards=np.full(400, np.nan)), "random")


def test_rewards_in_euros() -> None:
    log = draw_log(4)
    euros = dataclasses.replace(log, rewards=250.0 * log.rewards - 40.0)
    small, large = (locb.evaluate(part, {"target": choose, "linucb-one": "linucb-one"}) for part in (log, euros))
    for one, other in zip(small["target"].values[:3], large["target"].values[:3], strict=True):
        assert one.difference is not None
        assert other.difference is not None
        if one.estimator != "ips":  # IPS depends on the origin of rewards
            assert other.difference.value == pytest.approx(250.0 * one.difference.value, abs=0.5)
    assert small["linucb-one"].values[0].value.value * 250.0 - 40.0 == pytest.approx(
        large["linucb-one"].values[0].value.value, abs=0.01
    )


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [([0, 1], None), ([0, 0.5], None), ([0, 0.01], (0, 0.01)), ([0, 100], (0, 100)), ([7, 7], (0, 7))],
)
def test_reward_range(rewards: list[float], expected: Any) -> None:
    found = reward_range(np.array(rewards * 100, dtype=float))
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("parameters", "expected"), [({}, (0.0, 50.0)), ({"reward_range": [0, 80]}, (0.0, 80.0))], ids=["log", "given"]
)
def test_learning_policies_get_the_reward_range_of_the_log_or_the_given_one(
    parameters: dict[str, Any], expected: tuple[float, float]
) -> None:
    log = small_log()
    euros = dataclasses.replace(log, rewards=50.0 * (np.arange(len(log)) % 2))
    for name in ("locb", "eloc", "linucb-one"):
        target = make_target(name, name, euros, True, parameters)
        assert isinstance(target, LearningTarget)
        assert target.make(0).get_params()["reward_range"] == expected


def test_number_of_decisions_that_would_decide() -> None:
    close = Interval(0.01, -0.03, 0.05)
    assert needed_decisions(close, 1000) == 33_000  # (0.04 / 0.01 · 2.8 / 1.96)² · 1,000, rounded up
    assert needed_decisions(Interval(0.0, -1.0, 1.0), 1000) is None
    verdict, sentence = decide("new", "logged", PolicyValue("dr", close, close), 1000, ())
    assert verdict == UNDECIDED
    assert (
        "about 33,000 decisions like these would give a verdict with a probability of 80%, and the log has 1,000"
        in sentence
    )
    _, clipped = decide("new", "logged", PolicyValue("dr", close, close), 1000, (), largest=0.04)
    assert clipped == sentence.replace("to +0.05", "to +0.04")  # the number of decisions is that of the whole interval


def test_invalid_arguments() -> None:
    log = small_log()
    with pytest.raises(ValueError, match="policies: unknown policy .*; choose from locb, eloc"):
        locb.evaluate(log, "best")
    with pytest.raises(ValueError, match="arm 'd' is not offered in every decision"):
        locb.evaluate(log, "arm:d")
    started: list[str] = []
    with pytest.raises(ValueError, match="arm 'd' is not offered"):
        locb.evaluate(log, ["linucb-one", "arm:d"], progress=lambda name, _: started.append(name))
    assert started == []  # no policy was evaluated in vain
    with pytest.raises(ValueError, match="must be a policy, a function or an array of 400 positions"):
        locb.evaluate(log, {"x": [0, 1]})
    with pytest.raises(ValueError, match="x chooses position 9 in decision 0"):
        locb.evaluate(log, {"x": np.full(400, 9)})
    with pytest.raises(ValueError, match="the probabilities of bad must be at least 0 and have the sum 1"):
        locb.evaluate(log, {"bad": lambda user, arms, contexts: np.ones(len(arms))})
    with pytest.raises(ValueError, match="log must be a locb.Log, not list"):
        locb.evaluate([], "random")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="policies must have at least one policy"):
        locb.evaluate(log, [])


def test_replay_is_independent_of_the_random_numbers_of_the_log() -> None:
    """A log that was simulated with the seed of the evaluation must not share its random numbers."""
    rng = np.random.default_rng(0)
    probabilities = np.array([0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    chosen = rng.choice(6, size=4000, p=probabilities)
    rows = {"arm": np.array(list("abcdef"))[chosen], "reward": 1.0 * (rng.random(4000) < 0.3)}
    log = locb.Log.read(rows | {"propensity": probabilities[chosen]})
    weights = locb.evaluate(log, "linucb-one", seed=0, replays=5)["linucb-one"].weights
    assert weights is not None
    assert weights.mean.value == pytest.approx(1.0, abs=0.3)


def arm_log(users: Any, chosen: Any, given: Any, **options: Any) -> locb.Log:
    """Return a log with rewards that are higher for the arm b. The column of propensities may be ignored."""
    rewards = np.random.default_rng(3).random(len(chosen)) + (np.asarray(chosen) == "b")
    rows = {"user": users, "arm": chosen, "reward": rewards, "propensity": given}
    return locb.Log.read(rows, **options)


def test_propensities_that_the_choices_contradict_forbid_all_verdicts() -> None:
    rng = np.random.default_rng(0)
    shares = np.where((rng.random(4000) < 0.5)[:, None], [0.2, 0.4, 0.4], [0.33, 0.33, 0.34])
    index = (rng.random(4000)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    arms, users = np.array(list("abc"))[index], rng.integers(80, size=4000)
    propensities = shares[np.arange(4000), index]
    right = locb.evaluate(arm_log(users, arms, propensities), ["arm:b", "arm:c", "random"])
    assert right["arm:b"].verdict == BETTER
    assert not any("contradict" in note for note in right.notes)
    uniform = arm_log(users, arms, propensities, propensity="uniform")
    assert "column 'propensity' is ignored, because propensity is 'uniform'" in uniform.notes
    found = locb.evaluate(uniform, ["arm:b", "arm:c", "random", "linucb-one"], baseline="first")
    count = int((arms == "a").sum())
    reason = (
        f"arm 'a' was chosen {count:,} times instead of about 1,333 times, and its mean weight is {count / 4e3 * 3:.3f}"
    )
    for result in found.results[1:]:
        assert result.verdict == UNDECIDED
        assert f"the choices of the log contradict its propensities: {reason} instead of 1" in result.sentence
    assert sum("the offered arms were not equally probable" in note for note in found.notes) == 1
    small = locb.evaluate(arm_log(users, arms, np.where(arms == "b", propensities / 2, propensities)), ["arm:c"])
    assert small["arm:c"].verdict == UNDECIDED
    assert "arm 'b' was chosen" in small["arm:c"].sentence
    assert "instead of at most 1" in small["arm:c"].sentence
    tuning = locb.tune(uniform, ["arm:b", "arm:c"])
    assert tuning.verdict == UNDECIDED
    assert reason in tuning.sentence


@pytest.mark.parametrize("seed", range(5))
def test_correct_propensities_are_not_contradicted(seed: int) -> None:
    """Each user keeps one arm, many arms have few decisions, and an arm has probability 0 for some users."""
    rng = np.random.default_rng(seed)
    users = rng.integers(40, size=2000)
    kept = arm_log(users, np.array(list("ab"))[rng.integers(2, size=40)[users]], None, propensity="uniform")
    many = rng.integers(500, size=2000)
    rare = arm_log(users, many.astype(str), None, propensity="uniform", arms=[str(arm) for arm in range(500)])
    chosen = np.where((users < 20) & (rng.random(2000) < 0.5), "b", "a")
    some = arm_log(users, chosen, np.where(users < 20, 0.5, 1.0))
    for log in (kept, rare, some):
        assert check_choices(FixedEstimators(log, 100, 0), []) == []


def test_arm_weights_equal_plain_loops() -> None:
    log = small_log(user=[f"u{t % 7}" for t in range(400)])
    offers, totals, deviations = np.zeros(4), np.zeros(4), np.zeros((7, 4))
    smallest = log.propensities.min()
    for t in range(len(log)):
        start, stop = log.offers.offsets[log.offer[t] : log.offer[t] + 2]
        for position, arm in enumerate(log.offers.arms[start:stop]):
            weight = (position == log.chosen[t]) / log.propensities[t]
            offers[arm] += 1
            totals[arm] += weight
            deviations[log.users[t], arm] += weight - 1
    found = FixedEstimators(log, 100, 0).arm_weights()
    variance, squares = offers * (1 / smallest - 1), (deviations**2).sum(axis=0)
    effect, level = max(1.0, squares.sum() / variance.sum()), math.log(8 / 0.01)
    largest = effect / smallest * level / 3
    margin = largest + np.sqrt(largest**2 + 2 * level * np.maximum(effect * variance, squares))
    assert np.allclose(found.offers, offers)
    assert np.allclose(found.mean, totals / offers)
    assert np.allclose(found.margin, margin / offers)


def test_undecided_replay_names_policies_that_use_all_decisions() -> None:
    found = locb.evaluate(small_log(), ["linucb-one", "arm:c"], replays=5)["linucb-one"]
    assert found.verdict == UNDECIDED
    assert found.weights is not None
    share = f"{found.weights.decisions} of 400 decisions ({found.weights.decisions / 400:.1%})"
    assert found.warnings[-1].endswith(f"It used {share}; a fixed policy, such as arm:a, is estimated from all of them")
