"""The verdicts of ``python -m stress``: a test fails if a figure is outside its limit, or if nothing was tested."""

import argparse
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from stress import __main__ as program
from stress.checks import VIOLATIONS

FAULTS: dict[str, Any] = dict.fromkeys((*VIOLATIONS, "given up", "other errors", "not erased"), 0) | {
    "acknowledged decisions": 5,
    "acknowledged rewards": 5,
    "attempts without a response": 3,
    "responses with 503": 2,
    "reasons": ["disk full"],
    "starts of the service": 1,
    "exports with 503": 1,
}
FIGURES: dict[str, dict[str, Any]] = {
    "kill": FAULTS,
    "outage": FAULTS,
    "disk_full": FAULTS,
    "two_writers": FAULTS,
    "hanging_store": FAULTS,
    "clock_steps": FAULTS | {"errors": {}},
    "restart": {
        "start without a snapshot, seconds": 8.0,
        "start with a snapshot, seconds": 3.0,
        "events replayed per second": 200_000,
    },
    "snapshots": {"blocked, milliseconds": 20.0, "snapshots": 3, "errors": {}},
    "throughput": {"ratio": 0.5, "p99 at half load, milliseconds": 20.0, "errors": 0},
    "log_size": {"bytes per decision": 1_200},
    "hostile_clients": {
        "requests of other clients": 100,
        "failed": 0,
        "slowest, milliseconds": 30.0,
        "memory grown, MB": 5.0,
    },
    "dashboard": {"map: chart, seconds": 1.0, "CPU of the pages, %": 1.0},
    "histories": {"requests acknowledged": 100, "histories with violations": {}},
    "loop_blocks": {
        "users": 100_000,
        "GET /v1/clusters: CPU time": 4.9,
        "GET /v1/clusters: elapsed time": 19.9,
        "POST /v1/recommend, 1,000 arms: CPU time": 19.9,
    },
    "soak": {
        "CPU per decision and reward, milliseconds": 0.35,
        "planned decisions": 1000,
        "decisions": 995,
        "errors": {},
        "growth of the memory, %": 4.9,
        "growth of the CPU per decision, %": None,
        "per minute": [{"minute": 1, "p99": 30.0}, {"minute": 2, "p99": 9.0}],
    },
}


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, part: str, **changes: Any) -> tuple[int, dict[str, Any]]:
    """Run a part with figures instead of a measurement, and return the exit status and the saved results."""
    for name, figures in FIGURES.items():
        replaced = figures | changes.get(name, {})
        result = [("an attack", replaced)] if name in ("hostile_clients", "hanging_store") else replaced
        result = {"eloc": replaced} if name == "throughput" else result
        monkeypatch.setattr(program, name, lambda *_, result=result: result)
    for name in ("new_store", "new_stores", "new_disk"):
        monkeypatch.setattr(program, name, lambda *_, **__: nullcontext())
    monkeypatch.setattr(sys, "argv", ["stress", part, "--store", "postgresql", "--output", str(folder)])
    status = program.main()
    results: dict[str, Any] = json.loads((folder / f"{part}.json").read_text())["results"]
    return status, results


