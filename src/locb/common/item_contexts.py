"""Contexts of rounds whose arms are items of a catalogue, stored once per item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from locb.common.arrays import Floats, Ints
from locb.common.validation import ParameterError, check_array

NO_ARM = -1  # fills the rows of rounds that offer fewer arms than others
CHUNK = 4096  # rounds that are checked together, so that checks take little memory


@dataclass(frozen=True, repr=False, eq=False)
class ItemContexts:
    """Contexts of the arms of T rounds. An arm is an item of a catalogue, and several rounds can offer the same item.

    ``contexts[t]`` is an array (arms of round t, d), which is computed when it is read.

    Parameters
    ----------
    items : (n_items, d) array of float
        The d features of each item.
    arms : (T, k) array of int
        The items that a round offers, as indices into ``items``. A row with fewer than k arms ends with −1.
    """

    items: Floats
    arms: NDArray[Any]
    sizes: Ints | None = field(init=False, default=None)  # (T,) arms per round; None if all rounds have k arms

    def __post_init__(self) -> None:
        """Check the indices."""
        # Rows that are all the same row in memory, as of numpy.broadcast_to, are checked once.
        distinct = self.arms[:1] if self.arms.strides[0] == 0 else self.arms
        if not distinct.size:
            return
        low, high = int(distinct.min()), int(distinct.max())
        if low < NO_ARM or high >= len(self.items):
            t, arm = (int(i) for i in np.argwhere((distinct < NO_ARM) | (distinct >= len(self.items)))[0])
            allowed = f"from 0 to {len(self.items) - 1}, or −1 after the last arm of a round"
            raise ParameterError("arms", f" must be {allowed}, but arms[{t}, {arm}] is {distinct[t, arm]}")
        if low == NO_ARM:
            sizes = np.concatenate([_count_arms(distinct, start) for start in range(0, len(distinct), CHUNK)])
            object.__setattr__(self, "sizes", np.broadcast_to(sizes, len(self.arms)).astype(np.int64))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of rounds, largest number of arms per round, and number of features."""
        return (*self.arms.shape, self.items.shape[1])

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, key: slice) -> ItemContexts: ...

    @overload
    def __getitem__(self, key: int) -> Floats: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return ItemContexts(self.items, self.arms[key])
        size = self.arms.shape[1] if self.sizes is None else self.sizes[key]
        return self.items[self.arms[key, :size]]

    def __iter__(self) -> Iterator[Floats]:
        return (self[t] for t in range(len(self)))

    def gather(self, rounds: slice, n_arms: int, buffer: Floats) -> Floats:
        """Return the contexts of consecutive rounds with ``n_arms`` arms each, (rounds, n_arms, d), in ``buffer``."""
        rows = self.arms[rounds, :n_arms].astype(np.intp)
        dim = self.items.shape[1]
        contexts = buffer[: rows.size * dim].reshape(*rows.shape, dim)
        np.take(self.items, rows, axis=0, out=contexts, mode="clip")  # mode="raise" would copy; indices are checked
        return contexts


def _count_arms(arms: NDArray[Any], start: int) -> Ints:
    """Return the number of arms of each of the next ``CHUNK`` rounds, or raise a ValueError if arms follow a −1."""
    part = arms[start : start + CHUNK]
    sizes: Ints = np.count_nonzero(part >= 0, axis=1).astype(np.int64)
    wrong = np.flatnonzero((sizes == 0) | ((part >= 0) != (np.arange(part.shape[1]) < sizes[:, None])).any(axis=1))
    if wrong.size:
        found = f"arms[{start + wrong[0]}] is {part[wrong[0]].tolist()}"
        raise ParameterError(
            "arms", f" must have at least one arm per round, and −1 only after the last arm, but {found}"
        )
    return sizes


def make_item_contexts(items: Any, arms: Any, count: int) -> ItemContexts:
    """Return the contexts of ``count`` rounds, or raise a ValueError if an argument is invalid.

    Parameters
    ----------
    items : (n_items, d) array_like of float
        Features of the items.
    arms : (T, k) or (k,) array_like of int, or None
        The items that a round offers; one row for all rounds; or None, if all rounds offer all items. Integers of any
        size are kept without a copy.
    count : int
        Number of rounds.
    """
    items = check_array("items", items, (None, None))
    if 0 in items.shape:
        raise ParameterError("items", f" must have at least one item and one feature, not shape {items.shape}")
    rows = np.arange(len(items)) if arms is None else np.asarray(arms)
    if rows.size and rows.dtype.kind not in "iu":
        raise ParameterError("arms", f" must be integers, not {rows.dtype}")
    if rows.ndim == 1 and rows.size:
        rows = np.broadcast_to(rows, (count, rows.size))
    if rows.ndim != 2 or 0 in rows.shape[1:] or len(rows) != count:
        wanted = f"({count}, k) or (k,) with k ≥ 1 arms per round, because users has length {count}"
        raise ParameterError("arms", f" must have shape {wanted}, but has shape {rows.shape}")
    return ItemContexts(items, rows)
