"""Recommender: catalogue, decisions, rewards, groups, and arguments that it rejects."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import locb
from locb.policies.registry import REGISTRY

FILMS: dict[str, Any] = {"a": {"genre": "drama"}, "b": {"genre": "crime", "length": 2}, "c": {"new": np.True_}}


def make(policy: str = "linucb-one", **options: Any) -> locb.Recommender:
    return locb.Recommender(policy, **({"features": 8, "arms": FILMS} | options))


def test_learns_which_arm_is_liked() -> None:
    recommender = make()
    for _ in range(30):
        decision = recommender.recommend("ann")
        recommender.reward(decision.decision_id, float(decision.arm == "b"))
    assert recommender.recommend("ann").arm == "b"
    assert repr(recommender) == "Recommender('linucb-one', 1 user, 3 arms, 31 decisions)"
    assert (recommender.users, recommender.arms, recommender.features) == (["ann"], ["a", "b", "c"], 8)


def test_number_of_features() -> None:
    assert locb.Recommender("linucb-one").features == 16
    assert locb.Recommender("linucb-one", arms={"a": {"x": 1.0}, "b": [1.0, 2.0, 3.0]}).features == 3
    assert locb.Recommender("linucb-one", arms={"a": np.ones(5)}).features == 5


def test_named_features_are_those_of_the_library() -> None:
    recommender = make()
    decision = recommender.recommend("ann", {"x": FILMS["b"]})
    recommender.reward(decision.decision_id, 1.0)
    policy = locb.LinUCB(n_users=1, dim=8, shared=True)
    vector = locb.features(FILMS["b"], 8)
    policy.update(0, vector, 1.0)
    explained = recommender.explain("ann", {"x": FILMS["b"]})
    assert explained.explanation is not None
    contributions = sum(explained.explanation.contributions.values()) + explained.explanation.intercept
    assert contributions == pytest.approx(policy.estimate(0).theta @ vector)


def test_decision() -> None:
    decision = make("locb", n_seeds=2).recommend("ann", count=None)
    assert decision.ranking[0].arm == decision.arm
    assert sorted(ranked.arm for ranked in decision.ranking) == ["a", "b", "c"]
    assert repr(decision) == f"Recommendation(arm {decision.arm!r} for user 'ann', score {decision.score:.3g})"
    assert decision.to_frame().columns == ["arm", "score", "estimate", "bonus"]
    assert decision.contributions_frame().height == len(FILMS[decision.arm])
    assert decision.sources_frame()["kind"].to_list()
    assert locb.Recommendation.from_dict("ann", decision.to_dict()) == decision


def test_arms_and_exclude() -> None:
    recommender = make()
    assert {ranked.arm for ranked in recommender.recommend("ann", ["a", "c"], count=None).ranking} == {"a", "c"}
    assert recommender.recommend("ann", "b").arm == "b"
    assert recommender.recommend("ann", exclude=["a", "b"]).arm == "c"
    assert recommender.recommend("ann", exclude="a").arm != "a"
    assert recommender.recommend("ann", {"new": {"genre": "war"}}).arm == "new"
    assert recommender.arms == ["a", "b", "c"]


def test_catalogue_changes() -> None:
    recommender = make()
    recommender.add_arms({"d": [0.5] * 8, "a": {"genre": "war"}})
    assert recommender.arms == ["b", "c", "d", "a"]
    recommender.remove_arms(["b", "c"])
    decision = recommender.recommend("ann", count=None)
    assert {ranked.arm for ranked in decision.ranking} == {"a", "d"}
    recommender.remove_arms(decision.arm)
    recommender.reward(decision.decision_id, 1.0)  # of a removed arm


def test_repeated_requests_and_rewards() -> None:
    recommender = make()
    decision = recommender.recommend("ann", decision_id="d")
    assert recommender.recommend("ann", decision_id="d") == decision
    recommender.reward("d", 1.0)
    recommender.reward("d", 1.0)
    assert recommender.policy.served.sum() == 1  # type: ignore[attr-defined]  # of compiled policies
    with pytest.raises(ValueError, match="decision 'd' already has reward 1, which cannot be changed"):
        recommender.reward("d", 0.0)
    for other in ({"user": "bob"}, {"count": 2}, {"exclude": ["a"]}, {"arms": {"a": {"genre": "war"}}}):
        with pytest.raises(ValueError, match="decision 'd' already exists for a different request"):
            recommender.recommend(**({"user": "ann", "decision_id": "d"} | other))
    recommender.add_arms({"a": {"genre": "war"}})
    with pytest.raises(ValueError, match="already exists for a different request"):
        recommender.recommend("ann", decision_id="d")


def test_bound_on_decisions() -> None:
    recommender = make(max_decisions=3)
    for number in range(5):
        recommender.recommend("ann", decision_id=str(number))
    recommender.reward("2", 1.0)
    with pytest.raises(ValueError, match="unknown decision '1'.*or it is older than the last 3 decisions"):
        recommender.reward("1", 1.0)


def test_explain_stores_nothing() -> None:
    recommender = make()
    with pytest.raises(ValueError, match=r"unknown user 'ann': call recommend\(\)"):
        recommender.explain("ann")
    recommender.recommend("ann")
    assert recommender.explain("ann").decision_id == ""
    assert len(recommender.explain("ann").ranking) == 3
    assert repr(recommender).endswith("1 decision)")


def test_groups_with_names() -> None:
    recommender = make("club")
    assert recommender.groups() == []
    for user in ("ann", "bob", "eve"):
        recommender.recommend(user)
    (group,) = recommender.groups()
    assert (set(group.users), group.seed, group.final) == ({"ann", "bob", "eve"}, None, False)
    assert repr(group) == "NamedGroup(3 users)"
    assert recommender.groups_of("bob") == [group]
    assert {similar.user for similar in recommender.similar_users("bob")} == {"ann", "eve"}
    assert recommender.similar_users_frame("bob", 1).columns == ["user", "distance", "radius"]
    assert recommender.groups_frame()["user"].to_list() == list(group.users)
    assert recommender.similar_users_frame("bob", 0).is_empty()
    with pytest.raises(ValueError, match="unknown user 'joe'"):
        recommender.groups_of("joe")


def test_indices_without_a_user_are_not_shown() -> None:
    recommender = make("eloc", n_seeds=4)
    recommender.recommend("ann")
    recommender.recommend("bob")
    assert recommender.user_ids == ["ann", "bob", None, None]
    assert {user for group in recommender.groups() for user in group.users} <= {"ann", "bob"}
    assert {similar.user for similar in recommender.similar_users("ann")} <= {"bob"}
    assert all((group.size or 0) <= 2 for group in recommender.explain("ann").groups)


def test_equal_groups_are_merged_and_reserved_users_are_not_counted() -> None:
    """There was one group per seed user, and charts and frames counted the indices that wait for new users."""
    recommender, users = make("eloc", n_seeds=30), [f"user {number}" for number in range(20)]
    for user in users:
        recommender.reward(recommender.recommend(user), 1.0)
    groups = recommender.groups()
    assert sorted({user for group in groups for user in group.seeds}) == sorted(users)
    assert len({group.users for group in groups}) == len(groups) < 20
    assert all(set(group.users) <= set(users) for group in groups)
    for group in groups:
        assert group.seed == (group.seeds or (None,))[0]
    (merged, *_) = (group for group in groups if len(group.seeds) > 1)
    expected = f"NamedGroup({len(merged.users)} users around {merged.seed!r} and {len(merged.seeds) - 1} more)"
    assert repr(merged) == expected
    assert recommender.groups_frame().height == sum(len(group.users) for group in groups)
    frame = recommender.users_frame()
    assert frame["user"].to_list() == users == recommender.policy.users_frame(recommender.user_ids)["user"].to_list()
    assert frame["served"].to_list() == [1] * 20
    assert set(recommender.policy.groups_frame(recommender.user_ids)["user"]) == set(users)
    for chart in (recommender.plot_groups(), recommender.policy.plot_groups(recommender.user_ids)):
        spec = chart.to_dict()
        (rows,) = spec["datasets"].values()
        assert spec["title"]["subtitle"] == f"{len(rows)} distinct groups of 20 users"
        assert sorted(row["users"] for row in rows) == sorted(len(group.users) for group in groups)
        assert not any("None" in row["group"] for row in rows)
    spec = recommender.plot_users().to_dict()
    (rows,) = spec["datasets"].values()
    assert [row["user"] for row in rows] == users
    assert "random sample" not in spec["title"]["subtitle"]


def test_charts_without_users_are_empty() -> None:
    for chart in (make("eloc", n_seeds=4).plot_users(), make("eloc", n_seeds=4).plot_groups()):
        (rows,) = chart.to_dict()["datasets"].values()
        assert rows == []


def test_reward_accepts_a_recommendation() -> None:
    recommender, same = make(), make()
    recommender.reward(recommender.recommend("ann", decision_id="one"), 1.0)
    same.recommend("ann", decision_id="one")
    same.reward("one", 1.0)
    assert recommender.explain("ann") == same.explain("ann")
    with pytest.raises(ValueError, match=r"no decision_id: pass a result of recommend\(\), not of explain\(\)"):
        recommender.reward(recommender.explain("ann"), 1.0)


def test_number_that_outweighs_the_other_features_gives_one_warning(recwarn: pytest.WarningsRecorder) -> None:
    dishes = {"ramen": {"cuisine": "japanese", "price": 14.0}, "dal": {"cuisine": "indian", "price": 9}}
    recommender = locb.Recommender("linucb-one", arms=dishes)
    recommender.recommend("ann", {"pizza": {"cuisine": "italian", "price": 11.0}})
    recommender.add_arms({"soup": {"cuisine": "french", "price": 12.0}})
    (warning,) = recwarn
    message = "feature 'price' = 14 outweighs all other features of arm 'ramen': scale numbers to about 1"
    assert str(warning.message).startswith(message)
    assert warning.filename == __file__
    scaled = {
        "a": {"cuisine": "thai", "price": 1.4},
        "b": {"price": 14},
        "c": {"price": 14, "grams": 9},
        "d": [90.0, 1.0],
    }
    for arms in (scaled, {"none": {}}, {"zero": {"x": 9, "y": 0}}):
        locb.Recommender("linucb-one", features=2, arms=arms)
    assert len(recwarn) == 1
    recommender = locb.Recommender("linucb-one")
    recommender.recommend("ann", {"pizza": {"cuisine": "italian", "price": 11.0}})
    assert recwarn[1].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": 17}, "user must be a string, not 17: pass '17'"),
        ({"user": ""}, "user must have 1 to 256 characters, not 0"),
        ({"user": "\ud800"}, "an id must be valid UTF-8 text"),
        ({"decision_id": 3}, "decision_id must be a string, not 3"),
        ({"arms": ["a", "x"]}, "arm 'x' is not in the catalogue; add it with add_arms"),
        ({"arms": []}, "arms must be different ids of at least one arm"),
        ({"arms": ["a", "a"]}, "arms must be different ids"),
        ({"arms": {}}, "arms must have at least one arm"),
        ({"arms": {1: [0.0] * 8}}, "the id of an arm must be a string, not 1"),
        ({"arms": {"x": [1.0, 2.0]}}, r"arms\[0\].features: .* 8 numbers, the number of features per arm, not 2"),
        ({"arms": {"x": "drama"}}, "the features of arm 'x' must be a mapping of names to values, or a vector"),
        ({"arms": {"x": [[1.0]]}}, "the features of arm 'x' must be"),
        ({"arms": {"x": {"length": None}}}, "feature 'length' of arm 'x' must be a finite number, a string or a bool"),
        ({"arms": {"x": {"length": float("nan")}}}, "feature 'length' must be a finite number"),
        ({"arms": {"x": [float("nan")] * 8}}, "features must be numbers from -1e"),
        ({"exclude": ["x"]}, "exclude contains 'x', which is not the id of an arm of the request"),
        ({"exclude": ["a", "b", "c"]}, "exclude must not contain all arms"),
        ({"count": 0}, "count must be at least 1, not 0"),
    ],
)
def test_invalid_requests(arguments: dict[str, Any], message: str) -> None:
    recommender = make()
    with pytest.raises(ValueError, match=message):
        recommender.recommend(**({"user": "ann"} | arguments))
    assert recommender.users == []


def test_other_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="the catalogue is empty"):
        make(arms={}).recommend("ann")
    with pytest.raises(ValueError, match="gama: policy 'locb' has no such parameter"):
        make("locb", gama=1)
    with pytest.raises(ValueError, match="unknown policy .*; choose from locb, "):
        make("none")
    with pytest.raises(ValueError, match="not in the catalogue"):
        make().remove_arms("x")
    recommender = make()
    recommender.recommend("ann", decision_id="d")
    for reward, message in ((float("nan"), "must be between"), (1e7, "must be between"), ("1", "must be a number")):
        with pytest.raises(ValueError, match=f"reward {message}"):
            recommender.reward("d", reward)  # type: ignore[arg-type]


class Unreliable(locb.Policy):
    """A custom policy that cannot explain, and fails on demand."""

    fails: str | None = None

    def recommend(self, user: int, contexts: Any) -> int:
        if self.fails == "recommend":
            raise ArithmeticError("no arm")
        return len(contexts) - 1

    def update(self, user: int, context: Any, reward: float) -> None:
        if self.fails == "update":
            raise ArithmeticError("no reward")

    def add_users(self, count: int) -> None:
        self._n_users += count


def test_custom_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setitem(REGISTRY, "unreliable", locb.PolicySpec("unreliable", Unreliable))
    recommender = make("unreliable")
    decision = recommender.recommend("ann", decision_id="d")
    assert (decision.arm, decision.score, decision.explanation) == ("c", None, None)
    assert decision.contributions_frame().is_empty()
    assert (recommender.groups(), recommender.similar_users("ann")) == ([], [])
    monkeypatch.setattr(Unreliable, "fails", "recommend")
    with pytest.raises(ArithmeticError, match="no arm"):
        recommender.recommend("bob", decision_id="e")
    monkeypatch.setattr(Unreliable, "fails", "update")
    with pytest.raises(ValueError, match="the policy rejected the reward 1: no reward"):
        recommender.reward("d", 1.0)
    monkeypatch.setattr(Unreliable, "fails", None)
    recommender.reward("d", 1.0)
    recommender.recommend("bob", decision_id="e")
    assert recommender.users == ["ann", "bob"]
    with pytest.raises(ValueError, match="a recommender with the policy Unreliable cannot be saved"):
        recommender.save(tmp_path / "saved")


def test_needs_no_packages_of_the_service() -> None:
    code = "import sys, locb; locb.Recommender; print({'msgspec', 'sqlalchemy', 'polars'}.intersection(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "set()\n"
