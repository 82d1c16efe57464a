"""Reader of MovieLens data in all formats of GroupLens: CSV, separated by "::", and separated by tabs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locb.datasets.item_features import one_hot
from locb.datasets.like_threshold import check_like_above, find_likes
from locb.datasets.records import Records, encode_ids, load_environment
from locb.datasets.source_files import Source, find_sources
from locb.datasets.text_files import rating_columns, text_lines
from locb.environments import Interactions

LAYOUTS = (("ratings.csv", "movies.csv"), ("ratings.dat", "movies.dat"), ("u.data", "u.item"))
# Format of each ratings file: separator, whether there is a header, and the columns of user, item and rating.
FORMATS: dict[str, tuple[str, bool, tuple[str, str, str] | tuple[int, int, int]]] = {
    "ratings.csv": (",", True, ("userId", "movieId", "rating")),
    "ratings.dat": ("::", False, (0, 1, 2)),
    "u.data": ("\t", False, (0, 1, 2)),
}


def movielens(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int | None = None,
    dim: int = 10,
    zeros: str = "any",
    like_above: float | str | None = None,
    features_from: str = "other-half",
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Read MovieLens ratings as an environment. All published sizes are supported, from ml-100k to ml-32m.

    Parameters
    ----------
    path : path
        Folder of the files, zip file from GroupLens, or ratings file. The format is detected.
    n_users : int, default 100
        Number of users. The users with the most ratings are selected, see :class:`locb.Interactions`.
    n_arms : int, optional
        Arms per round: one liked movie, and movies with reward 0. The default is 10, or all movies if there are fewer.
    dim : int, default 10
        Features per movie, at least 2: dim − 1 computed from ratings and genres, and a constant.
    zeros : {"any", "rated", "shown"}, default "any"
        Which movies are the arms with reward 0. See :class:`locb.Interactions`.
    like_above : float or str, optional
        Ratings above this threshold are likes. A quantile such as "q75" is the smallest rating that at least 75% of the
        ratings do not exceed. The default, 3, is rejected if fewer than 1% or more than 95% would be likes.
    features_from : {"other-half", "all"}, default "other-half"
        Records from which the features are computed: a random half, which is then not used in rounds, or all records,
        as in the paper. With "all", the features contain the likes that are used in rounds, so rewards are higher.
    cache_dir : path, optional
        Cache folder. The default is $LOCB_CACHE if set, else $XDG_CACHE_HOME/locb if set, else ~/.cache/locb.

    Returns
    -------
    Interactions
        Environment in which a user likes the movies with a rating above ``like_above``.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    ValueError
        If a file is missing or cannot be read, or if an argument is invalid.
    """
    sources = find_sources(Path(path), LAYOUTS, "MovieLens")
    threshold = check_like_above(like_above)
    return load_environment(
        "movielens",
        sources,
        lambda: read(sources[0], sources[1], threshold),
        options={"like_above": threshold},
        dim=dim,
        features_from=features_from,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


def read(ratings: Source, movies: Source, like_above: float | str | None) -> Records:
    """Return the records of a ratings file, with the genres of a movies file as attributes of the items."""
    name = Path(ratings.member or ratings.path).name
    separator, header, columns = FORMATS[name]
    users, items, stars = rating_columns(ratings, separator, header, columns)
    movie_ids, item_indices = encode_ids(items)
    genres = read_genres(movies)
    attributes = one_hot([genres.get(int(movie), ()) for movie in movie_ids])
    user_ids, user_indices = encode_ids(users)
    likes = find_likes(stars, like_above, ratings.name)
    n_items = len(movie_ids)
    return Records(user_indices, item_indices, likes.liked, n_items, attributes, user_names=user_ids, likes=likes)


def read_genres(movies: Source) -> dict[int, tuple[str, ...]]:
    """Return the genres of each movie by the id of the movie. In ml-100k, a genre is a number from 0 to 18, as text."""
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
                # The line is split at its first and last comma, because the title may contain commas and quotes.
                first, last = line.split(",", 1)[0], line.rsplit(",", 1)[1]
            else:
                first, last = line.split("::", 1)[0], line.rsplit("::", 1)[1]
            listed = last.strip().strip('"').split("|")
            genres[int(first)] = tuple(genre for genre in listed if genre and genre != "(no genres listed)")
        except (IndexError, ValueError):
            expected = {"u.item": "id|title|…|19 genre flags", "movies.csv": "id,title,genre|genre"}
            wanted = expected.get(name, "id::title::genre|genre")
            raise ValueError(
                f"{movies.name}, line {number}: cannot parse as a movie (expected {wanted!r}): {line[:80]!r}"
            ) from None
    return genres
