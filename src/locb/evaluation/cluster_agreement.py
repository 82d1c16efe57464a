"""Agreement of found clusters with the true clusters, in measures that depend on the number of found clusters.

The F1 score of the paper compares each true cluster with the best found cluster, so that further clusters never reduce
it. The measures of this module do not have this property.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.evaluation.clusters import count_common_users, sorted_members


class ClusterAgreement(NamedTuple):
    """Agreement of found clusters with the true clusters."""

    one_to_one_f1: float  # F1 if each found cluster is compared with at most one true cluster
    ari: float  # adjusted Rand index of the two partitions
    nmi: float  # normalized mutual information of the two partitions
    clusters: int  # number of distinct found clusters


def cluster_agreement(found: Iterable[Any], truth: Sequence[Any]) -> ClusterAgreement:
    """Compare found clusters with the true clusters.

    The one-to-one F1 assigns each true cluster a different found cluster, such that the sum of the F1 scores is
    largest, and divides the sum by the number of true or of distinct found clusters, whichever is larger. The adjusted
    Rand index and the normalized mutual information compare partitions of the users of the true clusters: a user who is
    in several clusters belongs to the largest of them, and a user in no cluster is a cluster of its own.

    Parameters
    ----------
    found : iterable of Cluster or of sequences of users
        The clusters that a policy found. Equal clusters count once, and empty clusters are ignored.
    truth : sequence of Cluster or of sequences of users
        The true clusters: at least one, and none of them empty.

    Examples
    --------
    >>> cluster_agreement([[0, 1], [2, 3]], [[0, 1], [2, 3]])
    ClusterAgreement(one_to_one_f1=1.0, ari=1.0, nmi=1.0, clusters=2)
    """
    true_clusters = [sorted_members(cluster) for cluster in truth]
    distinct = {members.tobytes(): members for members in map(sorted_members, found) if members.size}
    candidates = list(distinct.values())
    users = np.unique(np.concatenate(true_clusters))
    labels, true_labels = largest_cluster(candidates, users), largest_cluster(true_clusters, users)
    table = np.zeros((labels.max() + 1, true_labels.max() + 1))
    np.add.at(table, (labels, true_labels), 1.0)
    return ClusterAgreement(
        one_to_one_f1(candidates, true_clusters), adjusted_rand_index(table), mutual_information(table), len(candidates)
    )


def largest_cluster(clusters: Sequence[Ints], users: Ints) -> Ints:
    """Return a label for each user: that of the largest cluster that contains the user, or a label of its own.

    Examples
    --------
    >>> largest_cluster([np.array([0, 1]), np.array([1, 2, 3])], np.arange(5)).tolist()
    [0, 1, 1, 1, 2]
    """
    labels = np.full(len(users), -1)
    for index in sorted(range(len(clusters)), key=lambda index: -len(clusters[index])):
        labels[(labels < 0) & np.isin(users, clusters[index])] = index
    alone = np.flatnonzero(labels < 0)
    labels[alone] = len(clusters) + np.arange(len(alone))
    return np.unique(labels, return_inverse=True)[1]


def one_to_one_f1(found: Sequence[Ints], truth: Sequence[Ints]) -> float:
    """Return the mean F1 of the best assignment of found to true clusters, where unassigned clusters count as 0."""
    if not found:
        return 0.0
    common = count_common_users(truth, found)
    sizes, true_sizes = (np.array([len(cluster) for cluster in clusters]) for clusters in (found, truth))
    scores = 2.0 * common / (true_sizes[:, None] + sizes)
    if len(truth) > len(found):
        scores = scores.T
    assigned = _assign(-scores)
    return float(scores[np.arange(len(scores)), assigned].sum() / max(scores.shape))


def adjusted_rand_index(table: Floats) -> float:
    """Return the adjusted Rand index of two partitions from the number of users that each pair of clusters shares."""

    def pairs(counts: Any) -> float:
        return float((counts * (counts - 1.0)).sum() / 2.0)

    together, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    total = pairs(table.sum())
    expected = rows * columns / total if total else 0.0
    largest = (rows + columns) / 2.0
    return 1.0 if largest == expected else (together - expected) / (largest - expected)


def mutual_information(table: Floats) -> float:
    """Return the mutual information of two partitions, divided by the mean of their entropies."""
    joint = table / table.sum()

    def entropy(shares: Any) -> float:
        positive = shares[shares > 0.0]
        return float(-(positive * np.log(positive)).sum())

    first, second = entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0))
    if first + second == 0.0:  # both partitions have one cluster
        return 1.0
    return max(0.0, (first + second - entropy(joint)) / ((first + second) / 2.0))


def _assign(costs: Floats) -> Ints:
    """Return the column of each row in the assignment of distinct columns with the lowest sum (Hungarian algorithm).

    There must be at least as many columns as rows.
    """
    n_rows, n_columns = costs.shape
    row_price, column_price = np.zeros(n_rows + 1), np.zeros(n_columns + 1)
    row_of = np.zeros(n_columns + 1, np.int64)  # row that each column is assigned to, from 1; 0 if it is free
    for row in range(1, n_rows + 1):
        row_of[0], column = row, 0
        slack, previous = np.full(n_columns + 1, math.inf), np.zeros(n_columns + 1, np.int64)
        visited = np.zeros(n_columns + 1, bool)
        while row_of[column]:
            visited[column] = True
            current = row_of[column]
            reduced = costs[current - 1] - row_price[current] - column_price[1:]
            better = ~visited[1:] & (reduced < slack[1:])
            slack[1:][better], previous[1:][better] = reduced[better], column
            following = 1 + int(np.where(visited[1:], math.inf, slack[1:]).argmin())
            step = slack[following]
            row_price[row_of[visited]] += step
            column_price[visited] -= step
            slack[1:][~visited[1:]] -= step
            column = following
        while column:
            row_of[column] = row_of[previous[column]]
            column = int(previous[column])
    assigned = np.zeros(n_rows, np.int64)
    for column in range(1, n_columns + 1):
        if row_of[column]:
            assigned[row_of[column] - 1] = column - 1
    return assigned
