"""Test of a full disk under load: requests get status 503 with the reason, and the service recovers automatically."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from locb import loadtest
from stress.background_load import BackgroundLoad
from stress.checks import Acknowledged, check
from stress.disks import Disk
from stress.service_process import ServiceProcess

RATE = 300.0  # decisions per second; low enough that the decisions alone do not fill the disk


def disk_full(disk: Disk, repeats: int, clients: int, *, seconds: float = 1.0) -> dict[str, Any]:
    """Fill the disk of a service ``repeats`` times for ``seconds`` each, and check the event log afterwards.

    ``clients`` is the number of concurrent connections that send requests meanwhile.
    """
    acknowledged, errors, details, recovery = Acknowledged(), Counter[str](), set[str](), []
    with ServiceProcess(disk.folder / "state", ["--dim", "10", "--snapshot-every", "2000"]) as server:
        server.start()
        for number in range(repeats):
            plan = loadtest.Plan(
                url=server.url, rate=RATE, connections=clients, users=500, seconds=3.0 * seconds, retry=True,
                record=True, timeout=60.0, seed=number,
            )  # fmt: skip
            load = BackgroundLoad(plan)
            load.wait_started()
            disk.fill(server)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                status, problem = server.post("/v1/recommend", _request(number))
                if status == 503:
                    details.add(problem["detail"])
                time.sleep(0.02)
            disk.free(server)
            start = time.perf_counter()
            server.wait_ready()
            recovery.append(time.perf_counter() - start)
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        starts = server.output().count("Starting the service at")
        server.stop()
        counts = check(server.folder, None, acknowledged)
    return {
        "repeats": repeats,
        "clients": clients,
        "responses with 503": errors["503"],
        "reasons": sorted(details),
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other errors": errors.total() - sum(errors[kind] for kind in ("503", "unanswered", "timeout")),
        "starts of the service": starts,
        "slowest recovery, seconds": round(max(recovery), 2),
        **counts,
    }


def _request(number: int) -> dict[str, Any]:
    features = [1.0] + [0.0] * 9
    return {"user": f"probe {number}", "arms": [{"id": "one", "features": features}]}
