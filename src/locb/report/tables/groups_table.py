"""Tables of groups of users with similar preferences, for terminals and HTML pages."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from locb.logs.groups.user_groups import UserGroups

MAX_PRINTED = 20  # groups in the terminal
TOP = 3  # features that describe a group
SMALL = 0.2  # differences below this share of the largest one are not mentioned
GROUP_HEADINGS = (
    "group",
    "users",
    "rows",
    "mean reward",
    "mean probability",
    "certificate",
    "certificate of the core",
    "stability",
    "differs most from other groups in",
)
LIKE_HEADINGS = ("group", "feature", "step", "effect", "average of groups", "difference")
GAMMA_HEADINGS = ("gamma", "groups", "held-out users in a group", "log evidence per held-out user", "standard error")


def format_certificate(value: float, norm_bound: float) -> str:
    """Return a certificate as text. It is not informative if it is at least the largest possible distance."""
    return "not informative" if value >= 2.0 * norm_bound else f"{value:.3g}"


def top_differences(found: UserGroups, group: int) -> str:
    """Return the features whose effect differs most from that in other groups, with the differences."""
    import polars as pl

    rows = found.likes.filter((pl.col("group") == group) & (pl.col("feature") != "constant")).head(TOP)
    differences = rows["difference"].abs()
    rows = rows.filter((differences >= SMALL * (differences.max() or 0.0)) & (differences > 0))
    return ", ".join(f"{name} {_signed(number)}" for name, number in rows.select("feature", "difference").iter_rows())


def _signed(number: float) -> str:
    return (f"{number:+,.0f}" if abs(number) >= 100 else f"{number:+.2g}").replace("-", "−")


def group_rows(found: UserGroups) -> list[tuple[str, ...]]:
    """Return one row of text per group."""
    bound = float(found.settings["norm_bound"])

    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    return [
        (
            str(row["group"]),
            f"{row['users']:,}",
            f"{row['rows']:,}",
            f"{row['reward']:.4g}",
            share(row["probability"]),
            format_certificate(row["certificate"], bound),
            format_certificate(row["core_certificate"], bound),
            share(row["stability"]),
            top_differences(found, row["group"]) or "–",
        )
        for row in found.groups.iter_rows(named=True)
    ]


def like_rows(found: UserGroups) -> list[tuple[str, ...]]:
    """Return one row of text per group and feature."""
    return [
        (
            str(group),
            name,
            "–" if step is None else f"{step:.3g}",
            *(f"{value:.4g}" for value in (effect, average)),
            f"{difference:+.4g}".replace("-", "−"),
        )
        for group, name, step, effect, average, difference in found.likes.iter_rows()
    ]


def explain_likes(found: UserGroups) -> str:
    """Return the meaning of the first row of ``likes`` in words; an empty text if there is none."""
    names = set(found.likes["feature"])
    for row in found.likes.iter_rows(named=True):
        effect, average = (f"{row[name]:+.3g}".replace("-", "−") for name in ("effect", "average"))
        if row["feature"] == "constant":
            continue
        if row["step"] is not None:
            text = f"if {row['feature']} is {row['step']:.3g} higher, the expected reward changes by {effect}"
        elif "constant" in names:
            text = f"with {row['feature']}, the expected reward differs by {effect} from the mean of all rows"
        else:
            text = f"the mean reward of {row['feature']} is {effect.lstrip('+')}"
            average = average.lstrip("+")
        return f"Example: in group {row['group']}, {text} (average of all groups: {average})."
    return ""


def gamma_rows(found: UserGroups) -> list[tuple[str, ...]]:
    """Return one row of text per value of gamma."""
    return [
        (f"{gamma:g}", str(groups), f"{assigned:.1%}", f"{evidence:.4f}", f"{error:.4f}")
        for gamma, groups, assigned, evidence, error in found.gammas.iter_rows()
    ]


def make_groups_table(found: UserGroups) -> Table:
    """Return the table that ``locb groups`` prints: one row per group, largest first."""
    shown = (0, 1, 3, 5, 7, 8)
    count = found.groups.height
    title = "Groups" if count <= MAX_PRINTED else f"The {MAX_PRINTED} largest of {count} groups"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in shown:
        table.add_column(GROUP_HEADINGS[column], justify="left" if column == 8 else "right")
    for row in group_rows(found)[:MAX_PRINTED]:
        table.add_row(*(row[column] for column in shown))
    return table


def map_rows(found: UserGroups, points: Any, users: Any, shown: int) -> list[dict[str, Any]]:
    """Return the points of the map: users with positions, and the name of the group; small groups are "other"."""
    rows = []
    for (x, y), user in zip(points.tolist(), found.users[users].iter_rows(named=True), strict=True):
        group = user["group"]
        name = user["status"] if group is None else f"{group}" if group < shown else "other groups"
        rows.append(
            {
                "x": x,
                "y": y,
                "group": name,
                "user": str(user["user"]),
                "rows": user["rows"],
                "chance": user["probability"],
            }
        )
    return rows
