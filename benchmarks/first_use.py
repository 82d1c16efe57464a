"""Time until the first result of each policy with an empty cache of compiled code.

Every policy runs in a new process. The CPU time depends less on other processes than the elapsed time.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from timing import print_table

POLICIES = ("locb", "eloc", "sclub", "club", "linucb-ind")


def measure(name: str) -> None:
    """Print elapsed and CPU time until the import of locb, the first ``recommend``, ``update`` and ``play``."""
    started, used = time.perf_counter(), _cpu_seconds()
    import numpy as np

    import locb

    times = [(time.perf_counter() - started, _cpu_seconds() - used)]
    contexts = np.random.default_rng(0).normal(size=(10, 10))
    rounds = locb.Rounds(np.zeros(1, np.int64), contexts[None], np.zeros((1, 10)))
    policies = []

    def recommend() -> None:
        policies.append(locb.make_policy(name, n_users=100, dim=10))
        policies[0].recommend(0, contexts)

    calls: list[Callable[[], object]] = [
        recommend,
        lambda: policies[0].update(0, contexts[0], 1.0),
        lambda: policies[0].play(rounds),
    ]
    for call in calls:
        started, used = time.perf_counter(), _cpu_seconds()
        call()
        times.append((time.perf_counter() - started, _cpu_seconds() - used))
    print(*(number for pair in times for number in pair))


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure all policies and print the table."""
    rows, reference = [], 0.0
    for name in POLICIES:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "LOCB_QUIET": "1"}
            command = [sys.executable, __file__, name]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        numbers = [float(number) for number in done.stdout.split()]
        reference = reference or numbers[3]
        cells = [f"{elapsed:.1f} ({cpu:.1f})" for elapsed, cpu in zip(numbers[::2], numbers[1::2], strict=True)]
        rows.append((name, *cells, f"{numbers[3] / reference:.2f}"))
    headings = ("policy", "import", "recommend", "update", "play", "CPU time of recommend, × LOCB")
    print_table("first use with an empty cache: elapsed (CPU) seconds", headings, rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        main()
