"""Measurement of how long each GET route, large requests, and erasures block the event loop, with many users."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import Any
from urllib.parse import quote

from locb.common.spans import SPANS
from locb.service.api.request_params import MAX_CLUSTER_ROWS
from locb.service.api.routes import ROUTES
from locb.service.dashboard.cluster_table import SORTS
from stress.generated_history import DIM, generate_history
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

COMMAND = (sys.executable, "-m", "stress.reading.probed_service")
QUANTITIES = ("CPU time", "elapsed time")
POLICIES = ("locb", "club", "sclub", "eloc")
HISTORY_SECONDS = 70 * 86_400.0  # two spans of 30 days, and more
# Requests per address: each figure is their median, so that other processes affect it little. Long requests, such as an
# export, are repeated only while they take less than MAX_SECONDS together.
REPEATS, MAX_SECONDS = 7, 20.0
# Requests of routes with parameters; other GET routes are requested without parameters.
VARIANTS = {
    "/v1/users/{user}/similar": ["?limit=10", "?limit=1000"],
    "/v1/users/{user}/decisions": ["?limit=100"],
    "/v1/history": [f"?span={name}{'&baseline=previous' * (span.seconds is not None)}" for name, span in SPANS.items()],
    "/v1/map": ["", "?projection=new"],
    "/v1/groups": [f"?sort={sort}&limit={MAX_CLUSTER_ROWS}" for sort in SORTS] + ["?search=9"],
}
# Large POST requests: path, description, and body of each.
_ACTIONS = [{"id": f"action-{a}", "features": [{f"f{f}": f"v{a * f % 97}" for f in range(10)}]} for a in range(1000)]
_CONTEXT = [{"user": {"id": "user-1"}}, {f"c{c}": c for c in range(10)}]
_MANY_NAMES = [{"id": f"arm-{a}", "features": {f"{a}-{f}": 1.0 for f in range(1900)}} for a in range(10)]
_MANY_ARMS = [{"id": f"arm-{a}", "features": [1.0] + [0.01 * a] * (DIM - 1)} for a in range(1000)]
_FEW_ARMS = _MANY_ARMS[:5]
LARGE_REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("/personalizer/v1.0/rank", "1,000 actions", {"actions": _ACTIONS, "contextFeatures": _CONTEXT}),
    ("/v1/recommend", "19,000 names", {"user": "user-1", "arms": _MANY_NAMES}),
    ("/v1/recommend", "1,000 arms", {"user": "user-1", "arms": _MANY_ARMS}),
    ("/v1/preview", "1,000 arms", {"user": "user-0", "arms": _MANY_ARMS}),
    ("/v1/recommend:batch", "1,000 requests", {"requests": [{"user": "user-1", "arms": _FEW_ARMS}] * 1000}),
)
OTHER_PATHS = ("/", "/page/page.js", "/openapi.json")
Request = tuple[str, str, Any]  # method, path and body


def loop_blocks(location: StoreLocation, policy: str, users: int) -> dict[str, Any]:
    """Return, for each GET, each large POST and a DELETE, the longest blocks of the event loop in milliseconds.

    Each request has two figures: the CPU time and the elapsed time of the longest iteration, see ``LoopProbe``.

    Parameters
    ----------
    location : StoreLocation
        An empty store, which is filled with events.
    policy : str
        Name of the policy.
    users : int
        Minimum number of users.
    """
    drawn = round(1.3 * users)  # users who may appear in the store; with two decisions per user, 86% of them do
    generate_history(location.folder, location.url, 4 * drawn, drawn, policy=policy, seconds=HISTORY_SECONDS)
    figures: dict[str, Any] = {}
    with ServiceProcess(location.folder, [], location.url, command=COMMAND) as server:
        server.start()
        _wait_for_backfill(server)
        figures["users"] = json.loads(server.get("/v1/health")[1])["users"]
        for name, make_request in _requests(server).items():
            blocks, end = [_probe(server, *make_request())], time.monotonic() + MAX_SECONDS
            while len(blocks) < REPEATS and time.monotonic() < end:
                blocks.append(_probe(server, *make_request()))
            for quantity, values in zip(QUANTITIES, zip(*blocks, strict=True), strict=True):
                figures[f"{name}: {quantity}"] = round(median(values), 1)
        server.stop()
    return figures


def _requests(server: ServiceProcess) -> dict[str, Callable[[], Request]]:
    """Return, by the name of its figure, a function that prepares a request. Erasures are the last requests."""
    requests: dict[str, Callable[[], Request]] = {}
    for path in _addresses(server):
        requests[f"GET {path}"] = lambda path=path: ("GET", path, None)  # type: ignore[misc]
    for path, name, body in LARGE_REQUESTS:
        requests[f"POST {path}, {name}"] = lambda path=path, body=body: ("POST", path, body)  # type: ignore[misc]
    numbers = count()
    requests["POST /v1/reward:batch, 1,000 new rewards"] = lambda: _rewards(_decide(server, next(numbers)))
    # These decisions are in the log only, and have rewards.
    requests["POST /v1/reward:batch, 1,000 repeated rewards"] = lambda: _rewards([f"past-{k:08x}" for k in range(1000)])
    users = (user for user in (f"user-{k}" for k in count(1)) if server.get(f"/v1/users/{user}")[0] == 200)
    requests["DELETE /v1/users/{user}"] = lambda: ("DELETE", f"/v1/users/{next(users)}", None)
    return requests


def _decide(server: ServiceProcess, number: int) -> list[str]:
    """Request 1,000 decisions of different users, and return their ids."""
    ids = [f"batch-{number}-{k}" for k in range(1000)]
    requests = [{"user": f"user-{k}", "arms": _FEW_ARMS, "decision_id": name} for k, name in enumerate(ids)]
    _check("/v1/recommend:batch", *server.post("/v1/recommend:batch", {"requests": requests}))
    return ids


def _rewards(decision_ids: list[str]) -> Request:
    rewards = [{"decision_id": name, "reward": 1.0} for name in decision_ids]
    return "POST", "/v1/reward:batch", {"rewards": rewards}


def _addresses(server: ServiceProcess) -> list[str]:
    """Return the paths of all GET routes, with parameters; the cluster is the largest one with a name."""
    groups = json.loads(server.get(f"/v1/groups?sort=size&limit={MAX_CLUSTER_ROWS}")[1])["clusters"]
    cluster = next(group["seed"] for group in groups if group["seed"] is not None)
    paths = []
    for route in ROUTES:
        if route.method == "GET":
            path = route.path.replace("{user}", quote(cluster)).replace("{seed}", quote(cluster))
            paths += [path + query for query in VARIANTS.get(route.path, [""])]
    return [*paths, *OTHER_PATHS]


def _probe(server: ServiceProcess, method: str, path: str, content: Any) -> tuple[float, float]:
    """Send a request, and return the CPU time and the elapsed time of the longest iteration of the event loop in ms.

    The probe of an erasure includes the rebuild of the policy and the backfill of the statistics.
    """
    arms = [{"id": "arm", "features": [1.0] + [0.0] * (DIM - 1)}]
    server.post("/v1/recommend", {"user": "user-0", "arms": arms})  # the response cannot be one of an unchanged state
    server.get("/probe/start")
    if method == "DELETE":
        _check(path, *server.delete(path))
        _wait_for_backfill(server)
    else:
        _check(path, *(server.get(path) if method == "GET" else server.post(path, content)))
    cpu, elapsed = json.loads(server.get("/probe/stop")[1])
    return cpu, elapsed


def _check(path: str, status: int, body: Any) -> None:
    if status not in (200, 201, 204):
        raise RuntimeError(f"{path} has status {status} instead of 200, 201 or 204: {str(body)[:200]}")


def _wait_for_backfill(server: ServiceProcess) -> None:
    while json.loads(server.get("/v1/status")[1])["backfilling"]:
        time.sleep(0.1)
