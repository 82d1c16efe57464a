"""Time to save and load LOCB with a million users, compared with writing and reading the same number of bytes."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from timing import print_table

import locb

USERS, FEATURES, SEEDS, REPETITIONS = 1_000_000, 10, 100, 3
CHUNK = 1 << 22


def copy_bytes(path: Path, source: Path) -> None:
    """Copy the file ``source`` to ``path`` and wait until it is on disk."""
    with source.open("rb") as file, path.open("wb") as copy:
        while chunk := file.read(CHUNK):
            copy.write(chunk)
        os.fsync(copy.fileno())


def read_bytes(path: Path) -> bytearray:
    """Read a file into one buffer of its size, because loading a policy allocates the same amount of memory."""
    buffer = bytearray(path.stat().st_size)
    with path.open("rb") as file:
        file.readinto(buffer)
    return buffer


def fastest(job: Callable[[], object]) -> float:
    """Return the time in seconds of the fastest of 3 calls of ``job``."""
    best = float("inf")
    for _ in range(REPETITIONS):
        started = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    """Measure saving, loading, writing and reading, and print the table."""
    rounds = locb.Synthetic(n_users=USERS, raw_dim=FEATURES - 1).rounds(50_000)
    small = locb.LOCB(n_users=SEEDS, dim=FEATURES, n_seeds=SEEDS, bonus="pooled")
    policy = locb.LOCB(n_users=USERS, dim=FEATURES, n_seeds=SEEDS, bonus="pooled")
    policy.play(rounds)
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "policy.locb", Path(folder) / "bytes"
        small.save(path)
        locb.load(path)  # compile the kernels before the timing
        seconds = {"save": fastest(lambda: policy.save(path)), "load": fastest(lambda: locb.load(path))}
        raw = {"save": fastest(lambda: copy_bytes(other, path)), "load": fastest(lambda: read_bytes(path))}
        size = path.stat().st_size / 2**20
    rows = [(job, f"{seconds[job]:.2f}", f"{raw[job]:.2f}", f"{size / seconds[job]:,.0f}") for job in seconds]
    print_table(f"LOCB, {USERS:,} users, a file of {size:,.0f} MiB", ("", "s", "s, only the bytes", "MiB/s"), rows)


if __name__ == "__main__":
    main()
