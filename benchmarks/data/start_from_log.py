"""Time and disk space of ``locb serve --start-from`` on generated logs, for LOCB and ELOC, with SQLite."""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from timing import print_table

from locb.service.config import ServiceConfig
from locb.service.core.model import new_model, warm_up
from locb.service.core.service import Service

ARMS, GROUPS = 200, 50


def write_log(path: Path, rows: int, users: int, dim: int) -> None:
    """Write a log of decisions between one arm each, with clicks as rewards."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((ARMS, dim))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    preferences = rng.standard_normal((GROUPS, dim))
    user, arm = rng.integers(0, users, rows), rng.integers(0, ARMS, rows)
    click = rng.random(rows) < 1 / (1 + np.exp(-(features[arm] * preferences[user % GROUPS]).sum(axis=1)))
    offers = pl.Series([f'[{{"id": "a{number}", "features": {row.tolist()}}}]' for number, row in enumerate(features)])
    table = {
        "user": pl.Series(user).cast(pl.String),
        "chosen": "a" + pl.Series(arm).cast(pl.String),
        "arms": offers.gather(arm),
        "reward": click.astype(float),
        "time": 1.7e9 + np.arange(rows),
    }
    pl.DataFrame(table).write_parquet(path)


def main() -> None:
    """Print a table with one row per number of features and policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--dim", type=int, nargs="+", default=[16], help="numbers of features per arm")
    arguments = parser.parse_args()
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for dim in arguments.dim:
            log = Path(folder) / f"{dim}.parquet"
            write_log(log, arguments.rows, arguments.users, dim)
            measured += [measure(Path(folder) / f"{policy}-{dim}", log, policy, dim) for policy in ("locb", "eloc")]
    title = f"Start from a log of {arguments.rows:,} rows and {arguments.users:,} users"
    columns = ["features", "policy", "rows per second", "rows per CPU second", "bytes per row", "GiB"]
    print_table(title, columns, measured)


def measure(state: Path, log: Path, policy: str, dim: int) -> list[str]:
    """Start a service from a log, and return a row of the table."""
    warm_up(new_model(policy, dim, {}))
    start, cpu = time.perf_counter(), time.process_time()
    service = Service(ServiceConfig(state, policy=policy, dim=dim, start_from=str(log)))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    rows = service.log.counts(service.log.last_seq())[1]
    service.log.close()
    size = sum(file.stat().st_size for file in state.glob("log.db*"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [f"{dim}", policy, f"{rows / seconds:,.0f}", f"{rows / cpu:,.0f}", f"{size / rows:.0f}", f"{memory:.1f}"]


if __name__ == "__main__":
    main()
