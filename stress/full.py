"""A full disk under load: 503 with the reason, and on as soon as there is room."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from locb import loadtest as traffic
from stress.checks import Acknowledged, check
from stress.disks import Disk
from stress.load import Load
from stress.server import Server

RATE = 300.0  # decisions a second: a small disk is not to be full of them


def full(disk: Disk, times: int, clients: int, *, seconds: float = 1.0) -> dict[str, Any]:
    """Fill the disk under a service, again and again, make room each time, and look at what is left."""
    acknowledged, errors, details, back = Acknowledged(), Counter[str](), set[str](), []
    with Server(disk.folder / "state", ["--dim", "10", "--snapshot-every", "2000"]) as server:
        server.start()
        for number in range(times):
            plan = traffic.Plan(
                url=server.url, rate=RATE, connections=clients, users=500, seconds=3.0 * seconds, retry=True,
                record=True, timeout=60.0, seed=number,
            )  # fmt: skip
            load = Load(plan)
            load.wait_started()
            disk.fill(server)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                status, problem = server.post("/v1/recommend", _question(number))
                if status == 503:
                    details.add(problem["detail"])
                time.sleep(0.02)
            disk.free(server)
            began = time.perf_counter()
            server.wait_ready()
            back.append(time.perf_counter() - began)
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        starts = server.said().count("Starting at")
        server.stop()
        counts = check(server.folder, None, acknowledged)
    return {
        "times": times,
        "clients": clients,
        "requests told 503": errors["503"],
        "reasons": sorted(details),
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other answers": errors.total() - sum(errors[kind] for kind in ("503", "unanswered", "timeout")),
        "starts of the service": starts,
        "back within seconds": round(max(back), 2),
        **counts,
    }


def _question(number: int) -> dict[str, Any]:
    features = [1.0] + [0.0] * 9
    return {"user": f"somebody {number}", "arms": [{"id": "one", "features": features}]}
