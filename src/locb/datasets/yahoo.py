"""Reader of the Yahoo! R6A log: visits to the front page, the article shown, and whether the visitor clicked it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import ParameterError
from locb.datasets.item_features import append_constant
from locb.datasets.records import Records, load_environment
from locb.datasets.source_files import Source
from locb.environments import Interactions

PATTERN = "ydata-fp-td-clicks-v1_0.*"
N_FEATURES = 6  # per user and per article; the first is constant
CHUNK = 1 << 16  # visits that are processed at a time
VISIT = "TIME ARTICLE CLICK |user 2:… 6:… 1:… |ARTICLE 2:…"  # format of a line, for error messages


def yahoo(
    path: str | Path,
    *,
    n_users: int = 100,
    n_arms: int | None = None,
    zeros: str = "shown",
    n_clusters: int = 500,
    cache_dir: str | Path | None = None,
) -> Interactions:
    """Read the Yahoo R6A click log as an environment.

    The log has no user ids. Therefore visitors are clustered by their features with K-means, and each cluster of
    visitors is one user of the environment.

    Parameters
    ----------
    path : path
        File ydata-fp-td-clicks-v1_0.*.gz, or a folder of such files.
    n_users, n_arms : int
        Number of users, by default 100: the clusters with the most visits. Arms per round, by default 10.
    zeros : {"any", "rated", "shown"}, default "shown"
        Which articles are the arms with reward 0. See :class:`locb.Interactions`. With "any" and "rated", nearly no
        articles remain, because each article that a cluster of visitors ever clicked is excluded for this cluster.
    n_clusters : int, default 500
        Number of clusters, at most the number of distinct visitors in the first 65,536 visits.
    cache_dir : path, optional
        Cache folder. The default is $LOCB_CACHE if set, else $XDG_CACHE_HOME/locb if set, else ~/.cache/locb.

    Returns
    -------
    Interactions
        Environment in which a user likes the articles that its visitors clicked.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    ValueError
        If a file is missing or cannot be read, or if an argument is invalid.
    """
    location = Path(path)
    if not location.exists():
        raise FileNotFoundError(2, "Path of the Yahoo log does not exist", str(location))
    files = sorted(location.glob(PATTERN)) if location.is_dir() else [location]
    if not files:
        raise ValueError(f"{location} has no Yahoo log: no file matches {PATTERN}; choose the folder of these files")
    if not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise ParameterError("n_clusters", f" must be an integer of at least 1, not {n_clusters!r}")
    sources = [Source(file) for file in files]
    return load_environment(
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


class VisitLog:
    """Parser of a Yahoo log that yields visits in chunks. Memory use does not depend on the number of visits."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.articles: dict[bytes, int] = {}
        self.features: list[list[float]] = []  # features 2 to 6 of each article; feature 1 is constant
        self.skipped = {"visits of users without features": 0, "visits of articles without features": 0}

    def chunks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield three arrays per chunk of up to 65,536 visits: visitor features (visits, 5), articles and clicks."""
        visitors: list[list[float]] = []
        shown: list[int] = []
        clicks: list[bool] = []
        for source in self.sources:
            with source.open() as stream:
                for number, line in enumerate(stream, 1):
                    if not line.strip():
                        continue
                    try:
                        visit = self._parse_visit(line)
                    except (ValueError, IndexError):
                        text = line[:80].decode("latin-1").rstrip()
                        raise ValueError(
                            f"{source.name}, line {number}: cannot parse as a visit (expected {VISIT!r}): {text!r}"
                        ) from None
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

    def _parse_visit(self, line: bytes) -> tuple[list[float], int, bool] | None:
        """Return the visitor features, the article number and the click of one line; None if features are missing."""
        bar = line.index(b"|")
        _, article, click = line[:bar].split()
        if click not in (b"0", b"1"):
            raise ValueError
        end = line.find(b"|", bar + 1)
        fields = line[bar + 1 : end if end >= 0 else len(line)].split()
        if fields[0] != b"user":
            raise ValueError
        visitor = _parse_features(fields[1:])
        if visitor is None:
            self.skipped["visits of users without features"] += 1
            return None
        number = self.articles.get(article)
        if number is None:
            number = self._add_article(article, line)
            if number is None:
                self.skipped["visits of articles without features"] += 1
                return None
        return visitor, number, click == b"1"

    def _add_article(self, article: bytes, line: bytes) -> int | None:
        """Add an article with its features from ``line`` and return its number; None if features are missing."""
        start = line.find(b"|" + article + b" ")
        values = None
        if start >= 0:
            end = line.find(b"|", start + 1)
            values = _parse_features(line[start + 1 : end if end >= 0 else len(line)].split()[1:])
        if values is None:
            return None
        self.articles[article] = len(self.features)
        self.features.append(values)
        return len(self.features) - 1


def _parse_features(fields: list[bytes]) -> list[float] | None:
    """Return features 2 to 6 from fields such as ``2:0.000012``.

    The result is None if one of the features 1 to 6 is missing, or if the absolute value of a feature is not below 10⁶.
    """
    values = dict(field.split(b":", 1) for field in fields)
    if len(values) < N_FEATURES:
        return None
    try:
        found = [float(values[b"%d" % number]) for number in range(2, N_FEATURES + 1)]
    except KeyError:
        return None
    return found if all(abs(value) < 1e6 for value in found) else None  # also rejects NaN


def read(sources: list[Source], n_clusters: int) -> Records:
    """Return the records of a Yahoo log, with clusters of visitors as users.

    The first pass clusters the visitors. The second pass counts visits per cluster, article and click.
    """
    from sklearn.cluster import MiniBatchKMeans

    first = VisitLog(sources)
    means: Any = None
    for visitors, _, _ in first.chunks():
        if means is None:
            distinct = len(np.unique(visitors, axis=0))
            means = MiniBatchKMeans(min(n_clusters, distinct), random_state=0, n_init=1, batch_size=CHUNK)
        if len(visitors) >= means.n_clusters or not hasattr(means, "cluster_centers_"):
            means.partial_fit(visitors)
    if means is None:
        more = f" and {len(sources) - 1} further files" if len(sources) > 1 else ""
        raise ValueError(
            f"no visit with all six features in {sources[0].name}{more}; each line must have the form {VISIT!r}"
        )
    second = VisitLog(sources)
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
        features=append_constant(np.array(second.features)),
        counts=counts[users, items, liked],
        skipped={reason: count for reason, count in second.skipped.items() if count},
    )
