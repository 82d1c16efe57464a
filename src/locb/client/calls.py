"""Calls of the HTTP API, one generator per method of ``Client`` and ``AsyncClient``."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from .transport import BaseClient, Exchange, Response, ServiceError, error_from_problem

Arms: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]
ARGUMENTS = ("user", "arms", "exclude", "count", "decision_id")


def _path(*parts: str) -> str:
    """Return the URL path ``/v1/`` plus the parts. Each part is encoded as one segment, even ``a/b`` and ``..``."""
    return "/v1/" + "/".join(quote(part, safe="").replace(".", "%2E") for part in parts)


def _query(**parameters: Any) -> str:
    """Return the query string of a URL. Parameters that are None are omitted."""
    return "?" + urlencode({name: value for name, value in parameters.items() if value is not None})


def _recommend_body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request body for arguments of ``recommend``; raise a ValueError if one is unknown or missing."""
    unknown = sorted(set(arguments) - set(ARGUMENTS))
    if unknown:
        raise ValueError(f"unknown argument {unknown[0]!r}; allowed are {', '.join(repr(name) for name in ARGUMENTS)}")
    missing = [name for name in ("user", "arms") if name not in arguments]
    if missing:
        raise ValueError(f"argument {missing[0]!r} is missing; 'user' and 'arms' are required")
    arms: Arms = arguments["arms"]
    arm_list = [{"id": arm, "features": x} for arm, x in arms.items()] if isinstance(arms, Mapping) else list(arms)
    body = {name: value for name, value in arguments.items() if value is not None}
    if "exclude" in body:
        body["exclude"] = list(body["exclude"])  # JSON has no sets
    return {**body, "arms": arm_list}


