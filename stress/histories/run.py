"""Run of histories: start a service and clients, inject the faults of a plan, and check the log afterwards."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sqlalchemy import make_url

from stress.histories.checker import Violation, find_violations
from stress.histories.clients import Clients
from stress.histories.faults import Faults, second_service_store
from stress.histories.forks import ForkedService, Forks
from stress.histories.log_content import count_waiting, read_log
from stress.histories.plan import Plan, draw_plan
from stress.histories.proxy import Proxy
from stress.histories.record import History, Logged
from stress.stores import StoreLocation

DEFAULTS_SECONDS = 20.0  # time in which even a busy machine must learn at least one of the default rewards that are due
OUTPUT_CHARACTERS = 3_000  # end of the output of the service that is reported with a violation


def run_history(forks: Forks, location: StoreLocation, plan: Plan) -> tuple[History, Logged, list[Violation]]:
    """Run a history on an empty store, and return the record of the clients, the log and the violations."""
    folder = location.folder
    second = folder.with_name(f"{folder.name}-second")
    options = list(plan.options)
    failures: list[Violation] = []
    with (
        _proxy(location) as proxy,
        ForkedService(forks, "A", folder, options, _address(location, proxy)) as service,
        ForkedService(forks, "B", second, options, second_service_store(location)) as other,
    ):
        service.start()
        clients = Clients(plan, [service])
        faults = Faults(location, service, other, clients, proxy)
        try:
            failures += _inject(faults, service, plan)
        finally:
            requests = clients.stop()
        history = History(requests, plan.default_reward, effects=faults.effects)
        if not failures:
            if plan.default_reward is not None:
                wait_for_defaults(location)
                history.settled = True
            status = service.stop()
            if status:
                failures.append(Violation("exit", f"status {status} after SIGTERM: {service.output()[-1000:]}"))
    logged = read_log(location)
    return history, logged, failures + find_violations(history, logged)


def _proxy(location: StoreLocation) -> AbstractContextManager[Proxy | None]:
    return nullcontext() if location.cluster is None else Proxy(location.cluster.port)


def _address(location: StoreLocation, proxy: Proxy | None) -> str | None:
    """Return the address under which the service opens the store."""
    if location.url is None or proxy is None:
        return location.url
    return make_url(location.url).set(port=proxy.port).render_as_string(hide_password=False)


def _inject(faults: Faults, service: ForkedService, plan: Plan) -> list[Violation]:
    """Inject all faults; a fault after which the service does not become ready is a violation."""
    end = time.monotonic() + plan.seconds
    for fault in plan.faults:
        time.sleep(fault.pause)
        try:
            faults.inject(fault)
        except (ChildProcessError, TimeoutError) as error:
            service.signal(signal.SIGKILL)
            return [Violation("exit", f"fault {fault.name!r}: {error}")]
    time.sleep(max(0.0, end - time.monotonic()))
    return []


def wait_for_defaults(location: StoreLocation) -> None:
    """Wait until no decision waits for a default reward, or until the number of waiting decisions stops decreasing."""
    waiting, end = count_waiting(location), time.monotonic() + DEFAULTS_SECONDS
    while waiting and time.monotonic() < end:
        time.sleep(0.05)
        remaining = count_waiting(location)
        if remaining < waiting:
            waiting, end = remaining, time.monotonic() + DEFAULTS_SECONDS


def histories(
    kind: str, seeds: Iterable[int], new_location: Callable[[], StoreLocation], report: Callable[[str], None]
) -> dict[str, Any]:
    """Run one history per random seed, and return the numbers of requests, faults and violations.

    Parameters
    ----------
    kind : str
        Kind of the store.
    seeds : iterable of int
        Random seeds of the histories.
    new_location : callable
        Returns an empty store.
    report : callable
        Called with a line for each history with violations.
    """
    requests, faults, effects, failed = (Counter[str]() for _ in range(4))
    count, events, slowest, start = 0, 0, 0.0, time.perf_counter()
    with Forks() as forks:
        for seed in seeds:
            plan = draw_plan(kind, seed)
            began = time.perf_counter()
            location = new_location()
            history, logged, violations = run_history(forks, location, plan)
            count += 1
            slowest = max(slowest, time.perf_counter() - began)
            events += len(logged.decisions) + len(logged.observations)
            requests.update(request.outcome for request in history.requests)
            effects.update(history.effects)
            faults.update(fault.name for fault in plan.faults)
            if violations:
                names = [fault.name for fault in plan.faults]
                report(f"seed {seed}, faults {names}: {len(violations)} violations")
                report(f"  repeat: python -m stress histories --store {kind} --seed {seed} --histories 1")
                for violation in violations[:10]:
                    report(f"  {violation.kind}: {violation.found}")
                output = location.folder.with_name(f"{location.folder.name}.log").read_text(errors="replace")
                report(f"  end of the output of the service: {output[-OUTPUT_CHARACTERS:]}")
                failed.update({violation.kind for violation in violations})
    return {
        "histories": count,
        "seconds per history": round((time.perf_counter() - start) / max(count, 1), 2),
        "slowest history, seconds": round(slowest, 2),
        "requests": sum(requests.values()),
        "requests acknowledged": requests["acknowledged"],
        "requests refused": requests["refused"],
        "requests with an unknown outcome": requests["unknown"],
        "decisions and observations": events,
        "faults": dict(sorted(faults.items())),
        "effects": dict(sorted(effects.items())),
        "histories with violations": dict(sorted(failed.items())),
    }
