"""Computation of item features from the likes of users and the attributes of items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from locb.common.arrays import Floats
from locb.common.validation import ParameterError

# Frobenius norm of the attribute rows divided by that of the user rows, see docs/decisions/0006-item-features.md.
ATTRIBUTE_WEIGHT = 0.3
MAX_OWN_FEATURES = 100  # a policy stores the square of the number of features per user

if TYPE_CHECKING:
    from locb.datasets.records import Records


def split_records(users: Any, items: Any, n_items: int, *, by_time: bool = False) -> Any:
    """Return whether each record is in the half that is used in rounds. The other half gives the features.

    All records of the same user and item are in the same half. The halves are random, and always the same. With
    ``by_time``, the records are in the order of time, and the later half of the records is used in rounds.
    """
    if by_time:
        return np.arange(len(users)) >= len(users) // 2
    pairs, position = np.unique(np.asarray(users, np.int64) * n_items + items, return_inverse=True)
    return (np.random.default_rng(0).permutation(len(pairs)) % 2 == 0)[position]


def item_features(records: Records, dim: int, selected: Any = None) -> Floats:
    """Return an array (items, dim) of item features, computed with a truncated singular value decomposition (SVD).

    The SVD is that of a matrix with one column per item. The matrix has one row per user, whose entry for an item is
    the number of likes minus the number of records without a like; if the records have rewards, it is the sum of the
    standardized rewards. These rows are followed by one row per attribute
    (for example a genre). The attribute rows are scaled to ATTRIBUTE_WEIGHT times the Frobenius norm of the user rows.

    The features of an item are its dim − 1 factors in the SVD, scaled to norm 1/√2, and the constant 1/√2. Therefore
    the inner product of the features of two items is from 0 to 1.

    Parameters
    ----------
    records : Records
        Likes of the users, and attributes of the items.
    dim : int
        Number of features per item, at least 2.
    selected : bool array, optional
        Whether to use each record. By default, all records are used.
    """
    used = slice(None) if selected is None else selected
    users, items = records.users[used], records.items[used]
    if records.rewards is None:
        values = np.where(records.liked[used], np.float32(1), np.float32(-1))
    else:
        rewards = records.rewards[used]
        values = ((rewards - rewards.mean()) / (rewards.std() or 1.0)).astype(np.float32)
    likes = sparse.csr_matrix((values, (users, items)), shape=(int(records.users.max()) + 1, records.n_items))
    blocks = [likes]
    if records.attributes is not None and records.attributes.nnz:
        attributes = records.attributes.T.tocsr().astype(np.float32)
        scale = np.float32(ATTRIBUTE_WEIGHT * sparse.linalg.norm(likes) / sparse.linalg.norm(attributes))
        blocks.append(attributes * scale)
    return append_constant(right_factors(sparse.vstack(blocks, format="csr"), dim - 1))


def own_features(attributes: Any) -> Floats:
    """Return attributes of items (items, attributes) and a constant as item features.

    The attributes are divided by the same number, so that the largest norm of an item is 1/√2, the constant.
    """
    if attributes is None:
        raise ParameterError(
            "features_from", " 'own' needs columns that describe the items: set features or item_features"
        )
    if attributes.shape[1] > MAX_OWN_FEATURES:
        raise ParameterError(
            "features_from",
            f" 'own' allows at most {MAX_OWN_FEATURES} features, but the columns that describe the items give "
            f"{attributes.shape[1]:,}; choose fewer columns, or 'other-half' to reduce them",
        )
    values = np.asarray(attributes.toarray(), np.float64)
    largest = float(np.linalg.norm(values, axis=1).max()) or 1.0
    return np.hstack([values / (largest * math.sqrt(2.0)), np.full((len(values), 1), math.sqrt(0.5))])


def right_factors(matrix: Any, count: int) -> Floats:
    """Return the ``count`` leading right singular vectors of a sparse matrix, multiplied by their singular values.

    The result is an array (columns, count). The element of each vector with the largest absolute value is positive,
    which makes the signs unique. At most min(rows, columns) − 1 vectors are computed, and none for a matrix of zeros.
    The remaining columns are zero.
    """
    rows, columns = matrix.shape
    matrix.eliminate_zeros()
    possible = min(count, min(rows, columns) - 1) if matrix.nnz else 0
    factors = np.zeros((columns, count))
    if possible >= 1:
        start = np.random.default_rng(0).standard_normal(min(rows, columns))
        _, singular_values, right = svds(matrix.astype(np.float64), k=possible, v0=start, tol=1e-4)
        order = np.argsort(-singular_values, kind="stable")
        right = right[order] * singular_values[order, None]
        largest = right[np.arange(possible), np.abs(right).argmax(axis=1)]
        factors[:, :possible] = (right * np.sign(largest)[:, None]).T
    return factors


def append_constant(values: Any) -> Floats:
    """Scale each row of an array to Euclidean norm 1/√2, append the constant 1/√2, and return the new array.

    A row of zeros is not scaled.
    """
    length = np.linalg.norm(values, axis=1, keepdims=True)
    scaled = np.divide(values, length * math.sqrt(2.0), out=np.zeros_like(values), where=length > 0)
    return np.ascontiguousarray(np.hstack([scaled, np.full((len(values), 1), math.sqrt(0.5))]))


def one_hot(labels: list[Any], min_items: int = 1, max_labels: int = 1000) -> Any:
    """Return a sparse matrix (items, labels) with 1 where an item has a label and 0 elsewhere.

    Parameters
    ----------
    labels : list of iterables of str
        Labels of each item.
    min_items : int, default 1
        Minimum number of items of a label. Labels of fewer items are dropped.
    max_labels : int, default 1000
        Maximum number of labels. The labels of the most items are kept; of labels with equally many items, those that
        occur first.
    """
    label_index: dict[str, int] = {}
    indices: list[int] = []
    ends = [0]
    for item_labels in labels:
        indices.extend(label_index.setdefault(label, len(label_index)) for label in set(item_labels))
        ends.append(len(indices))
    matrix = sparse.csr_matrix(
        (np.ones(len(indices), np.float32), np.array(indices, np.int64), np.array(ends)),
        (len(labels), len(label_index)),
    )
    frequency = np.asarray(matrix.sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-frequency, kind="stable")[:max_labels])
    return matrix[:, kept[frequency[kept] >= min_items]]
