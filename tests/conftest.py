"""Test configuration: cache directories for compiled kernels and other data, and the summary of skipped tests."""

import os
import re
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".kernel_cache"

# A shell that runs the tests in the background ignores SIGINT. Programs that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of the user, such as the address of a store, must not reach the tests. The cache is separate from that of the
# user, but shared by all test runs, because building the chart library takes time.
for name in [name for name in os.environ if name.startswith("LOCB_")]:
    del os.environ[name]
os.environ["LOCB_CACHE"] = str(CACHE / "locb")

os.environ.setdefault("LOCB_QUIET", "1")  # tests of standard error do not depend on what is compiled

os.environ.setdefault("NUMBA_CACHE_DIR", str(CACHE))

# A deadline per example fails on a busy machine.
settings.register_profile("without-deadline", deadline=None)
settings.load_profile("without-deadline")

# The start of a reason to skip a test: name of the missing program and the command that installs it.
MISSING_PROGRAM = re.compile(r"Skipped: (\S+ is not installed: run .*)")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, None, None]:
    """Report a missing program in one line with the number of skipped tests, instead of one line per test."""
    skipped = terminalreporter.stats.get("skipped", [])
    missing = {id(report): found[1] for report in skipped if (found := MISSING_PROGRAM.match(report.longrepr[2]))}
    terminalreporter.stats["skipped"] = [report for report in skipped if id(report) not in missing]
    yield
    for reason, count in Counter(missing.values()).items():
        terminalreporter.write_line(f"SKIPPED [{count}] {reason}", yellow=True)
    terminalreporter.stats["skipped"] = skipped


@pytest.fixture
def dask_address() -> Iterator[str]:
    """Address of a local cluster with two worker processes."""
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, host="127.0.0.1"
    ) as cluster:
        yield cluster.scheduler_address
