"""The engine: batches, failed commits and erasures, with a replay of the log as the reference."""

from pathlib import Path
from typing import Any

import pytest

from locb.recommender.commands import Batch, EncodedDecision, RecommendCommand, RewardCommand
from locb.recommender.default_rewards import DefaultRewards
from locb.recommender.user_index import UserIndex
from locb.service.core.audit import repeat_decisions
from locb.service.core.decision_encoding import DecisionEncoder
from locb.service.core.model import new_model
from locb.service.core.service_engine import ServiceEngine
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.log import EventLog

MODEL = new_model("locb", 2, {"n_seeds": 2, "gamma": 0.5})


def recommend(user: str, decision_id: str, now: float = 0.0) -> RecommendCommand:
    arms = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8])]
    return RecommendCommand(parse_request(RecommendRequest(user, arms, decision_id=decision_id), 2), now)


class EngineWithLog:
    """An engine and its log. Tests can make commits fail."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.log = EventLog(folder)
        self.engine = ServiceEngine(
            MODEL.build(), UserIndex(MODEL.initial_users), 0, **({"cache_size": 1000} | options)
        )

    def commit(self, batch: Batch) -> Batch:
        self.log.commit(batch.records)
        self.engine.apply(batch)
        assert self.log.last_seq() == self.engine.seq
        return batch

    def serve(self, *commands: RecommendCommand | RewardCommand) -> list[Any]:
        return self.commit(self.engine.prepare(commands)).outcomes

    def fail(self, *commands: RecommendCommand | RewardCommand) -> None:
        self.engine.roll_back(self.engine.prepare(commands))

    def check(self, folder: Path) -> None:
        """Check that a replay of the log gives the same policy and the same decisions."""
        policy, mismatches = repeat_decisions(self.log, MODEL, 0)
        assert mismatches == []
        if not self.engine.is_logged:
            policy.add_users(self.engine.policy.n_users - policy.n_users)
        policy.save(folder / "replayed")
        self.engine.policy.save(folder / "served")
        assert (folder / "replayed").read_bytes() == (folder / "served").read_bytes()


@pytest.fixture
def served(tmp_path: Path) -> Any:
    served = EngineWithLog(tmp_path / "state", default_rewards=DefaultRewards(0.0, 0.0))
    yield served
    served.check(tmp_path)
    served.log.close()


def test_replay_after_decisions_and_rewards(served: EngineWithLog) -> None:
    for number in range(40):
        (outcome,) = served.serve(recommend(f"user {number % 7}", f"d{number}"))
        assert isinstance(outcome, EncodedDecision)
        (outcome,) = served.serve(RewardCommand(f"d{number}", number % 3 / 2, 1.0))
        assert outcome.reward == number % 3 / 2
    assert served.engine.policy.served.sum() == 40


def test_users_of_a_failed_commit_do_not_exist(served: EngineWithLog) -> None:
    engine = served.engine
    served.serve(recommend("ann", "a"), recommend("bob", "b"), recommend("eve", "c"))
    served.fail(recommend("joe", "d"), recommend("sue", "e"))
    assert (len(engine.users), engine.users.index_of("joe"), engine.is_logged) == (3, None, False)
    served.commit(engine.prepare_defaults(1.0, 10))
    assert engine.is_logged
    assert [name for _, _, name in served.log.users()] == [b"ann", b"bob", b"eve", None, None]
    served.serve(recommend("sue", "e"), RewardCommand("e", 1.0, 1.0))  # gets the index that joe had
    assert [name for _, _, name in served.log.users()] == [b"ann", b"bob", b"eve", b"sue", None]


def test_users_of_a_failed_commit_are_logged_with_the_next_one(served: EngineWithLog) -> None:
    served.serve(recommend("ann", "a"), recommend("bob", "b"), recommend("eve", "c"))
    served.fail(recommend("joe", "d"), recommend("sue", "e"), recommend("kim", "f"))
    served.serve(recommend("sue", "e"), recommend("joe", "d"))
    assert [name for _, _, name in served.log.users()] == [b"ann", b"bob", b"eve", b"sue", b"joe", None]
    served.serve(*(recommend(f"user {number}", f"d{number}") for number in range(3)))
    assert served.engine.policy.n_users == 8


def test_users_of_a_failed_prepare_do_not_exist(served: EngineWithLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ArithmeticError("the encoder failed")

    with monkeypatch.context() as patched:
        patched.setattr(DecisionEncoder, "encode", fail)
        with pytest.raises(ArithmeticError):
            served.serve(recommend("ann", "a"))
    assert len(served.engine.users) == 0
    served.serve(recommend("bob", "b"))
    assert served.engine.users.index_of("bob") == 0


def test_reassigned_index_keeps_the_event_of_the_extension(served: EngineWithLog) -> None:
    """The seq of an index is that of the extension of the policy, not that of the assignment to a new user."""
    served.serve(recommend("ann", "a"), recommend("bob", "b"), recommend("eve", "c"))
    engine = served.engine
    batch = engine.prepare_erasure({"bob": 1})
    served.log.erase([1])
    engine.apply(batch)
    policy, _ = repeat_decisions(served.log, MODEL, 0)
    batch = engine.prepare_rebuild(policy, [1])
    served.log.record_rebuild()
    engine.apply(batch)
    served.fail(recommend("joe", "d"))
    served.serve(recommend("joe", "d"))
    assert {user_index: name for user_index, _, name in served.log.users()}[1] == b"joe"


def test_negative_zero_becomes_zero(served: EngineWithLog) -> None:
    """SQLite does not store the sign of zero."""
    served.serve(recommend("ann", "a"))
    batch = served.engine.prepare([RewardCommand("a", -0.0, 1.0)])
    assert str(batch.records.observations[0].reward) == "0.0"
    served.commit(batch)


def test_rewards_are_added_in_one_batch(served: EngineWithLog) -> None:
    batch = served.engine.prepare(
        [recommend("ann", "a"), *(RewardCommand("a", reward, 1.0, "sum") for reward in (0.25, 0.5, 0.25))]
    )
    assert batch.first_reward_times == [0.0]
    served.commit(batch)
    assert served.log.find([b"a"])[0].reward == 1.0
    (outcome,) = served.serve(RewardCommand("a", 1.0, 1.0))  # a repeated reward
    assert (outcome.reward, outcome.corrected) == (1.0, True)


def test_number_of_added_rewards_is_limited(served: EngineWithLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of the correction is stored in 16 bits."""
    monkeypatch.setattr("locb.recommender.commands.MAX_KIND", 3)
    *accepted, refused = served.serve(recommend("ann", "a"), *[RewardCommand("a", 0.1, 1.0, "sum")] * 4)
    assert not any(isinstance(outcome, ProblemError) for outcome in accepted)
    assert isinstance(refused, ProblemError)
    assert "has too many rewards" in refused.problem.detail


