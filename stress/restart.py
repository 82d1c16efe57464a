"""Measurements of the restart of a service with a long event log, and of requests while snapshots are written."""

from __future__ import annotations

import json
import re
import shutil
import time
from typing import Any

from locb import loadtest
from stress.clients.background_load import BackgroundLoad
from stress.generated_history import ARMS, DIM, generate_history
from stress.service_process import ServiceProcess
from stress.stores import StoreLocation


def restart(location: StoreLocation, events: int, users: int, policy: str) -> dict[str, Any]:
    """Measure the time from the start of a service process to its first response, without and with a snapshot.

    Before, the empty store is filled with ``events`` events of ``users`` users, whose decisions ``policy`` makes.
    """
    start = time.perf_counter()
    count = generate_history(location.folder, location.url, events, users, policy=policy)
    generated = time.perf_counter() - start
    with ServiceProcess(location.folder, [], location.url) as server:
        server.start()  # compiles the kernels, so that the timed starts do not
        server.kill()
        shutil.rmtree(location.folder / "snapshots")
        cold = server.start()
        replay = _replay_seconds(server)
        server.stop()
        warm = server.start()
        server.stop()
    return {
        "events": count,
        "users": users,
        "generated in, seconds": round(generated, 1),
        "start without a snapshot, seconds": round(cold, 2),
        "start with a snapshot, seconds": round(warm, 2),
        "replay, seconds": round(replay, 2),
        "events replayed per second": round(count / replay),
        "rewards replayed per second": round(count / 2 / replay),
    }


def _replay_seconds(server: ServiceProcess) -> float:
    lines = [line for line in server.output().splitlines() if '"ready: ' in line]
    found = re.search(r"in ([\d.]+) s$", json.loads(lines[-1])["message"])
    if found is None:
        raise ValueError(f"the log line must end with a duration, such as 'in 1.5 s', not {lines[-1]!r}")
    return max(float(found[1]), 0.01)


def snapshots(location: StoreLocation, users: int, rate: float, seconds: float = 20.0) -> dict[str, Any]:
    """Measure how long snapshots block requests, and the latency of requests meanwhile.

    Parameters
    ----------
    location : StoreLocation
        Store with events.
    users : int
        Number of users of the load test.
    rate : float
        Decisions per second.
    seconds : float, default 20.0
        Duration of the load test.
    """
    every = max(int(rate * seconds / 4), 1)
    with ServiceProcess(location.folder, ["--snapshot-every", str(every)], location.url) as server:
        server.start()
        plan = loadtest.Plan(
            url=server.url, rate=rate, connections=200, users=users, arms=ARMS, dim=DIM, count=1, seconds=seconds
        )
        load = BackgroundLoad(plan)
        load.wait_started()
        blocked: dict[float, float] = {}  # position of the snapshot in the log → seconds
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            blocked[server.metric("locb_snapshot_position")] = server.metric("locb_snapshot_blocked_seconds")
            time.sleep(0.25)
        report = load.report()
        duration = server.metric("locb_snapshot_duration_seconds")
        server.stop()
    return {
        "users": users,
        "decisions per second": round(rate),
        "snapshots": len(blocked) - 1,
        "blocked, milliseconds": round(1000 * max(blocked.values()), 1),
        "written in, seconds": round(duration, 2),
        "p50, milliseconds": round(report.recommend.p50, 1),
        "p99, milliseconds": round(report.recommend.p99, 1),
        "maximum, milliseconds": round(max(report.recommend.max, report.reward.max), 1),
        "errors": report.errors,
    }
