"""Preparing data of the real sizes, in the real formats: time, memory, and what a round from records costs.

Files are made by rule, skewed as in life, in a folder that is removed afterwards (some 13 GB with --scale 1).
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
from timing import best_of, show

import locb

WORDS = [
    "the",
    "food",
    "was",
    "great",
    "and",
    "service",
    "quick",
    "we",
    "will",
    "be",
    "back",
    "soon",
    "but",
    "parking",
    "is",
    "hard",
    "to",
    "find",
    "on",
    "a",
    "weekend",
    "night",
]


def skewed(rng: np.random.Generator, n: int, count: int, power: float) -> Any:
    """``count`` draws from n things, the r-th most popular in proportion to r^−power."""
    weight = np.arange(1, n + 1, dtype=float) ** -power
    return np.searchsorted(np.cumsum(weight / weight.sum()), rng.random(count)).clip(max=n - 1)


def make_movielens(folder: Path, scale: float) -> None:
    rng = np.random.default_rng(1)
    ratings, users, movies = int(25_000_000 * scale), int(162_000 * scale), int(59_000 * scale)
    drawn = int(1.5 * ratings)  # a user rates a movie once: what comes twice is dropped
    pairs = np.unique(skewed(rng, users, drawn, 0.5) * movies + skewed(rng, movies, drawn, 0.7))
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
    rng = np.random.default_rng(2)
    reviews, users, places = int(4_700_000 * scale), int(1_180_000 * scale), int(157_000 * scale)
    who, where = skewed(rng, users, reviews, 0.7).tolist(), skewed(rng, places, reviews, 0.7).tolist()
    stars = rng.integers(1, 6, reviews).tolist()
    texts = [json.dumps(" ".join(rng.choice(WORDS, int(rng.integers(20, 220))))) for _ in range(500)]
    with (folder / "yelp_academic_dataset_review.json").open("w") as out:
        for number, (user, place, star) in enumerate(zip(who, where, stars, strict=True)):
            out.write(
                f'{{"review_id":"r{number:021d}","user_id":"u{user:021d}","business_id":"b{place:021d}",'
                f'"stars":{star}.0,"useful":0,"funny":0,"cool":0,"text":{texts[number % 500]},'
                '"date":"2016-03-09 00:00:00"}\n'
            )
    kinds = ["Restaurants", "Mexican", "Bars", "Coffee & Tea", "Sushi Bars", "Pizza", "Breakfast & Brunch"]
    with (folder / "yelp_academic_dataset_business.json").open("w") as out:
        for place in range(places):
            business = {
                "business_id": f"b{place:021d}",
                "name": f"Place {place}",
                "categories": f"{kinds[place % 7]}, {kinds[place % 3]}",
                "attributes": {"WiFi": "u'free'" if place % 2 else "u'no'", "RestaurantsPriceRange2": str(place % 4)},
            }
            out.write(json.dumps(business) + "\n")


def yahoo_lines(visits: int) -> Iterator[str]:
    rng = np.random.default_rng(3)

    def features(values: Any) -> str:
        return " ".join(f"{place}:{value:.6f}" for place, value in enumerate(values, 2)) + " 1:1.000000"

    articles = [109_000 + a for a in range(60)]
    blocks = {a: f" |{a} {features(rng.random(5))}" for a in articles}
    visitors = [features(v) for v in rng.dirichlet(np.ones(5) / 2, size=20_000)]
    for start in range(0, visits, 10_000):
        offered = rng.choice(articles, 20, replace=False).tolist()
        text = "".join(blocks[a] for a in offered)
        count = min(10_000, visits - start)
        shown, who = rng.integers(20, size=count).tolist(), rng.integers(20_000, size=count).tolist()
        clicks = (rng.random(count) < 0.04).astype(int).tolist()
        for s, w, c in zip(shown, who, clicks, strict=True):
            yield f"12411609{start % 100:02d} {offered[s]} {c} |user {visitors[w]}{text}\n"


def make_yahoo(folder: Path, scale: float) -> int:
    """Write the log; its size unpacked."""
    size = 0
    with gzip.open(folder / "ydata-fp-td-clicks-v1_0.20090501.gz", "wt", compresslevel=1) as out:
        for line in yahoo_lines(int(4_500_000 * scale)):
            size += len(line)
            out.write(line)
    return size


def prepare(name: str, path: Path, cache: Path) -> tuple[float, float]:
    """Seconds and GiB of a process that loads a world."""
    # VmHWM is this process's own peak; ru_maxrss would begin with the size of the process that started it.
    code = (
        "import sys, time, warnings, locb.datasets as d; warnings.simplefilter('ignore'); t = time.perf_counter();"
        "getattr(d, sys.argv[1])(sys.argv[2], cache_dir=sys.argv[3]); print(time.perf_counter() - t);"
        "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, name, str(path), str(cache)]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(peak) / 2**20


def rounds_cost() -> list[tuple[str, str]]:
    """1,000,000 rounds of k = 10 from records, drawn as an experiment draws them, against LinUCB-IND's play on them."""
    rng = np.random.default_rng(5)
    users, items = skewed(rng, 600, 300_000, 0.6), skewed(rng, 9_000, 300_000, 0.8)
    features = rng.standard_normal((9_000, 10)) / 4
    env = locb.Interactions(users, items, rng.random(300_000) < 0.5, features)
    count = 1_000_000

    def play() -> float:
        policy = locb.LinUCB(n_users=env.n_users, dim=env.dim)
        policy.prepare()
        spent = 0.0
        for block in env.stream(count, seed=1):
            began = time.perf_counter()
            policy.play(block)
            spent += time.perf_counter() - began
        return spent

    drawn = best_of(lambda: lambda: sum(len(block) for block in env.stream(count, seed=1)), goes=3)
    played = min(play() for _ in range(3))
    return [
        ("drawn from records", f"{drawn:.2f} s"),
        ("LinUCB-IND's play on them", f"{played:.2f} s"),
        ("ratio", f"{drawn / played:.2f}"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the real sizes")
    parser.add_argument("--only", choices=("movielens", "yelp", "yahoo", "rounds"), help="one of them")
    chosen = parser.parse_args()
    rows = []
    folder = Path(tempfile.mkdtemp(prefix="locb-bench-"))
    try:
        for name, make in (("movielens", make_movielens), ("yelp", make_yelp), ("yahoo", make_yahoo)):
            if chosen.only not in (None, name):
                continue
            place = folder / name
            place.mkdir()
            unpacked = make(place, chosen.scale)
            size = sum(file.stat().st_size for file in place.iterdir()) / 1e9
            first, memory = prepare(name, place, folder / "cache")
            again, _ = prepare(name, place, folder / "cache")
            speed = f"{unpacked / 1e6 / first:.0f} MB/s unpacked" if unpacked else f"{1e3 * size / first:.0f} MB/s"
            rows.append((name, f"{size:.2f} GB", f"{first:.1f} s", f"{memory:.2f} GiB", speed, f"{again:.2f} s"))
            print(" ".join(rows[-1]), flush=True)
            shutil.rmtree(place)
    finally:
        shutil.rmtree(folder)
    if rows:
        headings = ("data", "files", "first preparation", "peak memory", "speed", "from the cache")
        show(f"data sets at {chosen.scale:g} of the real size, {os.cpu_count()} cores", headings, rows)
    if chosen.only in (None, "rounds"):
        show("1,000,000 rounds of 10 arms", ("", ""), rounds_cost())


if __name__ == "__main__":
    main()
