"""Memory of ``locb.Log.read``, ``locb.evaluate`` and ``locb.tune`` on generated logs.

Each decision offers 10 items of a catalogue, and has a user id, a propensity, a reward and a time. The columns x0 to x9
describe the chosen item. Rows are not in the order of time. Each log is read in a new process. The peak is that of
anonymous memory (``RssAnon`` in ``/proc``), without pages of files, which the operating system can write back and free.
The figures per row are without the memory of the process before it reads the log.

``python benchmarks/data/log_memory.py --rows 1000000 --rows 10000000 --format csv``
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from timing import print_table

import locb
from locb.common.arrays import Floats

CHUNK = 1_000_000  # rows per file
ITEMS, ARMS, DIM, USER_ROWS = 200, 10, 10, 100
FEATURES = [f"x{number}" for number in range(DIM)]


def write_log(folder: Path, rows: int, suffix: str, lists: int, rng: np.random.Generator) -> None:
    """Write a log with ``rows`` rows. It has ``lists`` distinct lists of items; 0 means a new list in each row."""
    items: Floats = rng.standard_normal((ITEMS, DIM)).round(3)
    shared = draw_lists(lists, rng)
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        offered = shared[rng.integers(lists, size=count)] if lists else draw_lists(count, rng)
        chosen = offered[np.arange(count), rng.integers(ARMS, size=count)]
        columns: dict[str, Any] = {
            "user": pl.format("user-{}", pl.Series(rng.integers(max(rows // USER_ROWS, 10), size=count))),
            "arms": pl.concat_str([pl.format("item{}", pl.Series(column)) for column in offered.T], separator="|"),
            "chosen": pl.format("item{}", pl.Series(chosen)),
            "propensity": pl.lit(1 / ARMS),
            "reward": pl.Series((rng.random(count) < 0.1 + 0.002 * chosen).astype(np.int8)),
            "time": pl.Series(1.7e9 + rng.permutation(count) + start),
        }
        columns |= {name: pl.Series(items[chosen, number]) for number, name in enumerate(FEATURES)}
        frame = pl.select(**columns)
        path = folder / f"part{start // CHUNK:05d}.{suffix}"
        frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)


def draw_lists(count: int, rng: np.random.Generator) -> Any:
    """Return lists of distinct items, (count, 10), in the order of a circle of items."""
    return (rng.integers(ITEMS, size=(count, 1)) + np.cumsum(rng.integers(1, ITEMS // ARMS, (count, ARMS)), 1)) % ITEMS


def anonymous() -> float:
    """Return the anonymous memory of the process in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


def measure(step: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result of a step, its peak of anonymous memory in MiB, and its seconds."""
    peak, done = [anonymous()], threading.Event()

    def poll() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], anonymous())

    thread = threading.Thread(target=poll)
    thread.start()
    started = time.perf_counter()
    result = step()
    done.set()
    thread.join()
    return result, max(peak[0], anonymous()), time.perf_counter() - started


def run(folder: str, rows: int, policies: list[str], queue: Any) -> None:
    """Read a log, evaluate and tune policies on it, and put a table row of the figures of each step."""
    options: dict[str, Any] = {"features": FEATURES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", locb.LogWarning)
        small = locb.Log.read({"user": ["a", "b"] * 50, "arm": ["x", "y"] * 50, "reward": [0, 1] * 50}, propensity=0.5)
        locb.evaluate(small, policies)
        before = anonymous()
        log, peak, seconds = measure(lambda: locb.Log.read(folder, **options))
        queue.put([f"{rows:,}", "Log.read", *figures(peak, before, rows, seconds)])
        held = anonymous()
        queue.put([f"{rows:,}", "log in memory", *figures(held, before, rows, 0.0)])
        _, peak, seconds = measure(lambda: locb.evaluate(log, policies, replays=5))
        queue.put([f"{rows:,}", "evaluate", *figures(peak, before, rows, seconds)])
        _, peak, seconds = measure(lambda: locb.tune(log, policies, grid={}, replays=1))
        queue.put([f"{rows:,}", "tune", *figures(peak, before, rows, seconds)])
    queue.put(None)


def figures(peak: float, before: float, rows: int, seconds: float) -> list[str]:
    """Return the memory in GiB, the bytes per row, and the seconds, as text."""
    return [f"{peak / 1024:.2f}", f"{(peak - before) * 2**20 / rows:.0f}", f"{seconds:.1f}"]


def main() -> None:
    """Write logs, and print the figures of each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--format", choices=("csv", "parquet"), default="parquet")
    parser.add_argument("--lists", type=int, default=1000, help="distinct lists of items; 0: a new list in each row")
    parser.add_argument("--policy", action="append", help="policy to evaluate (default: first, random)")
    parser.add_argument("--folder", help="parent of the temporary folder of the log")
    arguments = parser.parse_args()
    table = []
    for rows in arguments.rows or [1_000_000]:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            write_log(Path(folder), rows, arguments.format, arguments.lists, np.random.default_rng(1))
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=run, args=(folder, rows, arguments.policy or ["first", "random"], queue))
            process.start()
            table += list(iter(queue.get, None))
            process.join()
    print_table("Anonymous memory of logs", ("rows", "step", "peak GiB", "bytes per row", "seconds"), table)


if __name__ == "__main__":
    main()
