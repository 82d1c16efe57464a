"""Time, memory and accuracy of ``locb.find_groups`` on generated logs.

The preference vectors of users are within 0.1 of the centre of their group, and the number of rows of a user has a
log-normal distribution. The accuracy is compared with that of a classifier that knows the centres of all groups and the
exact probabilities of rewards.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from timing import print_table

import locb
from locb.common.arrays import Floats, Ints

CHUNK = 1_000_000  # rows per file
MIN_DISTANCE = 0.35  # of the centres of two groups
KNOWN_ROWS = 100  # rows of a user from which the accuracy is measured


def draw_users(users: int, groups: int, dim: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return the preference vectors (users, dim) and the group of each user. The last entry of a vector is constant."""
    centres: list[Floats] = []
    while len(centres) < groups:
        centre = unit(rng.standard_normal((1, dim - 1)))[0]
        if all(np.linalg.norm(centre - other) > MIN_DISTANCE for other in centres):
            centres.append(centre)
    group = rng.choice(groups, size=users, p=rng.dirichlet(np.full(groups, 4.0)))
    step = rng.standard_normal((users, dim - 1))
    step *= (0.1 * rng.random(users) ** (1 / (dim - 1)) / np.linalg.norm(step, axis=1))[:, None]
    return with_constant(unit(np.array(centres)[group] + step)), group


def unit(rows: Floats) -> Floats:
    """Return rows with the norm √½."""
    scaled: Floats = rows * np.sqrt(0.5) / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def with_constant(rows: Floats) -> Floats:
    """Return rows with a last column √½."""
    return np.hstack([rows, np.full((len(rows), 1), np.sqrt(0.5))])


def write_log(folder: Path, theta: Floats, group: Ints, rows: int, rng: np.random.Generator) -> Floats:
    """Write a log as Parquet files, and return the log likelihood of each user for the centre of each group."""
    users, dim = theta.shape
    centres = np.array([theta[group == number].mean(axis=0) for number in range(group.max() + 1)])
    activity = np.cumsum(rng.lognormal(0.0, 1.0, size=users))
    evidence = np.zeros((users, len(centres)))
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        user = np.searchsorted(activity / activity[-1], rng.random(count)).clip(max=users - 1)
        x = with_constant(unit(rng.standard_normal((count, dim - 1))))
        reward = (rng.random(count) < (x * theta[user]).sum(axis=1)).astype(np.float64)
        frame = pl.DataFrame({"user": user, "reward": reward} | {f"x{column}": x[:, column] for column in range(dim)})
        frame.write_parquet(folder / f"part{start // CHUNK:05d}.parquet")
        chance = np.clip(x @ centres.T, 1e-9, 1.0 - 1e-9)
        logs = np.where(reward[:, None] > 0, np.log(chance), np.log1p(-chance))
        for number in range(len(centres)):
            evidence[:, number] += np.bincount(user, weights=logs[:, number], minlength=users)
    evidence += np.log(np.bincount(group, minlength=len(centres)) / users)
    return evidence


def accuracy(labels: Ints, group: Ints, known: Any) -> float:
    """Return the F1 score of the groups among the users who are known."""
    found = [np.flatnonzero(known & (labels == label)) for label in range(labels.max() + 1)]
    truth = [np.flatnonzero(known & (group == label)) for label in range(group.max() + 1)]
    return locb.match_clusters(found, [members for members in truth if members.size]).f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    theta, group = draw_users(options.users, options.groups, options.dim, rng)
    names = [f"x{column}" for column in range(options.dim)]
    with tempfile.TemporaryDirectory() as folder:
        evidence = write_log(Path(folder), theta, group, options.rows, rng)
        small = {"user": [1, 2], "reward": [0.0, 1.0], "x": [0.1, 0.2]}
        locb.find_groups(small, features=["x"], replicates=0)  # compiles the kernels
        before, cpu = time.perf_counter(), time.process_time()
        found = locb.find_groups(folder, features=names)
        seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    users = found.users["user"].to_numpy()
    labels, count = np.full(options.users, -1), np.zeros(options.users)
    labels[users], count[users] = found.users["group"].fill_null(-1).to_numpy(), found.users["rows"].to_numpy()
    known = count >= KNOWN_ROWS
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    headings = ["users", "rows", "seconds", "CPU seconds", "peak memory, GiB", "groups", "F1", "F1 with known centres"]
    row = [f"{len(users):,}", f"{options.rows:,}", f"{seconds:.1f}", f"{cpu:.1f}", f"{memory:.2f}"]
    row += [f"{found.groups.height} of {options.groups}", f"{accuracy(labels, group, known):.3f}"]
    print_table(
        "Groups of users in a log", headings, [[*row, f"{accuracy(evidence.argmax(axis=1), group, known):.3f}"]]
    )


if __name__ == "__main__":
    main()
