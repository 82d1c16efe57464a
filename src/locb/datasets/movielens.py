"""MovieLens in every format that GroupLens has published: CSV, "::" and tabs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from locb.datasets.item_features import one_hot
from locb.datasets.records import Records, numbered, world
from locb.datasets.source_files import Source, find
from locb.datasets.text_files import rating_columns, text_lines
from locb.environments import Interactions

LAYOUTS = (("ratings.csv", "movies.csv"), ("ratings.dat", "movies.dat"), ("u.data", "u.item"))
# Separator, whether there is a header, and the columns of user, item and rating in each ratings file.
FORMATS: dict[str, tuple[str, bool, tuple[str, str, str] | tuple[int, int, int]]] = {
    "ratings.csv": (",", True, ("userId", "movieId", "rating")),
    "ratings.dat": ("::", False, (0, 1, 2)),
    "u.data": ("\t", False, (0, 1, 2)),
}


def movielens(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int = 10,
    dim: int = 10,
    zeros: str = "any",
    threshold: float = 3.0,
    cache_dir: str | Path | None = None,
) -> Interactions:
    """MovieLens ratings as a world: ml-25m, ml-latest, ml-latest-small, ml-20m, ml-10m, ml-1m or ml-100k.

    Parameters
    ----------
    path : path
        The folder, the publisher's zip, or the ratings file; the format is recognised.
    n_users, n_arms, zeros
        As for ``locb.Interactions``.
    dim : int
        Features of a movie: dim − 1 from ratings and genres, and a constant.
    threshold : float
        More stars than this count as liked.
    cache_dir : path
        Where prepared data are kept; if not given $LOCB_CACHE, or locb in the user's cache folder.
    """
    sources = find(Path(path), LAYOUTS, "MovieLens")
    options = {"threshold": float(threshold)}
    return world(
        "movielens",
        sources,
        lambda: read(sources[0], sources[1], float(threshold)),
        options=options,
        dim=dim,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def read(ratings: Source, movies: Source, threshold: float) -> Records:
    """Records and genres of the two files."""
    name = Path(ratings.member or ratings.path).name
    separator, header, columns = FORMATS[name]
    users, items, stars = rating_columns(ratings, separator, header, columns)
    movie_ids, item_numbers = numbered(items)
    genres = genres_of(movies)
    attributes = one_hot([genres.get(int(movie), ()) for movie in movie_ids])
    user_ids, user_numbers = numbered(users)
    liked = np.asarray(stars > threshold)
    return Records(user_numbers, item_numbers, liked, len(movie_ids), attributes, user_names=user_ids)


def genres_of(movies: Source) -> dict[int, tuple[str, ...]]:
    """The genres of each movie."""
    name = Path(movies.member or movies.path).name
    genres: dict[int, tuple[str, ...]] = {}
    for number, line in text_lines(movies):
        try:
            if name == "u.item":
                fields: list[Any] = line.split("|")
                genres[int(fields[0])] = tuple(str(g) for g, flag in enumerate(fields[-19:]) if flag == "1")
                continue
            if name == "movies.csv":
                if number == 1:
                    continue
                # The title may hold commas and quotes; the number before it and the genres after it do not.
                first, last = line.split(",", 1)[0], line.rsplit(",", 1)[1]
            else:
                first, last = line.split("::", 1)[0], line.rsplit("::", 1)[1]
            listed = last.strip().strip('"').split("|")
            genres[int(first)] = tuple(genre for genre in listed if genre and genre != "(no genres listed)")
        except (IndexError, ValueError):
            raise ValueError(f"{movies.name}, line {number}: no movie in {line[:80]!r}") from None
    return genres
