"""Reader of the Yahoo! R6A log as a log of decisions: each visit showed one article of a pool, chosen uniformly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.validation import check_int
from locb.datasets.column_values import encode_text
from locb.datasets.item_features import append_constant
from locb.datasets.source_files import Source
from locb.datasets.yahoo import CHUNK, VISIT, VisitLog
from locb.logs.log import Log, Offers, SkippedRows
from locb.logs.readers.log_parts import LogParts


@dataclass(frozen=True)
class YahooOptions:
    """Options of :func:`read_yahoo`."""

    n_clusters: int = 500


class _PoolLog(VisitLog):
    """Parser that also records the time and the pool of articles of each visit."""

    def __init__(self, sources: list[Source]) -> None:
        super().__init__(sources)
        self.times: list[int] = []
        self.pools: dict[tuple[int, ...], int] = {}  # index of each distinct pool
        self.pool: list[int] = []  # pool of each visit

    def _parse_visit(self, line: bytes) -> tuple[list[float], int, bool] | None:
        visit = super()._parse_visit(line)
        if visit is None:
            return None
        pool = []
        for part in line.split(b"|")[2:]:
            name = part.split(None, 1)[0]
            article = self.articles.get(name)
            article = self._add_article(name, line) if article is None else article
            if article is not None:
                pool.append(article)
        self.pool.append(self.pools.setdefault(tuple(pool), len(self.pools)))
        self.times.append(int(line.split(None, 1)[0]))
        return visit


def read_yahoo(files: list[Path], options: YahooOptions) -> Log:
    """Read the Yahoo R6A click log. The article of each visit was chosen uniformly, so its propensity is 1 / pool size.

    The log has no user ids. Visitors are clustered by their features with K-means, and each cluster is one user.
    Visits of users or articles without features are skipped.

    Parameters
    ----------
    files : list of Path
        Files ydata-fp-td-clicks-v1_0.*, optionally gzipped.
    options : YahooOptions
        ``n_clusters``: number of clusters, at most the number of distinct visitors in the first 65,536 visits.
    """
    from sklearn.cluster import MiniBatchKMeans

    n_clusters = check_int("n_clusters", options.n_clusters, 1)
    reader = _PoolLog([Source(file) for file in files])
    chunks = list(reader.chunks())
    if not chunks:
        raise ValueError(f"{files[0]} has no visit with features; expected lines such as {VISIT!r}")
    distinct = len(np.unique(chunks[0][0], axis=0))
    means: Any = MiniBatchKMeans(min(n_clusters, distinct), random_state=0, n_init=1, batch_size=CHUNK)
    for index, (visitors, _, _) in enumerate(chunks):
        if index == 0 or len(visitors) >= means.n_clusters:
            means.partial_fit(visitors)
    shown = np.concatenate([articles for _, articles, _ in chunks])
    pools = [np.array(pool, np.int32) for pool in reader.pools]
    arms = np.concatenate(pools)
    offers = Offers(np.cumsum([0, *map(len, pools)]), arms, arms)
    offer = np.array(reader.pool)
    position = np.array(
        [np.flatnonzero(pools[pool] == article)[0] for pool, article in zip(offer, shown, strict=True)], np.int64
    )
    parts = LogParts(
        users=encode_text(np.concatenate([means.predict(visitors) for visitors, _, _ in chunks]).astype(str)),
        offer=offer,
        offers=offers,
        arm_ids=[name.decode() for name in reader.articles],
        features=append_constant(np.array(reader.features)),
        chosen=position,
        rewards=np.concatenate([clicks for _, _, clicks in chunks]).astype(np.float64),
        propensities=1.0 / offers.sizes[offer],
        times=np.array(reader.times, np.float64),
    )
    columns = {"user": f"{means.n_clusters} clusters of visitors", "chosen": "article", "arms": "pool of the visit"}
    columns |= {"reward": "click", "propensity": "uniform", "time": "time"}
    skipped = [SkippedRows(reason, count) for reason, count in reader.skipped.items() if count]
    return parts.finish(columns, skipped, ())
