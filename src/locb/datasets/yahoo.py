"""Yahoo! R6A: visits to the front page, the article shown, and whether it was clicked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from locb.datasets.item_features import with_constant
from locb.datasets.records import Records, world
from locb.datasets.source_files import Source
from locb.environments import Interactions

PATTERN = "ydata-fp-td-clicks-v1_0.*"
FEATURES = 6  # of a user and of an article; the first is constant
CHUNK = 1 << 16  # visits worked on at once


def yahoo(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int = 10,
    zeros: str = "shown",
    n_clusters: int = 500,
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Yahoo's R6A log as a world. The log has no user ids: a user is a K-means cluster of the visitors' features.

    Parameters
    ----------
    path : path
        One of the files ydata-fp-td-clicks-v1_0.*.gz, or the folder that holds them.
    n_users, n_arms, zeros
        As for ``locb.Interactions``. By default zero arms are articles of visits without a click: in time a cluster of
        visitors clicks every article, so that few would be left that it never clicked.
    n_clusters : int
        Clusters of visitors; the ``n_users`` with the most visits are the pool.
    cache_dir : path
        Where prepared data are kept; if not given $LOCB_CACHE, or locb in the user's cache folder.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(2, "There is no Yahoo log at", str(place))
    files = sorted(place.glob(PATTERN)) if place.is_dir() else [place]
    if not files:
        raise ValueError(f"{place} holds no Yahoo log: looked for {PATTERN}")
    if not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise ValueError(f"n_clusters must be a whole number of at least 1, not {n_clusters!r}")
    sources = [Source(file) for file in files]
    return world(
        "yahoo",
        sources,
        lambda: read(sources, int(n_clusters)),
        options={"n_clusters": int(n_clusters)},
        dim=None,
        cache_dir=cache_dir,
        n_users=n_users,
        n_arms=n_arms,
        zeros=zeros,
    )


class Log:
    """A pass over the log, a chunk of visits at a time; memory does not grow with the log."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.articles: dict[bytes, int] = {}
        self.features: list[list[float]] = []  # of the articles, without the constant
        self.unknown: set[bytes] = set()  # articles that come without features
        self.skipped = {"visits whose user lacks features": 0, "visits whose article lacks features": 0}

    def chunks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Users' features (v, 5), articles (v,) and clicks (v,) of up to CHUNK visits."""
        visitors: list[list[float]] = []
        shown: list[int] = []
        clicks: list[bool] = []
        for source in self.sources:
            with source.open() as stream:
                for number, line in enumerate(stream, 1):
                    if not line.strip():
                        continue
                    try:
                        visit = self._visit(line)
                    except (ValueError, IndexError):
                        told = line[:80].decode("latin-1").rstrip()
                        raise ValueError(f"{source.name}, line {number}: no visit in {told!r}") from None
                    if visit is None:
                        continue
                    visitors.append(visit[0])
                    shown.append(visit[1])
                    clicks.append(visit[2])
                    if len(shown) == CHUNK:
                        yield np.array(visitors), np.array(shown), np.array(clicks)
                        visitors, shown, clicks = [], [], []
        if shown:
            yield np.array(visitors), np.array(shown), np.array(clicks)

    def _visit(self, line: bytes) -> tuple[list[float], int, bool] | None:
        """The visitor's features, the article and the click of one line; None if features are missing."""
        bar = line.index(b"|")
        _, article, click = line[:bar].split()
        if click not in (b"0", b"1"):
            raise ValueError
        end = line.find(b"|", bar + 1)
        words = line[bar + 1 : end if end >= 0 else len(line)].split()
        if words[0] != b"user":
            raise ValueError
        visitor = _five(words[1:])
        if visitor is None:
            self.skipped["visits whose user lacks features"] += 1
            return None
        number = self.articles.get(article)
        if number is None:
            number = self._new_article(article, line)
            if number is None:
                self.skipped["visits whose article lacks features"] += 1
                return None
        return visitor, number, click == b"1"

    def _new_article(self, article: bytes, line: bytes) -> int | None:
        """Read the features of an article from the first line that has them."""
        start = line.find(b"|" + article + b" ")
        values = None
        if start >= 0:
            end = line.find(b"|", start + 1)
            values = _five(line[start + 1 : end if end >= 0 else len(line)].split()[1:])
        if values is None:
            return None
        self.articles[article] = len(self.features)
        self.features.append(values)
        return len(self.features) - 1


def _five(words: list[bytes]) -> list[float] | None:
    """Features 2 … 6 of words like 2:0.000012; None if one is missing."""
    values = dict(word.split(b":", 1) for word in words)
    if len(values) < FEATURES:
        return None
    try:
        found = [float(values[b"%d" % place]) for place in range(2, FEATURES + 1)]
    except KeyError:
        return None
    return found if all(abs(value) < 1e6 for value in found) else None  # NaN is below nothing


def read(sources: list[Source], n_clusters: int) -> Records:
    """Two passes: the first learns the clusters of visitors, the second counts clicks by cluster and article."""
    from sklearn.cluster import MiniBatchKMeans

    first = Log(sources)
    means: Any = None
    for visitors, _, _ in first.chunks():
        if means is None:
            different = len(np.unique(visitors, axis=0))
            means = MiniBatchKMeans(min(n_clusters, different), random_state=0, n_init=1, batch_size=CHUNK)
        if len(visitors) >= means.n_clusters or not hasattr(means, "cluster_centers_"):
            means.partial_fit(visitors)
    if means is None:
        raise ValueError(f"{sources[0].name}: there is no visit with features in it")
    second = Log(sources)
    n_articles = len(first.features)
    counts = np.zeros((means.n_clusters, n_articles, 2), np.int64)
    for visitors, shown, clicks in second.chunks():
        np.add.at(counts, (means.predict(visitors), shown, clicks.astype(np.int64)), 1)
    users, items, liked = np.nonzero(counts)
    return Records(
        users.astype(np.int32),
        items.astype(np.int32),
        liked.astype(bool),
        n_articles,
        features=with_constant(np.array(second.features)),
        counts=counts[users, items, liked],
        skipped={reason: count for reason, count in second.skipped.items() if count},
    )
