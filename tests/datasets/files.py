"""Small data sets in the published formats."""

import gzip
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

USERS, MOVIES = 8, 12
GENRES = ("Adventure", "Children's", "Film-Noir")


def stars() -> list[tuple[int, int, float]]:
    """Return (user, movie, stars), with half stars. Every user likes some movies and not others."""
    rng = np.random.default_rng(4)
    rows: list[tuple[int, int, float]] = []
    for user in range(1, USERS + 1):
        seen = rng.permutation(np.arange(1, MOVIES + 1))[: 6 + user % 4].tolist()
        rows.extend((user, movie * 10, float(rng.integers(1, 11)) / 2) for movie in seen)
    return rows


def titles() -> list[tuple[int, str, list[str]]]:
    """Return (movie, title, genres), with commas, quotes, colons and accents in the titles."""
    special = [
        "American President, The (1995)",
        'Postman, "Il" (1994)',
        "Star Wars: Episode IV (1977)",
        "Misérables, Les (1995)",
    ]
    return [
        (
            movie * 10,
            special[movie - 1] if movie <= len(special) else f"Film {movie} (1999)",
            [GENRES[movie % 3]][: movie % 5],
        )
        for movie in range(1, MOVIES + 1)
    ]


def movielens_csv(folder: Path, end: str = "\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{u},{m},{s},9647{u}" for u, m, s in stars()]
    (folder / "ratings.csv").write_text(end.join(["userId,movieId,rating,timestamp", *rows, ""]), newline="")
    lines = []
    for movie, title, genres in titles():
        quoted = '"' + title.replace('"', '""') + '"' if "," in title or '"' in title else title
        lines.append(f"{movie},{quoted},{'|'.join(genres) or '(no genres listed)'}")
    (folder / "movies.csv").write_text(end.join(["movieId,title,genres", *lines, ""]), encoding="utf-8", newline="")
    return folder


def movielens_dat(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ratings.dat").write_text("".join(f"{u}::{m}::{s:g}::9647\n" for u, m, s in stars()))
    text = "".join(f"{movie}::{title}::{'|'.join(genres)}\n" for movie, title, genres in titles())
    (folder / "movies.dat").write_bytes(text.encode("latin-1"))
    return folder


def movielens_100k(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "u.data").write_text("".join(f"{u}\t{m}\t{s:g}\t8812\n" for u, m, s in stars()))
    lines = []
    for movie, title, genres in titles():
        flags = "|".join("1" if genre in genres else "0" for genre in [*GENRES, *range(16)])
        lines.append(f"{movie}|{title}|01-Jan-1995||http://us.imdb.com/M/title?{movie}|{flags}\n")
    (folder / "u.item").write_bytes("".join(lines).encode("latin-1"))
    return folder


def zipped(folder: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{target.stem}/{file.name}")
    return target


def yelp(folder: Path) -> Path:
    """Write reviews with escaped slashes, and businesses with nulls, nested attributes and both kinds of categories."""
    folder.mkdir(parents=True, exist_ok=True)
    reviews = []
    for number, (user, movie, star) in enumerate(stars()):
        review = {
            "review_id": f"r{number}",
            "user_id": f"u-{user}/x",
            "business_id": f"b{movie}",
            "stars": max(1.0, float(round(star))),
            "useful": 0,
            "text": 'Said "great",\nthen left: 5/5 \\ é',
            "date": "2016-03-09 00:00:00",
        }
        reviews.append(json.dumps(review).replace("/", "\\/"))
    (folder / "yelp_academic_dataset_review.json").write_text("\n".join(reviews) + "\n", encoding="utf-8")
    businesses: list[dict[str, Any]] = []
    for movie, title, genres in titles():
        business: dict[str, Any] = {"business_id": f"b{movie}", "name": title, "stars": 4.0, "is_open": 1}
        business["categories"] = None if not genres else ", ".join([*genres, "Restaurants"])
        business["attributes"] = None if movie % 20 else {"WiFi": "u'free'", "BusinessParking": "{'garage': False}"}
        businesses.append(business)
    businesses[0]["categories"] = ["Food", "Pubs"]  # format of releases before 2017
    text = "\n".join(json.dumps(business) for business in businesses) + "\n"
    (folder / "yelp_academic_dataset_business.json").write_text(text, encoding="utf-8")
    return folder


def tarred(folder: Path, target: Path) -> Path:
    with tarfile.open(target, "w:gz") as archive:
        for file in sorted(folder.iterdir()):
            archive.add(file, f"yelp_dataset/{file.name}")
    return target


def features(values: Any) -> str:
    """Return features in the format and order of the log: 2:… 3:… 4:… 5:… 6:… 1:1.000000."""
    return " ".join(f"{number}:{value:.6f}" for number, value in enumerate(values, 2)) + " 1:1.000000"


def yahoo_lines(visits: int = 400, seed: int = 1) -> list[str]:
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.ones(5), size=6)
    articles = {109_000 + a: rng.random(5) for a in range(12)}
    offered = "".join(f" |{article} {features(values)}" for article, values in articles.items())
    lines = []
    for visit in range(visits):
        shown = int(rng.choice(list(articles)))
        click = int(rng.random() < 0.3)
        lines.append(f"12411609{visit % 100:02d} {shown} {click} |user {features(kinds[rng.integers(6)])}{offered}\n")
    return lines


def yahoo(folder: Path, visits: int = 400) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = yahoo_lines(visits)
    for day, part in enumerate((lines[: visits // 2], lines[visits // 2 :]), 1):
        with gzip.open(folder / f"ydata-fp-td-clicks-v1_0.2009050{day}.gz", "wt") as log:
            log.writelines(part)
    return folder
