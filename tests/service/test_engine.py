"""What is asked becomes records, and the log alone gives the same policy, also where a commit failed in between."""

from pathlib import Path
from typing import Any

import pytest

from locb.service.core.audit import repeat_decisions
from locb.service.core.commands import Batch, EncodedDecision, RecommendCommand, RewardCommand
from locb.service.core.default_rewards import DefaultRewards
from locb.service.core.engine import Engine
from locb.service.core.model import new_model
from locb.service.core.user_index import UserIndex
from locb.service.errors import ProblemError
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.log import EventLog

MODEL = new_model("locb", 2, {"n_seeds": 2, "gamma": 0.5})


def ask(user: str, name: str, now: float = 0.0) -> RecommendCommand:
    arms = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8])]
    return RecommendCommand(parse_request(RecommendRequest(user, arms, decision_id=name), 2), now)


class Served:
    """An engine and its log, with commits that fail when told to."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.log = EventLog(folder)
        self.engine = Engine(MODEL.build(), UserIndex(MODEL.initial_users), 0, **options)

    def commit(self, batch: Batch) -> Batch:
        self.log.commit(batch.records)
        self.engine.apply(batch)
        assert self.log.last_seq() == self.engine.seq
        return batch

    def serve(self, *tasks: RecommendCommand | RewardCommand) -> list[Any]:
        return self.commit(self.engine.prepare(tasks)).outcomes

    def fail(self, *tasks: RecommendCommand | RewardCommand) -> None:
        self.engine.prepare(tasks)

    def check(self, folder: Path) -> None:
        """The log alone gives the same policy and the same choices."""
        policy, wrong = repeat_decisions(self.log, MODEL, 0)
        assert wrong == []
        if policy.n_users < self.engine.policy.n_users:  # who came, and is not in the log yet
            policy.add_users(self.engine.policy.n_users - policy.n_users)
        policy.save(folder / "again")
        self.engine.policy.save(folder / "served")
        assert (folder / "again").read_bytes() == (folder / "served").read_bytes()


@pytest.fixture
def served(tmp_path: Path) -> Any:
    served = Served(tmp_path / "state", default_rewards=DefaultRewards(0.0, 10.0))
    yield served
    served.check(tmp_path)
    served.log.close()


def test_decisions_and_rewards(served: Served) -> None:
    for number in range(40):
        (asked,) = served.serve(ask(f"user {number % 7}", f"d{number}"))
        assert isinstance(asked, EncodedDecision)
        served.serve(RewardCommand(f"d{number}", number % 3 / 2, 1.0))


def test_who_came_in_a_commit_that_failed_is_in_the_log_before_anything_is_learned(served: Served) -> None:
    served.serve(ask("ann", "a"), ask("bob", "b"), ask("eve", "c"))
    served.fail(ask("joe", "d"), ask("sue", "e"))
    served.commit(served.engine.prepare_defaults(100.0, 10))
    assert [name for _, _, name in served.log.users()] == [b"ann", b"bob", b"eve", b"joe", b"sue"]
    served.serve(ask("joe", "d"), RewardCommand("d", 1.0, 1.0))


def test_somebody_in_a_place_of_before_is_no_event(served: Served) -> None:
    """A place keeps the time at which the policy got it: a log that ends with somebody there has not grown."""
    served.serve(ask("ann", "a"), ask("bob", "b"), ask("eve", "c"))
    engine = served.engine
    batch = engine.prepare_erasure("bob")
    served.log.erase(1, {"seq": batch.last_seq})
    engine.apply(batch)
    policy, _ = repeat_decisions(served.log, MODEL, 0)
    batch = engine.prepare_rebuild(policy, [1])
    served.log.write_settings({"seq": batch.last_seq})
    engine.apply(batch)
    served.fail(ask("joe", "d"))
    (outcome,) = served.serve(RewardCommand("nobody's", 1.0, 1.0))
    assert outcome.status == 404
    assert {user_index: name for user_index, _, name in served.log.users()}[1] == b"joe"


def test_zero_has_no_sign(served: Served) -> None:
    """SQLite does not keep it."""
    served.serve(ask("ann", "a"))
    batch = served.engine.prepare([RewardCommand("a", -0.0, 1.0)])
    assert str(batch.records.observations[0].reward) == "0.0"
    served.commit(batch)


def test_a_name_twice_in_one_batch(served: Served) -> None:
    first, again, other, ann = served.serve(ask("ann", "a"), ask("ann", "a"), ask("bob", "a"), ask("ann", "b"))
    assert first == again
    assert isinstance(other, ProblemError)
    assert other.status == 409
    assert ann != first
    assert [row.id for chunk in served.log.decisions() for row in chunk] == [b"a", b"b"]


def test_one_who_cannot_be_answered_does_not_keep_the_others_from_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = served.engine.policy
    explain_batch = policy.explain_batch

    def explain_some(users: list[int], contexts: list[Any]) -> Any:
        if served.engine.users.index_of("bob") in users:
            raise ArithmeticError("not for bob")
        return explain_batch(users, contexts)

    monkeypatch.setattr(policy, "explain_batch", explain_some)
    ann, bob, again, eve = served.serve(ask("ann", "a"), ask("bob", "b"), ask("bob", "b"), ask("eve", "c"))
    assert isinstance(ann, EncodedDecision)
    assert isinstance(eve, EncodedDecision)
    for problem in (bob, again):
        assert isinstance(problem, ProblemError)
        assert problem.status == 500
    assert [row.id for chunk in served.log.decisions() for row in chunk] == [b"a", b"c"]
