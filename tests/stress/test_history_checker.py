"""The checker of histories: a correct history has no violations, and each kind of corruption is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from locb.recommender.events import CORRECTION, DEFAULT, REWARD
from stress.histories.checker import find_violations
from stress.histories.record import (
    History,
    Kind,
    Logged,
    LoggedDecision,
    LoggedObservation,
    LoggedUser,
    Request,
)


def request(kind: Kind, name: str, at: float, **values: Any) -> Request:
    """Return an acknowledged request of a decision, or of a user to erase, which takes one second."""
    user, decision_id = (name, "") if kind == "erase" else (f"user {name[0]}", name)
    status = {"decide": 200, "reward": 200, "activate": 204, "erase": 200}[kind]
    result = values.get("reward", "x" if kind == "decide" else None)
    given = {"answered": at + 1.0, "status": status, "writer": "first", "result": result}
    return Request(kind, user, decision_id, at, **(given | values))


def lost(sent: Request) -> Request:
    return replace(sent, answered=float("inf"), status=0, writer="", result=None)


def unanswered(user: str) -> Request:
    """Return an erasure whose connection stayed open without a response."""
    return replace(lost(request("erase", user, 50.0)), timed_out=True)


def refused(sent: Request, detail: str = "the store is unavailable", status: int = 503) -> Request:
    return replace(sent, status=status, detail=detail, result=None)


class Example:
    """A correct history of two users: a1 has a reward, a2 a default reward with a correction, b1 is deferred.

    A second process continues the log at event 7, after a lost response.
    """

    def __init__(self) -> None:
        self.history = History(
            [
                request("decide", "a1", 0.0),
                request("reward", "a1", 2.0, reward=0.5),
                refused(request("activate", "a1", 3.5)),  # it is active, because it is not deferred
                request("decide", "a2", 4.0),
                lost(request("reward", "a2", 6.0, reward=1.0)),
                request("reward", "a2", 30.0, reward=1.0, writer="second"),
                lost(request("decide", "b1", 22.0, writer="second", deferred=True)),
                request("decide", "b1", 24.0, writer="second", deferred=True),
                refused(request("reward", "b1", 25.0, reward=1.0, writer="second"), "not activated", 409),
                request("activate", "b1", 26.0, writer="second"),
                refused(request("decide", "d1", 27.0, writer="second")),
                request("decide", "b2", 28.0, writer="second"),
                refused(request("reward", "b2", 32.0, reward=0.0, writer="second")),
            ],
            default_reward=0.0,
            settled=True,
        )
        self.logged = Logged(
            [LoggedUser(1, 1, "user a"), LoggedUser(6, 12, "user b")],
            [
                LoggedDecision(2, "a1", "user a", "x"),
                LoggedDecision(4, "a2", "user a", "x"),
                LoggedDecision(7, "b1", "user b", "x"),
                LoggedDecision(8, "b2", "user b", "x"),
            ],
            [
                LoggedObservation(3, 2, REWARD, 0.5),
                LoggedObservation(5, 4, DEFAULT, 0.0),
                LoggedObservation(9, 4, CORRECTION, 1.0, 0.0),
                LoggedObservation(10, 7, DEFAULT, 0.0),
                LoggedObservation(11, 8, DEFAULT, 0.0),
            ],
            [(0, 1), (2, 1), (3, 1), (4, 1), (5, 2), (7, 2), (8, 2), (10, 2)],
            {"choices that differ": 0, "arrays that differ": 0},
        )

    def erase(self, user: str = "user b", *, answered: bool = True) -> None:
        """Erase a user at the end; the events of the user are still in the log."""
        erasure = request("erase", user, 50.0)
        self.history.requests.append(erasure if answered else lost(erasure))

    def delete(self, seq: int) -> None:
        for rows in (self.logged.users, self.logged.decisions, self.logged.observations):
            rows[:] = [row for row in rows if row.seq != seq]  # type: ignore[attr-defined]  # all have seq

    def change(self, number: int, **values: Any) -> None:
        for rows in (self.logged.users, self.logged.decisions, self.logged.observations):
            rows[:] = [replace(row, **values) if row.seq == number else row for row in rows]  # type: ignore[attr-defined,type-var]

    def change_requests(self, kind: Kind, decision_id: str, change: Callable[[Request], Request]) -> None:
        self.history.requests = [
            change(sent) if (sent.kind, sent.decision_id) == (kind, decision_id) else sent
            for sent in self.history.requests
        ]

    def kinds(self) -> set[str]:
        return {violation.kind for violation in find_violations(self.history, self.logged)}


def answer_with(status: int) -> Callable[[Request], Request]:
    return lambda sent: refused(sent, "?", status)


def write_with(writer: str) -> Callable[[Request], Request]:
    return lambda sent: replace(sent, writer=writer)


def test_correct_history_has_no_violations() -> None:
    assert find_violations(Example().history, Example().logged) == []
    assert find_violations(History(), Logged()) == []


def change_time(sent: Request) -> Request:
    return replace(sent, sent=60.0, answered=61.0)


@pytest.mark.parametrize(
    ("corrupt", "expected"),
    [
        (lambda example: example.delete(8), "lost decision"),
        (
            lambda example: example.logged.decisions.append(LoggedDecision(13, "a1", "user a", "x")),
            "duplicate decision",
        ),
        (lambda example: example.change(2, arm="y"), "changed decision"),
        (lambda example: example.change(2, user="user b"), "changed decision"),
        (
            lambda example: example.history.requests.append(request("decide", "a1", 40.0, result="y")),
            "different responses",
        ),
        (
            lambda example: example.logged.decisions.append(LoggedDecision(13, "d1", "user d", "x")),
            "refused decision is in the log",
        ),
        (
            lambda example: example.logged.decisions.append(LoggedDecision(13, "e1", "user e", "x")),
            "unrequested decision",
        ),
        (lambda example: example.delete(3), "lost reward"),
        (lambda example: example.change(3, reward=0.75), "changed reward"),
        (
            lambda example: example.change_requests("reward", "a1", lambda sent: replace(sent, result=9.0)),
            "changed reward",
        ),
        (
            lambda example: example.logged.observations.append(LoggedObservation(13, 8, CORRECTION, 0.0)),
            "refused reward is in the log",
        ),
        (lambda example: example.change(7, active=False), "lost activation"),
        (lambda example: example.change_requests("activate", "b1", refused), "refused activation is in the log"),
        (lambda example: example.logged.users.append(LoggedUser(13, 13, "user a")), "duplicate user"),
        (lambda example: example.logged.users.append(LoggedUser(13, 13, "user d")), "refused user is in the log"),
        (lambda example: example.erase("user a"), "erased user is in the log"),
        (lambda example: example.erase("user a"), "erased decision is in the log"),
        (lambda example: example.logged.observations.append(LoggedObservation(13, 2, REWARD, 0.5)), "learned twice"),
        (lambda example: example.logged.observations.append(LoggedObservation(13, 2, DEFAULT, 0.0)), "learned twice"),
        (
            lambda example: example.logged.observations.append(LoggedObservation(13, 2, CORRECTION, 0.5, 0.5)),
            "learned twice",
        ),
        (lambda example: example.change(5, kind=REWARD, reward=1.0), "learned twice"),
        (lambda example: example.change(9, previous_reward=0.5), "wrong correction"),
        (
            lambda example: example.logged.observations.append(LoggedObservation(13, 99, REWARD, 0.5)),
            "observation without a decision",
        ),
        (lambda example: example.change(5, reward=0.25), "wrong default reward"),
        (lambda example: example.delete(11), "missing default reward"),
        (lambda example: example.change(5, seq=3), "duplicate sequence number"),
        (lambda example: example.change(11, seq=13), "missing sequence number"),
        (lambda example: example.change(3, decision_seq=4), "wrong order"),
        (lambda example: example.change_requests("decide", "a1", change_time), "wrong order"),
        (lambda example: example.change_requests("reward", "a1", change_time), "wrong order"),
        (lambda example: example.change_requests("decide", "b2", write_with("first")), "two writers"),
        (lambda example: example.change_requests("decide", "a2", write_with("third")), "two writers"),
        (lambda example: example.logged.epochs.insert(3, (11, 1)), "two writers"),
        (lambda example: example.history.requests.append(unanswered("user c")), "no response"),
        (lambda example: example.change_requests("decide", "a1", answer_with(500)), "unexpected response"),
        (lambda example: example.change_requests("reward", "a1", answer_with(404)), "unexpected response"),
        (lambda example: example.change_requests("reward", "a1", answer_with(409)), "unexpected response"),
        (lambda example: example.logged.differences.update({"arrays that differ": 1}), "replay"),
    ],
)
def test_each_corruption_is_found(corrupt: Callable[[Example], None], expected: str) -> None:
    example = Example()
    corrupt(example)
    assert expected in example.kinds()


def test_process_that_writes_again_after_another_process() -> None:
    """Split brain without epochs: the writers of the events alternate."""
    example = Example()
    example.logged.epochs.clear()
    assert example.kinds() == set()
    example.history.requests[0] = replace(example.history.requests[0], writer="second")
    assert example.kinds() == {"two writers"}


def test_unknown_outcomes_allow_both_states() -> None:
    unknown = "the connection was lost; it is unknown whether the request was stored: repeat it"
    for change in (lost, lambda sent: refused(sent, unknown)):
        example = Example()
        example.change_requests("decide", "b2", change)
        assert example.kinds() == set()
        example.delete(8)
        example.delete(11)
        assert example.kinds() == {"missing sequence number"}


def test_erasure_without_a_response_allows_both_states() -> None:
    example = Example()
    example.erase(answered=False)
    assert example.kinds() == set()
    for seq in (6, 7, 8, 10, 11):
        example.delete(seq)
    assert example.kinds() == set()
    example.erase()
    assert example.kinds() == set()


def test_late_retry_can_recreate_an_erased_user() -> None:
    """The first request for b1 has no response, so the service may execute it after the erasure."""
    example = Example()
    example.erase()
    for seq in (8, 11):
        example.delete(seq)
    assert example.kinds() == set()
