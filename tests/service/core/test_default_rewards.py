"""Default rewards: a decision is learned once, whatever finds it first."""

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locb.recommender.commands import ActivateCommand, Batch, CachedDecision, RecommendCommand, RewardCommand
from locb.recommender.default_rewards import DefaultRewards
from locb.recommender.events import CORRECTION, DEFAULT, REWARD
from locb.recommender.user_index import UserIndex
from locb.service.core.model import new_model
from locb.service.core.service_engine import ServiceEngine, unrewarded_decisions
from locb.service.core.startup.replay import replay
from locb.service.request_parsing import parse_request
from locb.service.schemas import Arm, RecommendRequest
from locb.service.store.log import EventLog
from serving import arms, same_state, serving, wait_for

MODEL = new_model("locb", 2, {"n_seeds": 2, "gamma": 0.5})
ARMS = [Arm("x", [1.0, 0.0]), Arm("y", [0.6, 0.8])]
DEFAULT_REWARD, WAIT, HOUR = 0.25, 10.0, 3600.0


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def recommend(decision_id: str, now: float = 0.0) -> RecommendCommand:
    return RecommendCommand(parse_request(RecommendRequest("ann", ARMS, decision_id=decision_id), 2), now)


class EngineWithLog:
    """An engine that is restored from its log, as at a startup."""

    def __init__(self, log: EventLog, cache_size: int = 1000, now: float = 0.0) -> None:
        self.log = log
        policy = MODEL.build()
        for _ in replay(self.log, policy, 0):
            pass
        names = [(index, name.decode()) for index, _, name in self.log.users() if name is not None]
        self.clock = Clock()
        pending = DefaultRewards(DEFAULT_REWARD, WAIT, self.clock)
        pending.load(unrewarded_decisions(self.log, MODEL.dim), now)
        users = UserIndex(policy.n_users, names)
        self.engine = ServiceEngine(policy, users, self.log.last_seq(), default_rewards=pending, cache_size=cache_size)

    def prepare(self, *commands: Any) -> Batch:
        wanted = [decision_id.encode() for decision_id in self.engine.ids_to_find(commands)]
        return self.engine.prepare(commands, self.log.find(wanted) if wanted else [])

    def commit(self, batch: Batch) -> list[Any]:
        self.log.commit(batch.records)
        self.engine.apply(batch)
        return batch.outcomes

    def serve(self, *commands: Any) -> list[Any]:
        return self.commit(self.prepare(*commands))

    def learn_defaults(self) -> int:
        batch = self.engine.prepare_defaults(WAIT, 100)
        self.commit(batch)
        return len(batch.records.observations)

    def check_learned_once(self, decision_id: str, reward: float) -> None:
        """Send the reward of a decision whose default reward was learned, and check that it replaces the default."""
        for _ in range(2):
            (outcome,) = self.serve(RewardCommand(decision_id, reward, WAIT + 2.0))
            assert (outcome.reward, outcome.corrected) == (reward, True)
        (found,) = self.log.find([decision_id.encode()])
        assert (found.kind, found.reward) == (CORRECTION, reward)
        learned = [row.kind for chunk in self.log.observations(0) for row in chunk]
        assert learned == [REWARD] * (len(learned) - 2) + [DEFAULT, CORRECTION]
        assert self.engine.policy.served.sum() == len(learned) - 1
        policy = MODEL.build()
        for _ in replay(self.log, policy, 0):
            pass
        assert same_state(policy, self.engine.policy)


@pytest.mark.parametrize("left_memory", ["restart", "full cache"])
@pytest.mark.parametrize("first", ["activate", "failed reward"])
def test_late_reward_of_a_decision_that_left_memory(
    store: Any, open_log: Callable[[Any], EventLog], left_memory: str, first: str
) -> None:
    served = EngineWithLog(open_log(store), cache_size=1)
    served.serve(recommend("d"))
    if left_memory == "restart":
        served.log.close()
        served = EngineWithLog(open_log(store))
    else:
        served.serve(recommend("e"), RewardCommand("e", 0.0, 0.0))
    if first == "activate":
        served.serve(ActivateCommand("d", 1.0), recommend("f"), RewardCommand("f", 0.0, 1.0))  # in one batch
    else:
        served.prepare(RewardCommand("d", 1.0, 1.0))  # the commit fails, and the client gets status 503
    served.clock.seconds = WAIT
    assert served.learn_defaults() == 1
    served.check_learned_once("d", 0.75)


def test_waiting_time_does_not_depend_on_the_system_time(store: Any, open_log: Callable[[Any], EventLog]) -> None:
    served = EngineWithLog(open_log(store))
    for seconds, now in enumerate([0.0, HOUR, -HOUR, 2.0]):  # the system time at 0, 1, 2 and 3 seconds
        served.clock.seconds = float(seconds)
        served.serve(recommend(f"d{seconds}", now))
    for seconds, learned in ((WAIT - 0.5, 0), (WAIT, 1), (WAIT + 2.0, 2), (WAIT + 3.0, 1)):
        served.clock.seconds = seconds
        assert served.learn_defaults() == learned


