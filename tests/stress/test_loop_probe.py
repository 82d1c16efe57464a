"""The probe of the event loop: what it counts as CPU time and as elapsed time of the longest iteration."""

import asyncio
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable

from stress.reading.probed_service import LoopProbe

CPU_SECONDS = 0.05
SLEEP_SECONDS = 0.02
keep_interpreter_lock = ctypes.PyDLL(None)  # functions that are called without releasing the global interpreter lock


def compute() -> None:
    end = time.thread_time() + CPU_SECONDS
    while time.thread_time() < end:
        pass


def wait_without_cpu() -> None:
    time.sleep(SLEEP_SECONDS)


def wait_with_interpreter_lock() -> None:
    keep_interpreter_lock.usleep(round(1e6 * SLEEP_SECONDS))


def measure(work: Callable[[], None], *, in_thread: bool = False) -> tuple[float, float]:
    """Return the CPU time and the elapsed time of the longest iteration of an event loop, in seconds."""

    async def main() -> tuple[float, float]:
        probe = LoopProbe()
        probe.start()
        await asyncio.sleep(0)
        if in_thread:
            await asyncio.to_thread(work)
        else:
            work()
        await asyncio.sleep(0)
        cpu, elapsed = probe.stop()
        return cpu / 1000.0, elapsed / 1000.0

    return asyncio.run(main())


def test_computing_handler_uses_cpu_time() -> None:
    cpu, elapsed = measure(compute)
    assert cpu >= CPU_SECONDS
    assert elapsed > 0.9 * CPU_SECONDS


def test_waiting_handler_lets_time_elapse() -> None:
    cpu, elapsed = measure(wait_without_cpu)
    assert cpu < SLEEP_SECONDS / 2
    assert elapsed > 0.9 * SLEEP_SECONDS


def test_thread_with_the_interpreter_lock_uses_no_cpu_time_of_the_loop() -> None:
    for _ in range(20):  # on a busy machine, the threads also wait for a CPU, which does not count
        cpu, elapsed = measure(wait_with_interpreter_lock, in_thread=True)
        assert cpu < SLEEP_SECONDS / 2
        if elapsed > SLEEP_SECONDS / 2:
            break
    assert elapsed > SLEEP_SECONDS / 2


def test_computing_thread_uses_no_cpu_time_of_the_loop() -> None:
    cpu, _ = measure(compute, in_thread=True)
    assert cpu < CPU_SECONDS / 2


def test_other_processes_do_not_count() -> None:
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})  # the other process inherits it, so that both share one CPU
    try:
        with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=-1) as other:
            assert other.stdout is not None
            other.stdout.readline()
            start = time.perf_counter()
            cpu, elapsed = measure(compute)
            wall = time.perf_counter() - start
            other.kill()
    finally:
        os.sched_setaffinity(0, cpus)
    assert cpu >= CPU_SECONDS
    assert elapsed < cpu + (wall - cpu) / 2
