"""Features of items: what users like together and what the data say of them, in a few numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from locb.common.arrays import Floats

SAID = 0.3  # weight of what is said of items against what users like (docs/decisions/0006)

if TYPE_CHECKING:
    from locb.datasets.records import Records


def item_features(records: Records, dim: int) -> Floats:
    """(items, dim): dim − 1 numbers of length 1/√2 and a constant 1/√2, so that inner products stay within [−1, 1].

    The numbers are the item factors of a truncated SVD. Its matrix has a row a user, ±1 for liked and not liked, and
    below it a row an attribute (a genre, a category) that weighs SAID as much as all likes.
    """
    sign = np.where(records.liked, np.float32(1), np.float32(-1))
    n_users = int(records.users.max()) + 1
    likes = sparse.csr_matrix((sign, (records.users, records.items)), shape=(n_users, records.n_items))
    parts = [likes]
    if records.attributes is not None and records.attributes.nnz:
        said = records.attributes.T.tocsr().astype(np.float32)
        parts.append(said * np.float32(SAID * sparse.linalg.norm(likes) / sparse.linalg.norm(said)))
    return with_constant(factors(sparse.vstack(parts, format="csr"), dim - 1))


def factors(matrix: Any, count: int) -> Floats:
    """The ``count`` strongest right singular vectors, scaled by their strength, signs fixed: (columns, count)."""
    rows, columns = matrix.shape
    matrix.eliminate_zeros()
    possible = min(count, min(rows, columns) - 1) if matrix.nnz else 0
    found = np.zeros((columns, count))
    if possible >= 1:
        start = np.random.default_rng(0).standard_normal(min(rows, columns))
        _, strength, right = svds(matrix.astype(np.float64), k=possible, v0=start, tol=1e-4)
        order = np.argsort(-strength, kind="stable")
        right = right[order] * strength[order, None]
        largest = right[np.arange(possible), np.abs(right).argmax(axis=1)]
        found[:, :possible] = (right * np.sign(largest)[:, None]).T
    return found


def with_constant(values: Any) -> Floats:
    """Rows scaled to length 1/√2 (a row of zeros stays), and a constant 1/√2."""
    length = np.linalg.norm(values, axis=1, keepdims=True)
    scaled = np.divide(values, length * math.sqrt(2.0), out=np.zeros_like(values), where=length > 0)
    return np.ascontiguousarray(np.hstack([scaled, np.full((len(values), 1), math.sqrt(0.5))]))


def one_hot(rows: list[Any], least: int = 1, most: int = 1000) -> Any:
    """Sparse (items, words): which words each item has; words of fewer than ``least`` items are left out.

    ``rows`` has an iterable of words an item.
    """
    number: dict[str, int] = {}
    indices: list[int] = []
    ends = [0]
    for words in rows:
        indices.extend(number.setdefault(word, len(number)) for word in set(words))
        ends.append(len(indices))
    matrix = sparse.csr_matrix(
        (np.ones(len(indices), np.float32), np.array(indices, np.int64), np.array(ends)), (len(rows), len(number))
    )
    often = np.asarray(matrix.sum(axis=0)).ravel()
    kept = np.sort(np.argsort(-often, kind="stable")[:most])
    return matrix[:, kept[often[kept] >= least]]
