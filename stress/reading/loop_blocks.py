"""Measurement of how long each GET route, and large requests, block the event loop, with many users."""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any
from urllib.parse import quote

from locb.common.spans import SPANS
from locb.service.api.routes import ROUTES
from locb.service.dashboard.cluster_table import MAX_LIMIT, SORTS
from stress.generated_history import DIM, generate_history
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation

COMMAND = (sys.executable, "-m", "stress.reading.probed_service")
POLICIES = ("locb", "club", "eloc")
HISTORY_SECONDS = 70 * 86_400.0  # two spans of 30 days, and more
# Requests per address: the figure is their median, so that other processes affect it little. Long requests, such as an
# export, are repeated only while they take less than MAX_SECONDS together.
REPEATS, MAX_SECONDS = 7, 20.0
# Requests of routes with parameters; other GET routes are requested without parameters.
VARIANTS = {
    "/v1/users/{user}/similar": ["?limit=10", "?limit=1000"],
    "/v1/users/{user}/decisions": ["?limit=100"],
    "/v1/history": [f"?span={name}{'&baseline=previous' * (span.seconds is not None)}" for name, span in SPANS.items()],
    "/v1/map": ["", "?projection=new"],
    "/v1/groups": [f"?sort={sort}&limit={MAX_LIMIT}" for sort in SORTS] + ["?search=9"],
}
# Large POST requests: path and body of each, by a description that is part of the name of its figure.
_ACTIONS = [{"id": f"action-{a}", "features": [{f"f{f}": f"v{a * f % 97}" for f in range(10)}]} for a in range(1000)]
_CONTEXT = [{"user": {"id": "user-1"}}, {f"c{c}": c for c in range(10)}]
_MANY_NAMES = [{"id": f"arm-{a}", "features": {f"{a}-{f}": 1.0 for f in range(4900)}} for a in range(10)]
_MANY_ARMS = [{"id": f"arm-{a}", "features": [1.0] + [0.01 * a] * (DIM - 1)} for a in range(1000)]
_FEW_ARMS = _MANY_ARMS[:5]
LARGE_REQUESTS: dict[str, tuple[str, Any]] = {
    "1,000 actions": ("/personalizer/v1.0/rank", {"actions": _ACTIONS, "contextFeatures": _CONTEXT}),
    "49,000 names": ("/v1/recommend", {"user": "user-1", "arms": _MANY_NAMES}),
    "1,000 arms": ("/v1/recommend", {"user": "user-1", "arms": _MANY_ARMS}),
    "1,000 requests": ("/v1/recommend:batch", {"requests": [{"user": "user-1", "arms": _FEW_ARMS}] * 1000}),
}
OTHER_PATHS = ("/", "/page/page.js", "/openapi.json")


def loop_blocks(location: StoreLocation, policy: str, users: int) -> dict[str, Any]:
    """Return, for each GET request and each large request, the longest block of the event loop in milliseconds.

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
        while json.loads(server.get("/v1/status")[1])["backfilling"]:
            time.sleep(0.1)
        figures["users"] = json.loads(server.get("/v1/health")[1])["users"]
        requests: dict[str, tuple[str, Any]] = {f"GET {path}": (path, None) for path in _addresses(server)}
        requests |= {f"POST {path}, {name}": (path, body) for name, (path, body) in LARGE_REQUESTS.items()}
        for name, (path, body) in requests.items():
            blocks, end = [_probe(server, path, body)], time.monotonic() + MAX_SECONDS
            while len(blocks) < REPEATS and time.monotonic() < end:
                blocks.append(_probe(server, path, body))
            figures[name] = round(median(blocks), 1)
        server.stop()
    return figures


def _addresses(server: ServiceProcess) -> list[str]:
    """Return the paths of all GET routes, with parameters; the cluster is the largest one with a name."""
    groups = json.loads(server.get(f"/v1/groups?sort=size&limit={MAX_LIMIT}")[1])["clusters"]
    cluster = next(group["seed"] for group in groups if group["seed"] is not None)
    paths = []
    for route in ROUTES:
        if route.method == "GET":
            path = route.path.replace("{user}", quote(cluster)).replace("{seed}", quote(cluster))
            paths += [path + query for query in VARIANTS.get(route.path, [""])]
    return [*paths, *OTHER_PATHS]


def _probe(server: ServiceProcess, path: str, content: Any = None) -> float:
    """Send a GET request, or a POST request with content, and return the longest iteration of the event loop in ms."""
    arms = [{"id": "arm", "features": [1.0] + [0.0] * (DIM - 1)}]
    server.post("/v1/recommend", {"user": "user-0", "arms": arms})  # the response cannot be one of an unchanged state
    server.get("/probe/start")
    status, body = server.get(path) if content is None else server.post(path, content)
    if status not in (200, 201, 204):
        raise RuntimeError(f"{path} has status {status} instead of 200, 201 or 204: {body[:200]!r}")
    return float(server.get("/probe/stop")[1])