def test_waiting_time_after_a_restart(store: Any, open_log: Callable[[Any], EventLog]) -> None:
    """The system time of the decision is in the log. If it is in the future, the wait starts again."""
    served = EngineWithLog(open_log(store))
    served.serve(*(recommend(f"d{now}", now) for now in (HOUR, 6.0, -HOUR, 3.0)))
    served.log.close()
    served = EngineWithLog(open_log(store), now=8.0)
    served.serve(recommend("new", 8.0))
    for seconds, learned in ((0.0, 1), (5.0, 1), (8.0, 1), (WAIT - 0.5, 0), (WAIT, 2)):
        served.clock.seconds = seconds
        assert served.learn_defaults() == learned


@pytest.mark.parametrize("offsets", [(0.0, HOUR, 0.0), (0.0, -HOUR)])
def test_steps_of_the_system_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets: tuple[float, ...]) -> None:
    system_time = time.time
    options: dict[str, Any] = {"default_reward": 0.0, "reward_wait": 0.05}
    request = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}
    with serving(tmp_path, **options) as (client, service):
        for offset in offsets:
            monkeypatch.setattr(time, "time", lambda offset=offset: system_time() + offset)
            client.post("/v1/recommend", json=request).raise_for_status()
        wait_for(lambda: service.policy.served.sum() == len(offsets), 20.0)


def test_decision_that_was_learned_already_does_not_block_the_others(store: Any) -> None:
    options: dict[str, Any] = {"default_reward": 0.25, "reward_wait": 0.05, "store": store.url}
    request = {"user": "ann", "arms": arms([1, 0, 0], [0, 1, 0])}
    with serving(store.folder, **options) as (client, service):
        client.post("/v1/recommend", json=request | {"decision_id": "a"}).raise_for_status()
        wait_for(lambda: service.policy.served.sum() == 1)
        learned = service.engine._recent["a"]
        service.engine.default_rewards.track("a", learned)  # as after a defect
        client.post("/v1/recommend", json=request | {"decision_id": "b"}).raise_for_status()
        wait_for(lambda: service.policy.served.sum() == 2)
        assert [row.kind for chunk in service.log.observations(0) for row in chunk] == [DEFAULT, DEFAULT]


def test_decisions_of_an_erased_user_are_removed_when_they_are_due() -> None:
    """An erasure reads none of the waiting decisions, which can be many."""
    clock = Clock()
    pending = DefaultRewards(DEFAULT_REWARD, WAIT, clock)

    class Unread(dict[str, Any]):
        def _fail(self) -> Any:
            raise AssertionError("all waiting decisions are read")

        __iter__ = items = values = keys = _fail  # type: ignore[assignment]

    decisions = {f"d{seq}": CachedDecision(seq, seq % 2, b"", 0.0, 0.0) for seq in range(1, 7)}
    for decision_id, decision in decisions.items():
        pending.track(decision_id, decision)
    waiting, pending._pending = pending._pending, Unread(pending._pending)
    pending.discard_user(1, 7)
    pending._pending = waiting
    assert [pending.get(decision_id) for decision_id in decisions] == [
        None, decisions["d2"], None, decisions["d4"], None, decisions["d6"]
    ]  # fmt: skip
    clock.seconds = 1.0
    again = CachedDecision(8, 1, b"", 1.0, 1.0)  # the erased id and the index are used again
    pending.track("d1", again)
    assert pending.get("d1") is again
    clock.seconds = WAIT
    assert pending.due(2) == [("d2", decisions["d2"]), ("d4", decisions["d4"])]
    assert pending.due(9) == [(name, decisions[name]) for name in ("d2", "d4", "d6")]
    assert waiting.keys() == {"d1", "d2", "d4", "d6"}
    clock.seconds = WAIT + 1.0
    assert pending.due(9)[-1] == ("d1", again)


def test_waiting_decisions_are_loaded_in_bounded_memory(store: Any, open_log: Callable[[Any], EventLog]) -> None:
    log = open_log(store)
    many = [Arm(f"{number:0256}", [0.6, 0.8]) for number in range(400)]
    parsed = parse_request(RecommendRequest("ann", many), 2)
    engine = ServiceEngine(MODEL.build(), UserIndex(MODEL.initial_users), 0, cache_size=0)
    batch = engine.prepare([RecommendCommand(parsed, float(now)) for now in range(50)])
    log.commit(batch.records)
    pending = DefaultRewards(DEFAULT_REWARD, WAIT, Clock())
    tracemalloc.start()
    try:
        pending.load(unrewarded_decisions(log, MODEL.dim), 0.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(pending._pending) == 50
    assert peak < 3_000_000  # the requests have 5 MB
