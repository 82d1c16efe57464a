"""Test of a full disk under load: requests get status 503 with the reason, and the service recovers automatically."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from locb import loadtest
from stress.checks import Acknowledged, check
from stress.clients.background_load import BackgroundLoad
from stress.faults.disks import Disk
from stress.service_process import ServiceProcess

RATE = 300.0  # decisions per second; low enough that the decisions alone do not fill the disk
PROBE_ARMS = 300  # arms per probe: about 100 KB in the write-ahead log
MAX_PROBES = 2_000  # then the test fails, because no write has failed


def disk_full(disk: Disk, repeats: int, clients: int, *, seconds: float = 1.0) -> dict[str, Any]:
    """Fill the disk of a service ``repeats`` times for at least ``seconds``, and check the event log afterwards.

    ``clients`` is the number of concurrent connections that send requests meanwhile.
    """
    acknowledged, errors, details, recovery = Acknowledged(), Counter[str](), Counter[str](), []
    exports = Counter[int]()
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
            details.update(_probe(server, number, seconds))
            exports[server.get("/v1/export")[0]] += 1
            disk.free(server)
            start = time.perf_counter()
            server.wait_ready()
            recovery.append(time.perf_counter() - start)
            exports[server.get("/v1/export")[0]] += 1
            report = load.report()
            acknowledged.add(report)
            errors.update(report.errors)
        starts = server.output().count("Starting the service at")
        server.stop()
        counts = check(server.folder, None, acknowledged)
    return {
        "repeats": repeats,
        "clients": clients,
        "responses with 503": errors["503"] + details.total(),
        "reasons": sorted(details),
        "given up": errors["unanswered"] + errors["timeout"] + errors["invalid response"],
        "other errors": errors.total() - sum(errors[kind] for kind in ("503", "unanswered", "timeout")),
        "exports with 503": exports[503],
        "exports with another error": exports.total() - exports[503] - exports[200],
        "starts of the service": starts,
        "slowest recovery, seconds": round(max(recovery), 2),
        **counts,
    }


def _probe(server: ServiceProcess, number: int, seconds: float) -> Counter[str]:
    """Send requests for ``seconds``, and until one gets status 503; return the details of the responses with 503.

    SQLite overwrites the blocks that its write-ahead log already has, so the first writes on a full disk can succeed.
    """
    features = [1.0] + [0.0] * 9
    request = {"user": f"probe {number}", "arms": [{"id": str(arm), "features": features} for arm in range(PROBE_ARMS)]}
    details = Counter[str]()
    end = time.monotonic() + seconds
    for _ in range(MAX_PROBES):
        status, problem = server.post("/v1/recommend", request)
        if status == 503:
            details[problem["detail"]] += 1
        if details and time.monotonic() > end:
            break
        time.sleep(0.02)
    return details