def test_repeated_decision_id_in_one_batch(served: EngineWithLog) -> None:
    first, repeated, other, ann = served.serve(
        recommend("ann", "a"), recommend("ann", "a"), recommend("bob", "a"), recommend("ann", "b")
    )
    assert first == repeated
    assert isinstance(other, ProblemError)
    assert other.status == 409
    assert ann != first
    assert [row.id for chunk in served.log.decisions() for row in chunk] == [b"a", b"b"]


def test_failure_for_one_user_does_not_affect_others(served: EngineWithLog, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = served.engine.policy
    explain_batch = policy.explain_batch

    def explain_some(users: list[int], contexts: list[Any]) -> Any:
        if served.engine.users.index_of("bob") in users:
            raise ArithmeticError("not for bob")
        return explain_batch(users, contexts)

    monkeypatch.setattr(served.engine, "_explain_batch", explain_some)
    ann, bob, repeated, eve = served.serve(
        recommend("ann", "a"), recommend("bob", "b"), recommend("bob", "b"), recommend("eve", "c")
    )
    assert isinstance(ann, EncodedDecision)
    assert isinstance(eve, EncodedDecision)
    for problem in (bob, repeated):
        assert isinstance(problem, ProblemError)
        assert problem.status == 500
    assert [row.id for chunk in served.log.decisions() for row in chunk] == [b"a", b"c"]


def test_rewards_of_decisions_in_and_outside_a_full_cache(tmp_path: Path) -> None:
    served = EngineWithLog(tmp_path / "state", cache_size=1)
    served.serve(recommend("ann", "old"), recommend("ann", "cached"))
    rewards = [RewardCommand("old", 1.0, 1.0), RewardCommand("cached", 0.5, 1.0)]
    assert served.engine.ids_to_find(rewards) == ["old"]
    outcomes = served.commit(served.engine.prepare(rewards, served.log.find([b"old"]))).outcomes
    assert [outcome.reward for outcome in outcomes] == [1.0, 0.5]
    (again,) = served.commit(served.engine.prepare(rewards[1:], served.log.find([b"cached"]))).outcomes
    assert again.reward == 0.5
    served.check(tmp_path)
    served.log.close()
