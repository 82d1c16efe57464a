"""Result of ``find_groups``: tables of groups, users, memberships and preferences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.common.frames import make_frame
from locb.common.presentation import presenter
from locb.common.validation import ParameterError, check_int

IN_GROUP, IS_ALONE, NO_GROUP_FITS = "in a group", "alone", "no group fits"
NOT_ENOUGH = "not enough data to tell"
STATUSES = (IN_GROUP, IS_ALONE, NO_GROUP_FITS, NOT_ENOUGH)
TABLES = ("users", "groups", "memberships", "likes", "gammas")


@dataclass(frozen=True, repr=False)
class UserGroups:
    """Groups of users with similar preferences in a log. Tables are Polars data frames; see ``to_pandas``.

    Attributes
    ----------
    users : DataFrame
        One row per user: user, rows (number of rows), group (null: none), probability of the group, status ("in a
        group", "alone", "no group fits" or "not enough data to tell"), radius of the estimate. A user is alone if a
        group has no other member; such groups are not in ``groups``.
    groups : DataFrame
        One row per group, largest first: group, users, rows, reward (mean), probability (mean of the members),
        certificate (upper bound on the distance of any two members), core_certificate (the same for the half of the
        members with the smallest radii), stability (mean Jaccard similarity in bootstrap samples of users,
        with further noise of the rewards).
    memberships : DataFrame
        All memberships with a probability of at least 5%: user, group, probability. Users may have several.
    likes : DataFrame
        What the members of each group like, in the units of the reward: group, feature, step, effect, average effect
        of all groups, and the difference, largest first. The effect of a number is that of one step (its standard
        deviation, or 1 for entries of lists), that of text is the difference from the mean of all rows, and that of an
        arm is its mean reward.
    gammas : DataFrame
        Values of gamma that were compared; empty if gamma was given.
    theta : (users, D) floats
        Estimate of the preference vector of each user, in the order of ``users``.
    columns : dict of str to str
        Where each part of the log was found.
    settings : dict
        Arguments, and values that were chosen.
    skipped : sequence of SkippedRows
        Rows of the log that were not used, by reason; ``str`` gives the reason, the number and examples.
    notes : sequence of str
        Assumptions and limitations.
    """

    users: Any
    groups: Any
    memberships: Any
    likes: Any
    gammas: Any
    theta: Floats
    columns: dict[str, str]
    settings: dict[str, Any]
    skipped: Sequence[Any] = ()
    notes: Sequence[str] = ()

    def to_pandas(self, table: str = "users") -> Any:
        """Return one of the tables as a pandas data frame: "users", "groups", "memberships", "likes" or "gammas".

        ``to_pandas`` of a Polars data frame needs the package pyarrow; this method does not.
        """
        if table not in TABLES:
            raise ParameterError("table", f" must be one of {', '.join(TABLES)}, not {table!r}")
        return make_frame(getattr(self, table).to_dict(as_series=False), "pandas")

    def members(self, group: int) -> Any:
        """Return the rows of ``users`` of one group, most probable first."""
        import polars as pl

        check_int("group", group, 0, self.groups.height - 1)
        return self.users.filter(pl.col("group") == group).sort("probability", descending=True, maintain_order=True)

    def similar_users(self, user: Any, limit: int = 10) -> Any:
        """Return the users with the estimates nearest to that of a user.

        If the user is in a group, only members of this group are returned. The table has the columns user, distance,
        radius (of the estimate of the other user), rows and group.

        Raises
        ------
        ValueError
            If the user is not in the log.
        """
        import polars as pl

        limit = check_int("limit", limit, 1)
        names = self.users["user"]
        found = (names == user).arg_true() if names.dtype == pl.String or not isinstance(user, str) else []
        if not len(found):
            known = f"the log has user ids of the type {names.dtype}, such as {names[0]!r}"
            raise ValueError(f"user {user!r} is not in the log; {known}")
        index = int(found[0])
        group = self.users["group"][index]
        others = np.arange(len(names)) if group is None else (self.users["group"] == group).arg_true().to_numpy()
        others = others[others != index]
        distances = np.linalg.norm(self.theta[others] - self.theta[index], axis=1)
        nearest = np.argsort(distances, kind="stable")[:limit]
        rows = self.users[others[nearest]]
        return rows.select("user", pl.Series("distance", distances[nearest]), "radius", "rows", "group")

    def summary(self) -> dict[str, str]:
        """Return facts about the result by name, as text."""
        counts = dict(self.users["status"].value_counts().iter_rows())
        facts = {"groups": f"{self.groups.height:,}", "users": f"{self.users.height:,}"}
        facts["rows"] = f"{int(self.users['rows'].sum()):,}"
        for status in STATUSES:
            count = int(counts.get(status, 0))
            if count or status != IS_ALONE:
                facts[status] = f"{count:,} ({count / self.users.height:.1%})"
        if "gamma" in self.settings:
            gamma, scale = self.settings["gamma"], self.settings["scale"]
            facts["gamma"] = f"{gamma:g}" + (" (chosen)" if self.gammas.height else "")
            facts["gamma"] += f", {gamma * scale:.3g} in units of the reward" if scale != 1.0 else ""
        return facts

    def plot_users(self) -> Any:
        """Return an Altair chart: a map of the users, coloured by group."""
        return presenter().plot_user_groups(self)

    def plot_gammas(self) -> Any:
        """Return an Altair chart: evidence and number of groups for each value of gamma that was compared.

        Raises
        ------
        ValueError
            If no values of gamma were compared.
        """
        if not self.gammas.height:
            raise ParameterError("gamma", " was not chosen by find_groups, so there is no chart of values; omit gamma")
        return presenter().plot_gammas(self)

    def save_report(self, path: str | Path) -> Path:
        """Write the HTML report of ``locb groups`` to a file, and return its path."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(presenter().page_of_groups(self), encoding="utf-8")
        return file

    def __repr__(self) -> str:
        return f"UserGroups({', '.join(f'{name}: {text}' for name, text in self.summary().items())})"

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in self.summary().items())
        return f"<table><caption>locb.UserGroups</caption>{facts}</table>{self.groups._repr_html_()}"
