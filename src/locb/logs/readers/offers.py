"""Lists of arms that decisions offer: parsed from the values of a column, or made from a catalogue."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.common.arrays import Bools, Floats, IndexArray
from locb.logs.arm_features import named_features
from locb.logs.log import Offers
from locb.logs.row_arrays import RowBuffer

FLUSH = 1_000_000  # arms of lists that are collected before they are moved to the array
MAX_KNOWN = 500_000_000  # bytes of lists that are remembered, about
LIST_SEPARATORS = ("|", ";", ",")


def parse_arms(value: Any) -> list[tuple[str | None, Any]]:
    """Return the id and the features of each arm of a list; features are None if there are none.

    The list is a list, JSON text, or text with the separator "|", ";" or ",". An element is an id, an object with
    ``id`` and ``features``, or a list of numbers, which are the features of an arm without an id.

    Raises
    ------
    ValueError
        If the value is not a list of arms.

    Examples
    --------
    >>> parse_arms("a|b"), parse_arms('[{"id": "a", "features": {"price": 2}}]'), parse_arms([[0.5, 1.0]])
    ([('a', None), ('b', None)], [('a', {'price': 2})], [(None, [0.5, 1.0])])
    """
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            value = json.loads(text)
        else:
            separator = next((sign for sign in LIST_SEPARATORS if sign in text), LIST_SEPARATORS[0])
            value = [part.strip() for part in text.split(separator) if part.strip()]
    if not isinstance(value, list | tuple | np.ndarray) or not len(value):
        raise ValueError("not a list of arms with at least one arm")
    arms = [_parse_arm(arm) for arm in value]
    ids = [arm for arm, _ in arms if arm is not None]
    if len(set(ids)) < len(ids):
        raise ValueError("an arm is offered twice; the ids in a list must be unique")
    return arms


def _parse_arm(arm: Any) -> tuple[str | None, Any]:
    if isinstance(arm, dict):
        name = next((arm[key] for key in ("id", "arm", "name", "item") if arm.get(key) is not None), None)
        features = arm.get("features")
        if name is None and features is None:
            raise ValueError("an arm must have an id or features")
        return (None if name is None else str(name)), features
    if isinstance(arm, list | tuple | np.ndarray):
        return None, [float(value) for value in arm]
    if arm is None or isinstance(arm, bool):
        raise ValueError(f"an arm must be an id, an object or a list of numbers, not {arm!r}")
    if isinstance(arm, float) and arm.is_integer():
        arm = int(arm)
    return str(arm), None


class OfferBuilder:
    """Builder of distinct lists of arms, and of the rows of their features. Equal features share a row."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.arm_ids: dict[str, int] = {}
        self._rows: dict[Any, int] = {}  # index of a row by the id and the features of an arm
        self._features: list[list[float]] = []
        self._ends, self._arms, self._row_of_arm = array("q", [0]), array("i"), array("i")
        self._buffers = RowBuffer(np.int64), RowBuffer(np.int32), RowBuffer(np.int32)
        self._lists = self._total = 0

    def add(self, arms: Sequence[tuple[str | None, Any]], keys: Sequence[Any] | None = None) -> int:
        """Add a list of arms, each with an id and features, and return its index.

        Parameters
        ----------
        arms : sequence of (str or None, object)
            Id and features of each arm, as ``parse_arms`` returns them.
        keys : sequence, optional
            Hashable value per arm that is equal if the features are equal. By default, it is computed.

        Raises
        ------
        ValueError
            If an arm has invalid features, or another number of features than earlier arms.
        """
        has_features = any(features is not None for _, features in arms)
        if self._lists and has_features != bool(self._features):
            here, first = ("features", "none") if has_features else ("no features", "features")
            raise ValueError(f"the list of arms has {here}, but the first list of the log has {first}")
        added = []
        for position, (arm, features) in enumerate(arms):
            if has_features and features is None:
                raise ValueError("an arm has no features, but another arm of the same list has features")
            row = -1
            if has_features:
                row = self._row(features, keys[position] if keys else json.dumps(features, sort_keys=True))
            added.append((arm, row))
        for arm, row in added:
            index = -1 if arm is None else self.arm_ids.setdefault(arm, len(self.arm_ids))
            self._arms.append(index)
            if has_features:
                self._row_of_arm.append(row)
        self._total += len(added)
        self._ends.append(self._total)
        self._lists += 1
        if len(self._arms) > FLUSH:
            self._flush()
        return self._lists - 1

    def _flush(self) -> None:
        for buffer, values in zip(self._buffers, (self._ends, self._arms, self._row_of_arm), strict=True):
            buffer.append(values)
            del values[:]

    def _row(self, features: Any, key: Any) -> int:
        row = self._rows.get(key)
        if row is None:
            vector = named_features(features, self.dim)
            if self._features and len(vector) != len(self._features[0]):
                raise ValueError(
                    f"an arm has {len(vector)} features, but the first arm of the log has {len(self._features[0])}; "
                    "all arms must have the same number of features"
                )
            if not vector:
                raise ValueError("an arm has an empty list of features; at least one feature is required")
            row = self._rows[key] = len(self._features)
            self._features.append(vector)
        return row

    def build(self) -> tuple[Offers, list[str], Floats | None]:
        """Return the lists, the ids of all arms, and the features (None if arms have only ids)."""
        self._flush()
        offsets, arms, rows = (buffer.build() for buffer in self._buffers)
        features = np.array(self._features) if self._features else None
        return Offers(offsets, arms, arms if features is None else rows), list(self.arm_ids), features


