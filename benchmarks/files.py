"""Saving and loading LOCB with a million users, against writing and reading as many bytes plainly."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from timing import show

import locb

USERS, FEATURES, SEEDS, GOES = 1_000_000, 10, 100, 3
CHUNK = 1 << 22


def write_plainly(path: Path, source: Path) -> None:
    with source.open("rb") as file, path.open("wb") as copy:
        while part := file.read(CHUNK):
            copy.write(part)
        os.fsync(copy.fileno())


def read_plainly(path: Path) -> bytearray:
    """Into one buffer, as a load must have its arrays somewhere."""
    room = bytearray(path.stat().st_size)
    with path.open("rb") as file:
        file.readinto(room)
    return room


def fastest(job: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(GOES):
        began = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    rounds = locb.Synthetic(n_users=USERS, raw_dim=FEATURES - 1).rounds(50_000)
    small = locb.LOCB(n_users=SEEDS, dim=FEATURES, n_seeds=SEEDS, bonus="pooled")
    policy = locb.LOCB(n_users=USERS, dim=FEATURES, n_seeds=SEEDS, bonus="pooled")
    policy.play(rounds)
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "policy.locb", Path(folder) / "plain"
        small.save(path)
        locb.load(path)  # compiles
        taken = {"save": fastest(lambda: policy.save(path)), "load": fastest(lambda: locb.load(path))}
        plain = {"save": fastest(lambda: write_plainly(other, path)), "load": fastest(lambda: read_plainly(path))}
        size = path.stat().st_size / 2**20
    rows = [(job, f"{taken[job]:.2f}", f"{plain[job]:.2f}", f"{size / taken[job]:,.0f}") for job in taken]
    show(f"LOCB, {USERS:,} users, {size:,.0f} MiB in a file", ("", "s", "s, the bytes alone", "MiB/s"), rows)


if __name__ == "__main__":
    main()
