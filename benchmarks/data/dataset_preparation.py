"""Time and memory to prepare data sets of the original sizes and formats, and time to sample rounds from records.

The files are generated in a temporary folder, about 13 GB with --scale 1. Their users and items have a skewed
popularity, similar to the original data.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from timing import best_of, print_table

import locb

REVIEW_TEXT = "the food was great and service quick we will be back soon but parking is hard to find on a weekend night"


def sample_skewed(rng: np.random.Generator, n: int, count: int, power: float) -> Any:
    """Return ``count`` random indices from 0 to n − 1. Index r has a probability proportional to (r + 1)^−power."""
    weight = np.arange(1, n + 1, dtype=float) ** -power
    return np.searchsorted(np.cumsum(weight / weight.sum()), rng.random(count)).clip(max=n - 1)


def make_movielens(folder: Path, scale: float) -> None:
    """Write ratings.csv and movies.csv in the format of MovieLens. ``scale`` 1 has the size of ml-25m."""
    rng = np.random.default_rng(1)
    ratings, users, movies = int(25_000_000 * scale), int(162_000 * scale), int(59_000 * scale)
    n_samples = int(1.5 * ratings)  # more than needed, because duplicate pairs of user and movie are dropped
    pairs = np.unique(sample_skewed(rng, users, n_samples, 0.5) * movies + sample_skewed(rng, movies, n_samples, 0.7))
    pairs = np.sort(rng.choice(pairs, min(ratings, len(pairs)), replace=False, shuffle=False))
    stars = rng.integers(1, 11, len(pairs)) / 2
    frame = {"userId": pairs // movies + 1, "movieId": pairs % movies + 1, "rating": stars}
    table = pl.DataFrame(frame).with_columns(timestamp=pl.lit(1147868817))
    table.write_csv(folder / "ratings.csv", float_precision=1)
    genres = ["Action", "Comedy", "Drama", "Horror", "Romance", "Sci-Fi", "Thriller", "War"]
    lines = [f'{m},"Film {m}, The (1999)",{genres[m % 8]}|{genres[m % 5]}\n' for m in range(1, movies + 1)]
    (folder / "movies.csv").write_text("movieId,title,genres\n" + "".join(lines))
    print(f"{len(pairs):,} ratings")


def make_yelp(folder: Path, scale: float) -> None:
    """Write the reviews and businesses in the format of Yelp. ``scale`` 1 has 4,700,000 reviews."""
    rng = np.random.default_rng(2)
    reviews, users, businesses = int(4_700_000 * scale), int(1_180_000 * scale), int(157_000 * scale)
    reviewers = sample_skewed(rng, users, reviews, 0.7).tolist()
    reviewed = sample_skewed(rng, businesses, reviews, 0.7).tolist()
    stars = rng.integers(1, 6, reviews).tolist()
    texts = [json.dumps(" ".join(rng.choice(REVIEW_TEXT.split(), int(rng.integers(20, 220))))) for _ in range(500)]
    with (folder / "yelp_academic_dataset_review.json").open("w") as out:
        for number, (user, business, star) in enumerate(zip(reviewers, reviewed, stars, strict=True)):
            out.write(
                f'{{"review_id":"r{number:021d}","user_id":"u{user:021d}","business_id":"b{business:021d}",'
                f'"stars":{star}.0,"useful":0,"funny":0,"cool":0,"text":{texts[number % 500]},'
                '"date":"2016-03-09 00:00:00"}\n'
            )
    categories = ["Restaurants", "Mexican", "Bars", "Coffee & Tea", "Sushi Bars", "Pizza", "Breakfast & Brunch"]
    with (folder / "yelp_academic_dataset_business.json").open("w") as out:
        for number in range(businesses):
            wifi = "u'free'" if number % 2 else "u'no'"
            record = {
                "business_id": f"b{number:021d}",
                "name": f"Business {number}",
                "categories": f"{categories[number % 7]}, {categories[number % 3]}",
                "attributes": {"WiFi": wifi, "RestaurantsPriceRange2": str(number % 4)},
            }
            out.write(json.dumps(record) + "\n")


def yahoo_lines(visits: int) -> Iterator[str]:
    """Yield the lines of a log in the format of Yahoo R6A, one per visit."""
    rng = np.random.default_rng(3)

    def format_features(values: Any) -> str:
        return " ".join(f"{index}:{value:.6f}" for index, value in enumerate(values, 2)) + " 1:1.000000"

    articles = [109_000 + a for a in range(60)]
    blocks = {a: f" |{a} {format_features(rng.random(5))}" for a in articles}
    visitors = [format_features(v) for v in rng.dirichlet(np.ones(5) / 2, size=20_000)]
    for start in range(0, visits, 10_000):
        offered = rng.choice(articles, 20, replace=False).tolist()
        text = "".join(blocks[a] for a in offered)
        count = min(10_000, visits - start)
        shown, visitor_ids = rng.integers(20, size=count).tolist(), rng.integers(20_000, size=count).tolist()
        clicks = (rng.random(count) < 0.04).astype(int).tolist()
        for arm, visitor, click in zip(shown, visitor_ids, clicks, strict=True):
            yield f"12411609{start % 100:02d} {offered[arm]} {click} |user {visitors[visitor]}{text}\n"


def make_yahoo(folder: Path, scale: float) -> int:
    """Write a compressed Yahoo log and return its uncompressed size in bytes. ``scale`` 1 has 4,500,000 visits."""
    size = 0
    with gzip.open(folder / "ydata-fp-td-clicks-v1_0.20090501.gz", "wt", compresslevel=1) as out:
        for line in yahoo_lines(int(4_500_000 * scale)):
            size += len(line)
            out.write(line)
    return size


def prepare(name: str, path: Path, cache: Path) -> tuple[float, float]:
    """Load a data set in a new process, and return the time in seconds and the peak memory in GiB."""
    # VmHWM is the peak of the process itself. ru_maxrss is not used, because it starts at the size of the parent.
    code = (
        "import sys, time, warnings, locb.datasets as d; warnings.simplefilter('ignore'); t = time.perf_counter();"
        "getattr(d, sys.argv[1])(sys.argv[2], cache_dir=sys.argv[3]); print(time.perf_counter() - t);"
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, name, str(path), str(cache)]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(peak) / 2**20


def measure_sampling() -> list[tuple[str, str]]:
    """Return table rows: the times to sample 1,000,000 rounds of 10 arms from records, and to play these rounds.

    The policy LinUCB-IND plays the rounds.
    """
    rng = np.random.default_rng(5)
    users, items = sample_skewed(rng, 600, 300_000, 0.6), sample_skewed(rng, 9_000, 300_000, 0.8)
    features = rng.standard_normal((9_000, 10)) / 4
    env = locb.Interactions(users, items, rng.random(300_000) < 0.5, features)
    count = 1_000_000

    def play() -> float:
        policy = locb.LinUCB(n_users=env.n_users, dim=env.dim)
        policy.prepare()
        seconds = 0.0
        for block in env.stream(count, seed=1):
            started = time.perf_counter()
            policy.play(block)
            seconds += time.perf_counter() - started
        return seconds

    sampled = best_of(lambda: lambda: sum(len(block) for block in env.stream(count, seed=1)), repetitions=3)
    played = min(play() for _ in range(3))
    return [
        ("sampled from records", f"{sampled:.2f} s"),
        ("played by LinUCB-IND", f"{played:.2f} s"),
        ("ratio", f"{sampled / played:.2f}"),
    ]


def main() -> None:
    """Measure the selected data sets and the sampling of rounds, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the original sizes (default: 1)")
    parser.add_argument(
        "--only", choices=("movielens", "yelp", "yahoo", "rounds"), help="measure one part only (default: all parts)"
    )
    options = parser.parse_args()
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="locb-bench-"))
    try:
        for name, make in (("movielens", make_movielens), ("yelp", make_yelp), ("yahoo", make_yahoo)):
            if options.only not in (None, name):
                continue
            source = folder / name
            source.mkdir()
            uncompressed = make(source, options.scale)
            size = sum(file.stat().st_size for file in source.iterdir()) / 1e9
            first, memory = prepare(name, source, folder / "cache")
            cached, _ = prepare(name, source, folder / "cache")
            speed = (
                f"{uncompressed / 1e6 / first:.0f} MB/s uncompressed"
                if uncompressed
                else f"{1e3 * size / first:.0f} MB/s"
            )
            rows.append((name, f"{size:.2f} GB", f"{first:.1f} s", f"{memory:.2f} GiB", speed, f"{cached:.2f} s"))
            print(" ".join(rows[-1]), flush=True)
            shutil.rmtree(source)
    finally:
        shutil.rmtree(folder)
    if rows:
        headings = ("data", "files", "first preparation", "peak memory", "speed", "from the cache")
        print_table(f"data sets at {options.scale:g} of the original size, {os.cpu_count()} cores", headings, rows)
    if options.only in (None, "rounds"):
        print_table("1,000,000 rounds of 10 arms", ("", ""), measure_sampling())


if __name__ == "__main__":
    main()