class ColumnOffers:
    """Lists of arms of a column that is read in batches.

    Rows with the same list share it. If the distinct lists take much memory, they are forgotten, and a list that occurs
    again is stored again.
    """

    def __init__(self, dim: int) -> None:
        self.builder = OfferBuilder(dim)
        self._known: dict[str | None, tuple[int, list[str]] | str] = {}  # index and names of arms, or why not usable
        self._size = 0  # bytes of ``_known``, about

    def read(self, column: Any, chosen: Any, usable: Bools) -> tuple[IndexArray, IndexArray, dict[str, Bools]]:
        """Return the list of each row, the position of the chosen arm in the list, and masks of invalid rows by reason.

        A chosen arm is the id of an arm. If the arms of a list have no ids, it is the position of the arm, from 0. The
        position is −1 if the arm is not in the list. Rows that are not usable are ignored.
        """
        import polars as pl

        if column.dtype == pl.String:
            keys = column
        else:
            keys = pl.Series([json.dumps(value, default=str) for value in column.to_list()], dtype=pl.String)
        rows = pl.DataFrame({"list": keys, "chosen": chosen}).with_row_index("row").filter(pl.Series(usable))
        pairs = rows.unique(("list", "chosen"), keep="first", maintain_order=True).with_row_index("pair")
        offers, positions = np.zeros(pairs.height, np.int32), np.full(pairs.height, -1, np.int32)
        reasons: dict[str, list[int]] = {}
        for pair, row, key, name in pairs.iter_rows():
            known = self._find(key, column, row)
            if isinstance(known, str):
                reasons.setdefault(known, []).append(pair)
                continue
            offers[pair], names = known
            positions[pair] = max((position for position, arm in enumerate(names) if arm == name), default=-1)
        numbered = pairs.drop("row")
        found = rows.join(numbered, on=("list", "chosen"), how="left", nulls_equal=True, maintain_order="left")
        pair_of_row = np.full(len(usable), -1, np.int64)
        pair_of_row[usable] = found["pair"].to_numpy()
        wrong = {reason: np.isin(pair_of_row, numbers) for reason, numbers in reasons.items()}
        offer, position = (np.append(values, filler)[pair_of_row] for values, filler in ((offers, 0), (positions, -1)))
        return offer.astype(np.int32), position.astype(np.int32), wrong

    def _find(self, key: str | None, column: Any, row: int) -> tuple[int, list[str]] | str:
        found = self._known.get(key)
        if found is None:
            try:
                arms = parse_arms(column.slice(row, 1).to_list()[0])
                names = [str(position) if arm is None else arm for position, (arm, _) in enumerate(arms)]
                found = (self.builder.add(arms), names)
            except (ValueError, TypeError) as error:
                found = "not valid JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            self._size += len(key or "") + 300 + 60 * len(found[1])
            if self._size > MAX_KNOWN:
                self._known.clear()
                self._size = 0
            self._known[key] = found
        return found


def one_list(arm_ids: Sequence[str]) -> Offers:
    """Return one list of all arms, for all decisions."""
    indices = np.arange(len(arm_ids), dtype=np.int32)
    return Offers(np.array([0, len(arm_ids)]), indices, indices)
