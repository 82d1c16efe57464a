"""Lists of arms that decisions offer: parsed from the values of a column, or made from a catalogue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from locb.common.arrays import Bools, Floats, Ints
from locb.datasets.column_values import encode_text
from locb.logs.arm_features import named_features
from locb.logs.log import Offers

CHUNK = 1_000_000  # rows
LIST_SEPARATORS = ("|", ";", ",")


class CollectedOffers(NamedTuple):
    """Lists of arms of a column.

    Attributes
    ----------
    offers : Offers
        Distinct lists.
    arm_ids : list of str
        Names of the arms.
    features : (rows, d) floats or None
        Features of the arms; None if they have only names.
    offer : (n,) ints
        Index of the list of each row; 0 for a row that cannot be used.
    wrong : dict of str to (n,) bools
        Rows that cannot be used, by reason.
    """

    offers: Offers
    arm_ids: list[str]
    features: Floats | None
    offer: Ints
    wrong: dict[str, Bools]


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
        self._offsets, self._arms, self._row_of_arm = [0], list[int](), list[int]()

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
        if self._offsets[1:] and has_features != bool(self._features):
            here, first = ("features", "none") if has_features else ("no features", "features")
            raise ValueError(f"the list of arms has {here}, but the first list of the log has {first}")
        added = []
        for position, (arm, features) in enumerate(arms):
            if has_features and features is None:
                raise ValueError("an arm has no features, but another arm of the same list has features")
            key = keys[position] if keys is not None else json.dumps(features, sort_keys=True)
            added.append((arm, self._row(features, key) if has_features else -1))
        for arm, row in added:
            index = -1 if arm is None else self.arm_ids.setdefault(arm, len(self.arm_ids))
            self._arms.append(index)
            self._row_of_arm.append(row if has_features else index)
        self._offsets.append(len(self._arms))
        return len(self._offsets) - 2

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
        offers = Offers(np.array(self._offsets), np.array(self._arms, np.int32), np.array(self._row_of_arm, np.int32))
        return offers, list(self.arm_ids), np.array(self._features) if self._features else None


def collect_offers(lists: Sequence[Any], usable: Bools, dim: int) -> CollectedOffers:
    """Return the distinct lists of arms of a column. Rows that are not usable are ignored."""
    builder = OfferBuilder(dim)
    known: dict[Any, int | str] = {}  # index of a list, or the reason why it cannot be used
    offer = np.zeros(len(lists), np.int64)
    wrong: dict[str, Bools] = {}
    for row, value in enumerate(lists):
        if not usable[row]:
            continue
        key = value if isinstance(value, str) else json.dumps(value, default=str)
        found = known.get(key)
        if found is None:
            try:
                found = builder.add(parse_arms(value))
            except (ValueError, TypeError) as error:
                found = "not valid JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            known[key] = found
        if isinstance(found, str):
            wrong.setdefault(found, np.zeros(len(lists), bool))[row] = True
        else:
            offer[row] = found
    offers, arm_ids, features = builder.build()
    return CollectedOffers(offers, arm_ids, features, offer, wrong)


def catalogue_offer(catalogue: Sequence[str] | None, chosen: Any) -> tuple[Offers, list[str], None]:
    """Return one list of arms for all decisions: the catalogue, or the distinct chosen arms in alphabetical order."""
    arm_ids = sorted(chosen.unique().to_list()) if catalogue is None else list(dict.fromkeys(catalogue))
    indices = np.arange(len(arm_ids), dtype=np.int32)
    return Offers(np.array([0, len(arm_ids)]), indices, indices), arm_ids, None


def chosen_positions(offers: Offers, arm_ids: Sequence[str], offer: Ints, chosen: Any, usable: Bools) -> Ints:
    """Return the position of the chosen arm in the list of each row; −1 if it is not in the list.

    A chosen arm, of a Polars series, is the id of an arm. If the arms of a list have no ids, it is the position of the
    arm, from 0.
    """
    names = np.array([*arm_ids, None], dtype=object)
    tables: dict[int, dict[str, int]] = {}
    positions = np.full(len(offer), -1, np.int64)
    chosen_names, codes = encode_text(chosen)
    known = np.flatnonzero(usable)
    for start in range(0, len(known), CHUNK):
        rows = known[start : start + CHUNK]
        pairs, pair_of_row = np.unique(offer[rows] * len(chosen_names) + codes[rows], return_inverse=True)
        found = np.empty(len(pairs), np.int64)
        for pair, number in enumerate(pairs.tolist()):
            index, code = divmod(number, len(chosen_names))
            table = tables.get(index)
            if table is None:
                span = slice(offers.offsets[index], offers.offsets[index + 1])
                listed = names[offers.arms[span]].tolist()  # −1 is None
                table = tables[index] = {
                    str(position) if arm is None else arm: position for position, arm in enumerate(listed)
                }
            found[pair] = table.get(chosen_names[code], -1)
        positions[rows] = found[pair_of_row]
    return positions
