"""Columns of a log in a table: which column is the user, the chosen arm, the reward and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from locb.common.validation import ParameterError, check_choice
from locb.datasets.column_values import MISSING_WORDS, TimeParser, bare_numbers, choose_decimal, decimal_signs

# Usual names of columns, most specific first, as ``normalize`` returns them.
USUAL_NAMES: dict[str, tuple[str, ...]] = {
    part: tuple(names.split())
    for part, names in {
        "user": "user userid uid customer customerid visitor visitorid account accountid client clientid member "
        "memberid person personid session sessionid",
        "chosen": "chosen chosenarm arm armid action actionid choice shown variant variation treatment item itemid "
        "product productid article articleid campaign banner offer",
        "arms": "arms armids actions candidates candidateids offered options choices slate",
        "reward": "reward rewards outcome revenue profit click clicked clicks conversion converted purchase purchased "
        "sale sales amount rating value label response",
        "propensity": "propensity propensityscore pscore actionprob actionprobability loggingprobability loggingprob "
        "probability prob",
        "time": "time timestamp datetime date eventtime createdat decidedat ts",
    }.items()
}
REQUIRED = ("chosen",)
MEANINGS = {"user": "the user", "chosen": "the chosen arm", "reward": "the reward"}
COMMA_NUMBER = r"^[-+]?(\d+|[1-9]\d{0,2}(\.\d{3})+)(,\d*)?$"
UNIFORM = "uniform"  # value of propensity: each arm was chosen with the same probability


@dataclass(frozen=True)
class TableOptions:
    """Options of :func:`locb.logs.readers.table_logs.read_table`. A column that is None is found by its name."""

    user: str | Sequence[str] | None = None
    chosen: str | None = None
    arms: str | Sequence[str] | None = None
    reward: str | None = None
    propensity: str | float | None = None
    time: str | None = None
    features: Sequence[str] = ()
    dim: int | None = None
    decimal: str | None = None
    missing_reward: float | None = None
    separator: str | None = None
    header: bool = True
    allow_skipped: bool = False

    def __post_init__(self) -> None:
        if self.decimal is not None:
            check_choice("decimal", self.decimal, (".", ","))
        if isinstance(self.features, str):
            object.__setattr__(self, "features", [self.features])


@dataclass
class Columns:
    """Columns of each part of a log, and which of them were found by their names."""

    user: list[str] = field(default_factory=list)
    chosen: str = ""
    arms: str | None = None
    catalogue: list[str] | None = None  # ids of the arms of every decision, if they are given as an option
    reward: str | None = None
    propensity: str | float | None = None  # a column, "uniform", or the probability of every decision
    time: str | None = None
    features: list[str] = field(default_factory=list)
    detected: list[str] = field(default_factory=list)  # parts whose columns were found by their names
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """All columns that are needed."""
        propensity = self.propensity if isinstance(self.propensity, str) and self.propensity != UNIFORM else None
        parts = [*self.user, self.chosen, self.arms, self.reward, propensity, self.time, *self.features]
        return list(dict.fromkeys(part for part in parts if part))

    @property
    def keys(self) -> list[str]:
        """Columns of ids, which are read as text."""
        return list(dict.fromkeys([*self.user, self.chosen]))

    def describe(self) -> dict[str, str]:
        """Return the column of each part as text."""
        parts = {"user": " + ".join(self.user) or "none: decisions are treated as independent", "chosen": self.chosen}
        parts["arms"] = self.arms or ("given as an option" if self.catalogue else "all chosen arms, in every decision")
        parts |= {
            "reward": self.reward or "none",
            "propensity": str(self.propensity or "none"),
            "time": self.time or "none: row order",
        }
        if self.features:
            parts["features"] = ", ".join(self.features)
        return {name: text + (" (detected)" if name in self.detected else "") for name, text in parts.items()}


@dataclass(frozen=True)
class ColumnFormats:
    """Formats of columns that depend on all their values.

    Attributes
    ----------
    decimals : dict of str to str
        Decimal separator of each column of numbers that is text.
    numeric_features : list of str
        Columns of ``decimals`` that describe arms, and have a decimal comma. Other text that describes arms is labels.
    whole : set of str
        Columns of ids that are floats, but have only whole numbers.
    times : TimeParser or None
        Parser of the column of times.
    """

    decimals: dict[str, str]
    numeric_features: list[str]
    whole: set[str]
    times: TimeParser | None

    @classmethod
    def detect(cls, frames: Sequence[Any], columns: Columns, decimal: str | None) -> ColumnFormats:
        """Return the formats of the columns of lazy frames. ``decimal`` is the decimal separator; None to detect it."""
        import polars as pl

        frame = pl.concat(frames)
        schema = frame.collect_schema()
        numbers = [name for name in (columns.reward, columns.propensity) if isinstance(name, str) and name != UNIFORM]
        texts = dict.fromkeys(
            name for name in [*numbers, *columns.features] if schema[name] in (pl.String, pl.Categorical, pl.Enum)
        )
        facts: dict[str, Any] = {}
        for name in texts:
            text = bare_numbers(pl.col(name).cast(pl.String))
            facts[f"decimal {name}"] = decimal_signs(text)
            if name in columns.features:
                is_number = text.str.contains(COMMA_NUMBER) | text.is_in(list(MISSING_WORDS))
                facts[f"numeric {name}"] = is_number.fill_null(True).all() & text.str.contains(",", literal=True).any()
        for name in columns.keys:
            if schema[name].is_float():
                known = pl.col(name).fill_nan(None)
                whole = known.cast(pl.Int64, strict=False) == known
                facts[f"whole {name}"] = whole.fill_null(True).all()
        found = frame.select(**facts).collect(engine="streaming").row(0, named=True) if facts else {}
        numeric = [name for name in texts if name in numbers or found[f"numeric {name}"]]
        decimals = choose_decimals({name: found[f"decimal {name}"] for name in numeric}, decimal)
        return cls(
            decimals,
            [name for name in numeric if name in columns.features and decimals[name] == ","],
            {name for name in columns.keys if found.get(f"whole {name}")},
            TimeParser.detect(frame, columns.time) if columns.time else None,
        )


def choose_decimals(signs: dict[str, Any], decimal: str | None) -> dict[str, str]:
    """Return the decimal separator of each column with the given ``decimal_signs``; ``decimal`` if it is given.

    A column that could have either separator ("1,234") has a comma if another column has one.
    """
    chosen = {name: decimal or choose_decimal(found) for name, found in signs.items()}
    if "," in chosen.values():
        chosen |= {name: "," for name, found in signs.items() if not any(found)}
    return chosen


def normalize(name: str) -> str:
    """Return the name of a column in lower case, without spaces, "_", "-" and "."."""
    return re.sub(r"[\s_\-.]", "", name).lower()


def find_columns(
    available: Sequence[str], options: TableOptions, source: str, required: Sequence[str] = REQUIRED
) -> Columns:
    """Return the columns of a log. Columns that the options do not name are found by their names.

    Raises
    ------
    ValueError
        If the options name a column that does not exist, or a ``required`` part cannot be found.
    """
    columns = Columns(features=[str(feature) for feature in options.features])
    columns.user = _as_list(options.user)
    if isinstance(options.arms, str | None):
        columns.arms = options.arms
    else:
        columns.catalogue = [str(arm) for arm in options.arms]
    columns.propensity = options.propensity
    for part in ("chosen", "reward", "time"):
        value = getattr(options, part)
        setattr(columns, part, "" if value is None and part == "chosen" else None if value is None else str(value))
    _check_exist(columns, available, source)
    taken = set(columns.names)
    usual = {normalize(name): name for name in reversed(available)}
    for part, names in USUAL_NAMES.items():
        if getattr(columns, part) or (part == "arms" and columns.catalogue):
            continue
        found = next((usual[name] for name in names if name in usual and usual[name] not in taken), None)
        if found is not None:
            setattr(columns, part, [found] if part == "user" else found)
            columns.detected.append(part)
            taken.add(found)
    ignored = [usual[name] for name in USUAL_NAMES["propensity"] if name in usual and usual[name] not in taken]
    if columns.propensity is not None and "propensity" not in columns.detected and ignored:
        columns.notes.append(f"column {ignored[0]!r} is ignored, because propensity is {columns.propensity!r}")
    for part in required:
        if not getattr(columns, part):
            raise ParameterError(
                part,
                f" must name the column of {MEANINGS[part]}: {source} has no column with a usual name, such as "
                f"{', '.join(USUAL_NAMES[part][:4])}; it has {', '.join(available)}",
            )
    return columns


def given_columns(options: TableOptions) -> list[str]:
    """Return the columns of ids that the options name. Without a header, they are read as text."""
    return [*_as_list(options.user), *_as_list(options.chosen)]


def _as_list(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, str | int) else [str(column) for column in value]


def _check_exist(columns: Columns, available: Sequence[str], source: str) -> None:
    for part in ("user", "chosen", "arms", "reward", "propensity", "time", "features"):
        value = getattr(columns, part)
        if part == "propensity" and (value == UNIFORM or isinstance(value, float)):
            continue
        for column in _as_list(value) if value else ():
            if column not in available:
                close = [name for name in available if normalize(name) == normalize(column)]
                hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(available)}"
                raise ParameterError(part, f": {source} has no column {column!r}{hint}")
