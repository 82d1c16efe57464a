"""A long log: how fast it is replayed, and what a snapshot of many users costs the requests beside it."""

from __future__ import annotations

import json
import re
import shutil
import time
from typing import Any

from locb import loadtest as traffic
from stress.history import ARMS, DIM, live
from stress.load import Load
from stress.server import Server
from stress.stores import Place


def restart(place: Place, events: int, users: int) -> dict[str, Any]:
    """Seconds from the start of a process to its first answer, on a store of so many events.

    First without any snapshot, then with the one that the stop before left behind.
    """
    made = time.perf_counter()
    count = live(place.folder, place.url, events, users)
    made = time.perf_counter() - made
    with Server(place.folder, [], place.url) as server:
        server.start()  # what has to be compiled is compiled now
        server.kill()
        shutil.rmtree(place.folder / "snapshots")
        without = server.start()
        replay = _replay_seconds(server)
        server.stop()
        with_one = server.start()
        server.stop()
    return {
        "events": count,
        "users": users,
        "made in seconds": round(made, 1),
        "start without a snapshot, seconds": round(without, 2),
        "start with a snapshot, seconds": round(with_one, 2),
        "replay, seconds": round(replay, 2),
        "events replayed a second": round(count / replay),
        "rewards replayed a second": round(count / 2 / replay),
    }


def _replay_seconds(server: Server) -> float:
    lines = [line for line in server.said().splitlines() if '"ready: ' in line]
    found = re.search(r"in ([\d.]+) s$", json.loads(lines[-1])["message"])
    if found is None:
        raise ValueError(f"no time in {lines[-1]}")
    return max(float(found[1]), 0.01)


def snapshots(place: Place, users: int, rate: float, seconds: float = 20.0) -> dict[str, Any]:
    """What snapshots cost the requests beside them, on a store with so many users, at so many decisions a second."""
    every = max(int(rate * seconds / 4), 1)
    with Server(place.folder, ["--snapshot-every", str(every)], place.url) as server:
        server.start()
        plan = traffic.Plan(
            url=server.url, rate=rate, connections=200, users=users, arms=ARMS, dim=DIM, count=1, seconds=seconds
        )
        load = Load(plan)
        load.wait_started()
        blocked: dict[float, float] = {}  # by the place of the snapshot
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            blocked[server.metric("locb_snapshot_position")] = server.metric("locb_snapshot_blocked_seconds")
            time.sleep(0.25)
        report = load.report()
        took = server.metric("locb_snapshot_duration_seconds")
        server.stop()
    return {
        "users": users,
        "decisions a second": round(rate),
        "snapshots": len(blocked) - 1,
        "blocked, milliseconds": round(1000 * max(blocked.values()), 1),
        "written in, seconds": round(took, 2),
        "p50, milliseconds": round(report.recommend.p50, 1),
        "p99, milliseconds": round(report.recommend.p99, 1),
        "largest, milliseconds": round(max(report.recommend.max, report.reward.max), 1),
        "errors": report.errors,
    }