def _idempotent_recommend_body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request body with a decision_id, so that a retry returns the same decision."""
    # New ids start with the time, so that they are at the end of the index of the database. This halves the bytes that
    # the service writes to disk.
    return {"decision_id": f"{time.time_ns():016x}{secrets.token_hex(8)}", **_recommend_body(arguments)}


def recommend(
    client: BaseClient,
    user: str,
    arms: Arms,
    exclude: Sequence[str] | None = None,
    count: int | None = None,
    decision_id: str | None = None,
) -> Exchange[Response]:
    """Recommend one of the arms to a user.

    Parameters
    ----------
    user : str
        Id of the user. The service creates unknown users.
    arms : mapping or iterable of mappings
        Features by arm id, or dictionaries with ``id`` and ``features``. Features are a list of numbers, or a
        dictionary of names and values.
    exclude : sequence of str, optional
        Ids of arms that must not be recommended.
    count : int, optional
        Maximum number of arms in the ranking; by default all arms.
    decision_id : str, optional
        Id of the decision; by default a new id.

    Returns
    -------
    Response
        The decision, with ``decision_id``, ``arm``, ``ranking``, ``clusters`` and ``explanation``.
    """
    arguments = {"user": user, "arms": arms, "exclude": exclude, "count": count, "decision_id": decision_id}
    response: Response = yield from client.request_json("POST", "/v1/recommend", _idempotent_recommend_body(arguments))
    return response


def reward(client: BaseClient, decision_id: str, reward: float) -> Exchange[Response]:
    """Report the reward of a decision.

    Repeating the call with the same reward has no effect. A different reward raises ``ServiceError`` with status 409.

    Parameters
    ----------
    decision_id : str
        Id of the decision.
    reward : float
        The reward, from −10⁶ to 10⁶.

    Returns
    -------
    Response
        Confirmation with ``decision_id``, ``reward`` and ``corrected`` (whether the reward replaced a default reward).
    """
    body = {"decision_id": decision_id, "reward": reward}
    response: Response = yield from client.request_json("POST", "/v1/reward", body)
    return response


def recommend_batch(
    client: BaseClient, requests: Iterable[Mapping[str, Any]]
) -> Exchange[list[Response | ServiceError]]:
    """Request several decisions in one HTTP request.

    Parameters
    ----------
    requests : iterable of mappings
        Arguments of ``recommend``, one mapping per decision; at most 1,000.

    Returns
    -------
    list of Response or ServiceError
        One item per request, in the same order: the decision, or the error if the request failed.
    """
    body = {"requests": [_idempotent_recommend_body(arguments) for arguments in requests]}
    response = yield from client.request_json("POST", "/v1/recommend:batch", body)
    return [
        item["decision"] if "decision" in item else error_from_problem(item["problem"]) for item in response["results"]
    ]


def reward_batch(
    client: BaseClient, rewards: Mapping[str, float] | Iterable[tuple[str, float]]
) -> Exchange[list[Response | ServiceError]]:
    """Report several rewards in one HTTP request.

    Parameters
    ----------
    rewards : mapping or iterable of (decision_id, reward)
        Reward of each decision; at most 1,000.

    Returns
    -------
    list of Response or ServiceError
        One item per reward, in the same order: the confirmation, or the error if the service rejected the reward.
    """
    pairs = rewards.items() if isinstance(rewards, Mapping) else rewards
    body = {"rewards": [{"decision_id": decision_id, "reward": reward} for decision_id, reward in pairs]}
    response = yield from client.request_json("POST", "/v1/reward:batch", body)
    return [item["reward"] if "reward" in item else error_from_problem(item["problem"]) for item in response["results"]]


def preview(
    client: BaseClient, user: str, arms: Arms, exclude: Sequence[str] | None = None, count: int | None = None
) -> Exchange[Response]:
    """Return the arm that would be recommended now to a known user, without storing a decision.

    Parameters
    ----------
    user, arms, exclude, count
        As in ``recommend``. An unknown user raises ``ServiceError`` with status 404.

    Returns
    -------
    Response
        The fields of a decision without ``decision_id``.
    """
    arguments = {"user": user, "arms": arms, "exclude": exclude, "count": count}
    response: Response = yield from client.request_json("POST", "/v1/preview", _recommend_body(arguments))
    return response


def user(client: BaseClient, id: str) -> Exchange[Response]:  # noqa: A002 - the name in the API
    """Return the estimate, clusters and reward statistics of the user with this id."""
    response: Response = yield from client.request_json("GET", _path("users", id))
    return response


def similar(client: BaseClient, id: str, limit: int = 10) -> Exchange[list[Response]]:  # noqa: A002 - the name in the API
    """Return at most ``limit`` users who share a cluster with the user ``id``, by increasing distance of estimates."""
    response = yield from client.request_json("GET", f"{_path('users', id)}/similar{_query(limit=int(limit))}")
    return list(response["similar"])


def decisions(client: BaseClient, id: str, limit: int = 20) -> Exchange[list[Response]]:  # noqa: A002 - the name in the API
    """Return the last ``limit`` decisions for the user ``id``, with rewards and explanations, newest first."""
    response = yield from client.request_json("GET", f"{_path('users', id)}/decisions{_query(limit=int(limit))}")
    return list(response["decisions"])


def clusters(client: BaseClient) -> Exchange[list[Response]]:
    """Return all clusters of users, with ``seed``, ``size``, ``returned`` (whether it is final) and ``sure_share``.

    ``sure_share`` is the share of the members who belong to the cluster with a probability of at least 0.9 (ELOC only).
    """
    return list((yield from client.request_json("GET", "/v1/clusters"))["clusters"])


def cluster(client: BaseClient, seed: str) -> Exchange[Response]:
    """Return the members and the certificate of a cluster.

    Parameters
    ----------
    seed : str
        User after whom the cluster is named: its seed user, or its first member if the policy has no seed users.

    Returns
    -------
    Response
        The cluster. ``probabilities`` has the probability of each member (ELOC only). ``certificate`` is an upper bound
        on the distance between the preferences of any two members.
    """
    response: Response = yield from client.request_json("GET", _path("clusters", seed))
    return response


def groups(
    client: BaseClient, sort: str = "size", limit: int = 50, offset: int = 0, search: str | None = None
) -> Exchange[Response]:
    """Return a page of the table of clusters: size, progress, certificate, sure members, rewards, features, overlap.

    Parameters
    ----------
    sort : "size", "reward", "progress", "sure" or "seed", default "size"
        Column by which the table is sorted.
    limit : int, default 50
        Maximum number of clusters on the page, from 1 to 200.
    offset : int, default 0
        Number of clusters before the page.
    search : str, optional
        Text that the id of the seed user (of the first member, if the policy has no seed users) must contain, not
        case-sensitive; by default all clusters.
    """
    query = _query(sort=sort, limit=int(limit), offset=int(offset), search=search)
    response: Response = yield from client.request_json("GET", f"/v1/groups{query}")
    return response


def status(client: BaseClient) -> Exchange[Response]:
    """Return the current state of the service: rates, totals, store and newest snapshot."""
    response: Response = yield from client.request_json("GET", "/v1/status")
    return response


def history(
    client: BaseClient, span: str = "hour", baseline: tuple[float, float] | Literal["previous"] | None = None
) -> Exchange[Response]:
    """Return decisions and rewards over time.

    Parameters
    ----------
    span : "hour", "day", "month" or "all", default "hour"
        Period that ends now.
    baseline : (float, float) or "previous", optional
        Start and end of the period to compare with, in Unix time (seconds); or ``"previous"``, the period of the same
        length that ends where the span starts. By default there is no comparison.
    """
    if isinstance(baseline, str):
        query = _query(span=span, baseline=baseline)
    else:
        start, end = (None, None) if baseline is None else baseline
        query = _query(span=span, baseline_from=start, baseline_to=end)
    response: Response = yield from client.request_json("GET", f"/v1/history{query}")
    return response


def map(client: BaseClient, projection: str | None = None) -> Exchange[Response]:  # noqa: A001 - the name in the API
    """Return the estimates of users, projected onto two dimensions.

    Parameters
    ----------
    projection : str, optional
        Id of a projection from an earlier response, which gives the same axes, or ``"new"`` for a new projection. By
        default the service uses its most recent projection.
    """
    response: Response = yield from client.request_json("GET", f"/v1/map{_query(projection=projection)}".rstrip("?"))
    return response


def delete_user(client: BaseClient, id: str) -> Exchange[Response]:  # noqa: A002 - the name in the API
    """Erase the user with this id, and everything that was learned from the user.

    If the response of a successful attempt is lost, the retry finds no such user. ``erased_decisions`` is then None.
    """
    try:
        response: Response = yield from client.request_json("DELETE", _path("users", id))
    except ServiceError as error:
        if error.status != 404 or not error.in_doubt:
            raise
        return Response(user=id, erased_decisions=None)
    return response


def live(client: BaseClient) -> Exchange[Response]:
    """Return the response to a liveness check, which succeeds even if the store is unavailable. No retries."""
    response: Response = yield from client.request_json("GET", "/v1/live", retries=0)
    return response


def health(client: BaseClient) -> Exchange[Response]:
    """Return the response to a health check. An unhealthy service raises ``ServiceError``. No retries."""
    response: Response = yield from client.request_json("GET", "/v1/health", retries=0)
    return response


def export(client: BaseClient, path: str | Path) -> Exchange[Path]:
    """Download all decisions and rewards as a Parquet file, and return the path of the file.

    Parameters
    ----------
    path : str or Path
        Path of the file. An existing file is replaced when the download is complete.
    """
    part = Path(path).with_name(Path(path).name + ".part")
    try:
        yield from client.request("GET", "/v1/export", into=part)
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)
