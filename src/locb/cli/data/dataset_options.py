"""Options of ``locb data`` and ``locb compare`` that select and read a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from locb.cli.common import split_list

Zeros = Annotated[
    str | None,
    typer.Option(
        help="Which items are the arms with reward 0. **any**: all items that the user never liked. **rated**: items "
        "that the user rated and never liked. **shown**: items with a record of the user without a like, even if "
        "the user liked the item in another record.",
        show_default="any; shown for yahoo",
        rich_help_panel="Data",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Names of the columns of a table: user=…,item=…,rating=… (or reward=…), time=… for a column of times, and "
        "feature=… for each column that describes items. With --no-header: numbers of the columns, from 1.",
        rich_help_panel="Data",
    ),
]
Offer = Annotated[
    str | None,
    typer.Option(
        help="What a round of a table offers. **recorded**: items for which the user has a record, with the recorded "
        "rewards (any numbers), in the order of time. **one-liked**: one item that the user liked, with reward 1, and "
        "items with reward 0. The rewards of neither are an estimate of what a policy would earn.",
        show_default="recorded; one-liked with --like-above or --zeros",
        rich_help_panel="Data",
    ),
]
ItemFeatures = Annotated[
    Path | None,
    typer.Option(
        help="Second table, with one row per item; it replaces feature=… of --columns. The column of items has the "
        "name that item=… gives (with --no-header: it is the first column). All other columns are features.",
        rich_help_panel="Data",
    ),
]
LikeAbove = Annotated[
    str | None,
    typer.Option(
        help="For rounds of likes: ratings above this number are likes. A quantile such as **q75** is the smallest "
        "rating that at least 75% of the ratings do not exceed. The default is rejected if fewer than 1% or more than "
        "95% of the ratings would be likes.",
        show_default="3",
        rich_help_panel="Data",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Separator of the columns of a table in a text file, such as **';'**, **::** or **tab**.",
        show_default="detected",
        rich_help_panel="Data",
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The text files of a table have no header line. --columns has numbers, such as user=1,item=2,rating=3. In "
        "--item-features, the item is the first column.",
        rich_help_panel="Data",
    ),
]
FeaturesFrom = Annotated[
    str | None,
    typer.Option(
        help="Records from which the features of items are computed. **other-half**: a random half of the records, or "
        "with time=… the earlier half, which is then not used in rounds. **all**: all records, as in the paper; the "
        "features then contain the likes or rewards that are used in rounds. **own**, for a table: the columns that "
        "describe items, without computed features.",
        show_default="other-half; for a table with --offer recorded, own if columns describe items; yahoo has its own "
        "features",
        rich_help_panel="Data",
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        help="Cache folder of prepared data sets.",
        show_default="$LOCB_CACHE, else $XDG_CACHE_HOME/locb, else ~/.cache/locb",
        rich_help_panel="Data",
    ),
]

TABLE_OPTIONS = ("columns", "offer", "item_features", "separator", "no_header")
ROLES = ("user", "item", "rating", "reward", "time", "feature")


def data_settings(name: str, path: Path, **options: Any) -> dict[str, Any]:
    """Return settings of ``make_environment`` for a data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    path : Path
        Location of its files.
    **options
        Values of the options by name: zeros, columns, offer, item_features, like_above, features_from, separator,
        no_header and cache_dir.
        Options that are None or False are not part of the settings.
    """
    given = {option: value for option, value in options.items() if value not in (None, False)}
    for option in TABLE_OPTIONS if name != "table" else ():
        if option in given:
            raise ValueError(
                f"--{option.replace('_', '-')} is allowed only with the data set 'table', not with {name!r}"
            )
    if name == "yahoo" and "like_above" in given:
        raise ValueError("--like-above requires ratings; yahoo has clicks, so omit the option")
    if name == "yahoo" and "features_from" in given:
        raise ValueError("--features-from cannot be used with yahoo, which has its own features; omit the option")
    settings: dict[str, Any] = {"data": name, "path": str(path)}
    settings |= {
        option: str(given[option])
        for option in ("zeros", "offer", "item_features", "features_from", "cache_dir")
        if option in given
    }
    if "like_above" in given:
        settings["like_above"] = _parse_like_above(given["like_above"])
    if "separator" in given:
        settings["separator"] = {"tab": "\t", "\\t": "\t"}.get(given["separator"], given["separator"])
    if "no_header" in given:
        settings["header"] = False
    return settings | (_parse_columns(given.get("columns")) if name == "table" else {})


def _parse_like_above(text: str) -> float | str:
    """Return a number, or the text of a quantile, which the reader of the data set checks."""
    try:
        return float(text)
    except ValueError:
        return text


def _parse_columns(columns: str | None) -> dict[str, Any]:
    """Return the columns of a table by role (user, item, rating, reward, time), and a list of features if any."""
    if columns is None:
        raise ValueError("--columns is required for a table: user=…,item=…,rating=…")
    found: dict[str, Any] = {}
    features = []
    for pair in split_list("columns", columns):
        role, _, column = pair.partition("=")
        if role not in ROLES or not column:
            raise ValueError(
                f"--columns must consist of ROLE=COLUMN, where ROLE is {', '.join(ROLES[:-1])} or {ROLES[-1]} "
                f"and COLUMN is a column of the table, not {pair!r}"
            )
        if role == "feature":
            features.append(column)
        elif role in found:
            raise ValueError(f"--columns must set {role} once, not {role}={found[role]} and {pair}")
        else:
            found[role] = column
    missing = [role for role in ("user", "item") if role not in found]
    if missing:
        raise ValueError(f"--columns must set {' and '.join(missing)}, for example user=customer,item=product")
    return found | ({"features": features} if features else {})