@pytest.mark.parametrize("part", program.PARTS)
def test_figures_within_the_limits_pass(part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, results = run(monkeypatch, tmp_path, part)
    assert status == 0
    assert results
    assert [result["failures"] for result in results.values()] == [[]] * len(results)


@pytest.mark.parametrize(
    ("part", "name", "change", "failure"),
    [
        *(("kill", "kill", {violation: 2}, f"2 {violation}") for violation in VIOLATIONS),
        ("kill", "kill", {"not erased": 1}, "1 not erased"),
        ("kill", "kill", {"given up": 4}, "4 given up"),
        ("kill", "kill", {"acknowledged decisions": 0}, "no acknowledged decisions"),
        ("kill", "kill", {"acknowledged rewards": 0}, "no acknowledged rewards"),
        ("kill", "kill", {"attempts without a response": 0}, "no kill interrupted a request"),
        ("outage", "outage", {"other errors": 1}, "1 other errors"),
        ("outage", "outage", {"starts of the service": 2}, "the service started 2 times instead of once"),
        ("outage", "outage", {"responses with 503": 0}, "no response during an outage had status 503"),
        ("outage", "outage", {"acknowledged rewards": 0}, "no acknowledged rewards"),
        ("disk-full", "disk_full", {"reasons": []}, "no response during a full disk had status 503 with a reason"),
        ("disk-full", "disk_full", {"acknowledged decisions": 0}, "no acknowledged decisions"),
        ("disk-full", "disk_full", {"exports with another error": 1}, "1 exports with another error"),
        ("disk-full", "disk_full", {"exports with 503": 0}, "no export during a full disk had status 503"),
        (
            "two-writers",
            "two_writers",
            {"requests that got another response": 1},
            "1 requests that got another response",
        ),
        (
            "two-writers",
            "two_writers",
            {"processes that did not exit with status 1": 1},
            "1 processes that did not exit with status 1",
        ),
        ("two-writers", "two_writers", {"refused decisions in the log": 2}, "2 refused decisions in the log"),
        ("hanging-store", "hanging_store", {"responses with 503": 0}, "no response had status 503"),
        (
            "hanging-store",
            "hanging_store",
            {"until health has status 503, seconds": 5.1},
            "until health has status 503, seconds: 5.1, above 5",
        ),
        (
            "hanging-store",
            "hanging_store",
            {"slowest response of live, seconds": 0.6},
            "slowest response of live, seconds: 0.6, above 0.5",
        ),
        (
            "hanging-store",
            "hanging_store",
            {"until the process ends after SIGTERM, seconds": 7.1},
            "until the process ends after SIGTERM, seconds: 7.1, above 7",
        ),
        ("clock-steps", "clock_steps", {"errors": {"500": 1}}, "errors: {'500': 1}"),
        (
            "clock-steps",
            "clock_steps",
            {"decisions without a default reward": 3},
            "3 decisions without a default reward",
        ),
        (
            "restart",
            "restart",
            {"start without a snapshot, seconds": 8.1},
            "start without a snapshot, seconds: 8.1, above 8",
        ),
        ("restart", "restart", {"start with a snapshot, seconds": 3.1}, "start with a snapshot, seconds: 3.1, above 3"),
        (
            "restart",
            "restart",
            {"events replayed per second": 99_999},
            "99999 events replayed per second, below 100000",
        ),
        ("restart", "snapshots", {"snapshots": 0}, "the service wrote no snapshot"),
        ("restart", "snapshots", {"errors": {"500": 1}}, "errors: {'500': 1}"),
        (
            "restart",
            "snapshots",
            {"blocked, milliseconds": 51.0},
            "a snapshot blocked requests for 51.0 ms, above 50 ms",
        ),
        ("throughput", "throughput", {"ratio": 0.44}, "ratio 0.44 is below 0.45"),
        ("throughput", "throughput", {"ratio to LOCB": 0.79}, "the throughput is 0.79 of that with LOCB, below 0.8"),
        ("throughput", "throughput", {"errors": 7}, "7 errors"),
        (
            "throughput",
            "throughput",
            {"p99 at half load, milliseconds": 31.0},
            "p99 at half load is 31.0 ms, above 30 ms",
        ),
        ("log-size", "log_size", {"bytes per decision": 1_201}, "1201 bytes per decision, above 1200"),
        ("hostile", "hostile_clients", {"tokens checked": 101}, "101 unknown tokens checked, above 100"),
        ("hostile", "hostile_clients", {"failed": 3}, "3 requests of other clients failed"),
        ("hostile", "hostile_clients", {"requests of other clients": 0}, "no request of another client"),
        (
            "hostile",
            "hostile_clients",
            {"slowest, milliseconds": 501.0},
            "a request took 501.0 ms, above 500 ms",
        ),
        (
            "hostile",
            "hostile_clients",
            {"memory grown, MB": 201.0},
            "the memory grew by 201.0 MB, above 200 MB",
        ),
        ("hostile", "hostile_clients", {"failed erasures": 1}, "1 failed erasures"),
        ("hostile", "hostile_clients", {"erasures": 0}, "no erasures"),
        (
            "hostile",
            "hostile_clients",
            {"slowest erasure, seconds": 10.5},
            "slowest erasure, seconds: 10.5, above 10",
        ),
        (
            "hostile",
            "hostile_clients",
            {"erasures": 1, "slowest, milliseconds": 2001.0},
            "a request took 2001.0 ms, above 2000 ms",
        ),
        ("hostile", "hostile_clients", {"forged requests not refused": 1}, "1 forged requests not refused"),
        ("dashboard", "dashboard", {"map: chart, seconds": 2.1}, "map: chart, seconds: 2.1, above 2"),
        ("dashboard", "dashboard", {"CPU of the pages, %": 2.5}, "CPU of the pages is 2.5%, above 2%"),
        *(
            ("loop-blocks", "loop_blocks", {name: limit + 0.1}, f"{name}: {limit + 0.1}, above {limit}")
            for name, limit in (
                ("GET /v1/clusters: CPU time", 5),
                ("GET /v1/clusters: elapsed time", 20),
                ("POST /v1/recommend, 1,000 arms: CPU time", 20),
                ("POST /v1/recommend, 1,000 arms: elapsed time", 20),
                ("DELETE /v1/users/{user}: CPU time", 20),
                ("DELETE /v1/users/{user}: elapsed time", 20),
            )
        ),
        ("histories", "histories", {"histories with violations": {"lost reward": 2}}, "2 with lost reward"),
        ("histories", "histories", {"requests acknowledged": 0}, "no acknowledged requests"),
        ("soak", "soak", {"errors": {"503": 2}}, "errors: {'503': 2}"),
        ("cost", "soak", {"errors": {"503": 2}}, "errors: {'503': 2}"),
        ("soak", "soak", {"decisions": 989}, "only 989 of 1000 decisions"),
        ("soak", "soak", {"growth of the memory, %": 5.1}, "the memory grew by 5.1%, above 5%"),
        (
            "soak",
            "soak",
            {"growth of the CPU per decision, %": 15.1},
            "the CPU per decision grew by 15.1%, above 15%",
        ),
        (
            "soak",
            "soak",
            {"per minute": [{"minute": minute, "p99": p99} for minute, p99 in ((1, 31.0), (2, 30.0), (3, 99.0))]},
            "p99 is above 30 ms in these minutes: 1, 3",
        ),
        ("loop-blocks", "loop_blocks", {"users": 99_999}, "99999 users, below 100000"),
    ],
)
def test_figure_outside_its_limit_fails(
    part: str, name: str, change: dict[str, Any], failure: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status, results = run(monkeypatch, tmp_path, part, **{name: change})
    assert status == 1
    assert {failure for result in results.values() for failure in result["failures"]} == {failure}


@pytest.mark.parametrize(("cost", "failing"), [(0.36, ["1200"]), (0.51, ["600", "1200"])])
def test_cost_has_a_limit_per_rate(
    cost: float, failing: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change = {"CPU per decision and reward, milliseconds": cost}
    status, results = run(monkeypatch, tmp_path, "cost", soak=change)
    assert status == 1
    rates = [title.split()[3] for title, result in results.items() if result["failures"]]
    assert rates == failing * 2  # for each policy


def test_nothing_tested_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def skip(_: argparse.Namespace) -> program.Results:
        yield from ()

    monkeypatch.setitem(program.PARTS, "kill", skip)
    status, results = run(monkeypatch, tmp_path, "kill")
    assert (status, results) == (1, {})
    assert capsys.readouterr().out.endswith("No test ran.\n")
