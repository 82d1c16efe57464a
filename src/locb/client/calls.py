"""What can be asked of a service, a function each, whoever does the waiting."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from locb.client.transport import Answer, Service, ServiceError, Steps, error_of

Arms: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]


def _path(*parts: str) -> str:
    """Ids may be any string, also ``a/b`` and ``..``, which HTTP clients would otherwise take for a way up."""
    return "/v1/" + "/".join(quote(part, safe="").replace(".", "%2E") for part in parts)


def _query(**asked: Any) -> str:
    """What follows the path; what is None is not asked."""
    return "?" + urlencode({name: value for name, value in asked.items() if value is not None})


def _question(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A question, checked: what is not given is left out, and arms are a list."""
    unknown = sorted(set(asked) - {"user", "arms", "exclude", "count", "decision_id"})
    missing = [name for name in ("user", "arms") if name not in asked]
    if unknown or missing:
        raise ValueError(
            f"a question has user, arms, exclude, count and decision_id: {(unknown or missing)[0]!r} is "
            f"{'not one of them' if unknown else 'missing'}"
        )
    arms: Arms = asked["arms"]
    listed = [{"id": arm, "features": x} for arm, x in arms.items()] if isinstance(arms, Mapping) else list(arms)
    given = {name: value for name, value in asked.items() if value is not None}
    if "exclude" in given:
        given["exclude"] = list(given["exclude"])  # a set will do
    return {**given, "arms": listed}


def _named_question(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A question with an id, so that sending it again cannot make another decision."""
    # Ids that begin with the time stand in order in the service's index, and half as much is written to its disk.
    return {"decision_id": f"{time.time_ns():016x}{secrets.token_hex(8)}", **_question(asked)}


def recommend(
    service: Service,
    user: str,
    arms: Arms,
    exclude: Sequence[str] | None = None,
    count: int | None = None,
    decision_id: str | None = None,
) -> Steps[Answer]:
    """Which of these arms for this user? ``arms``: features by id, or dictionaries with ``id`` and ``features``."""
    asked = {"user": user, "arms": arms, "exclude": exclude, "count": count, "decision_id": decision_id}
    answer: Answer = yield from service.ask("POST", "/v1/recommend", _named_question(asked))
    return answer


def reward(service: Service, decision_id: str, reward: float) -> Steps[Answer]:
    """What the recommended arm earned. The same again changes nothing; another value is an error with status 409."""
    answer: Answer = yield from service.ask("POST", "/v1/reward", {"decision_id": decision_id, "reward": reward})
    return answer


def recommend_batch(service: Service, requests: Iterable[Mapping[str, Any]]) -> Steps[list[Answer | ServiceError]]:
    """Several questions, each with the arguments of ``recommend``; a question that fails has an error in its place."""
    asked = {"requests": [_named_question(request) for request in requests]}
    told = yield from service.ask("POST", "/v1/recommend:batch", asked)
    return [each["decision"] if "decision" in each else error_of(each["problem"]) for each in told["results"]]


def reward_batch(
    service: Service, rewards: Mapping[str, float] | Iterable[tuple[str, float]]
) -> Steps[list[Answer | ServiceError]]:
    """Several rewards by decision_id; one that fails has an error in its place."""
    pairs = rewards.items() if isinstance(rewards, Mapping) else rewards
    asked = {"rewards": [{"decision_id": decision_id, "reward": reward} for decision_id, reward in pairs]}
    told = yield from service.ask("POST", "/v1/reward:batch", asked)
    return [each["reward"] if "reward" in each else error_of(each["problem"]) for each in told["results"]]


def preview(
    service: Service, user: str, arms: Arms, exclude: Sequence[str] | None = None, count: int | None = None
) -> Steps[Answer]:
    """What would be recommended now: nothing is decided, kept or learned, and the user must be known."""
    asked = {"user": user, "arms": arms, "exclude": exclude, "count": count}
    answer: Answer = yield from service.ask("POST", "/v1/preview", _question(asked))
    return answer


def user(service: Service, id: str) -> Steps[Answer]:  # noqa: A002 - as the API calls it
    """What is known of a user."""
    answer: Answer = yield from service.ask("GET", _path("users", id))
    return answer


def similar(service: Service, id: str, limit: int = 10) -> Steps[list[Answer]]:  # noqa: A002 - as the API calls it
    """Users who share a set with this one, the nearest first."""
    told = yield from service.ask("GET", f"{_path('users', id)}/similar{_query(limit=int(limit))}")
    return list(told["similar"])


def decisions(service: Service, id: str, limit: int = 20) -> Steps[list[Answer]]:  # noqa: A002 - as the API calls it
    """The last decisions for a user with their rewards and explanations, the latest first."""
    told = yield from service.ask("GET", f"{_path('users', id)}/decisions{_query(limit=int(limit))}")
    return list(told["decisions"])


def clusters(service: Service) -> Steps[list[Answer]]:
    """All sets of users who may be alike."""
    return list((yield from service.ask("GET", "/v1/clusters"))["clusters"])


def cluster(service: Service, seed: str) -> Steps[Answer]:
    """A set, its members, and how far apart two of them can be."""
    answer: Answer = yield from service.ask("GET", _path("clusters", seed))
    return answer


def groups(
    service: Service, sort: str = "size", limit: int = 50, offset: int = 0, search: str | None = None
) -> Steps[Answer]:
    """A page of the sets: how far each is, what it earned, what its members like, and how the first ones overlap."""
    asked = _query(sort=sort, limit=int(limit), offset=int(offset), search=search)
    answer: Answer = yield from service.ask("GET", f"/v1/groups{asked}")
    return answer


def status(service: Service) -> Steps[Answer]:
    """What the service does at this moment, and how it is."""
    answer: Answer = yield from service.ask("GET", "/v1/status")
    return answer


def history(service: Service, span: str = "hour", baseline: tuple[float, float] | None = None) -> Steps[Answer]:
    """Decisions and rewards over an hour, day, month or all; ``baseline``: from and to, in seconds since 1970."""
    start, end = (None, None) if baseline is None else baseline
    answer: Answer = yield from service.ask(
        "GET", f"/v1/history{_query(span=span, baseline_from=start, baseline_to=end)}"
    )
    return answer


def map(service: Service, projection: str | None = None) -> Steps[Answer]:  # noqa: A001 - as the API calls it
    """Users in two dimensions; the same ``projection`` gives the same axes, ``"new"`` another."""
    answer: Answer = yield from service.ask("GET", f"/v1/map{_query(projection=projection)}".rstrip("?"))
    return answer


def forget(service: Service, id: str) -> Steps[Answer]:  # noqa: A002 - as the API calls it
    """Erase a user, and everything that was learned from them."""
    answer: Answer = yield from service.ask("DELETE", _path("users", id))
    return answer


def health(service: Service) -> Steps[Answer]:
    """How the service is, now: this is not tried again."""
    answer: Answer = yield from service.ask("GET", "/v1/health", retries=0)
    return answer


def export(service: Service, path: str | Path) -> Steps[Path]:
    """Write all decisions and rewards to a Parquet file; it appears when it is complete."""
    part = Path(path).with_name(Path(path).name + ".part")
    try:
        yield from service.exchange("GET", "/v1/export", into=part)
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)
