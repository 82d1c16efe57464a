"""Data frames of the result of ``find_groups``, which are also its CSV files. ``report/tables`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.kernels.common.diameters import diameter, diameter_bound
from locb.logs.groups.assignment import ALONE, NO_GROUP, Assignment, Estimates
from locb.logs.groups.gamma_choice import GammaScore
from locb.logs.groups.user_groups import IN_GROUP, IS_ALONE, NO_GROUP_FITS, NOT_ENOUGH, UserGroups
from locb.logs.groups.user_sums import UserSums
from locb.logs.log import SkippedRows

CORE_SHARE = 0.5  # share of the members of a group in its core: those with the smallest radii
MAX_PAIRS = 20_000  # maximum number of members for an exact certificate, which takes at most about a second


def make_user_groups(
    sums: UserSums,
    found: Assignment,
    estimates: Estimates,
    stability: Floats,
    scores: Sequence[GammaScore],
    settings: dict[str, Any],
    columns: dict[str, str],
    skipped: Sequence[SkippedRows],
    notes: Sequence[str],
) -> UserGroups:
    """Return the tables of an assignment of users to groups."""
    import polars as pl

    labels = found.labels
    cases = [labels >= 0, labels == ALONE, labels == NO_GROUP]
    status = np.select(cases, [IN_GROUP, IS_ALONE, NO_GROUP_FITS], NOT_ENOUGH)
    group = pl.Series("group", labels).set(pl.Series(labels < 0), None)
    users = pl.DataFrame(
        {
            "user": sums.ids,
            "rows": sums.counts.astype(np.int64),
            "group": group,
            "probability": pl.Series(found.probabilities, nan_to_null=True),
            "status": pl.Series(status).cast(pl.Categorical),
            "radius": estimates.radii,
        }
    )
    listed = found.listed
    if listed is None:
        inside = np.flatnonzero(labels >= 0)
        listed = (inside, labels[inside], found.probabilities[inside])
    memberships = pl.DataFrame(
        {
            "user": sums.ids.gather(listed[0]),
            "group": listed[1],
            "probability": pl.Series(listed[2], nan_to_null=True),
        }
    )
    gammas = pl.DataFrame(scores, schema=list(GammaScore._fields), orient="row") if scores else pl.DataFrame()
    widest = 2.0 * settings["norm_bound"]
    if settings["method"] == "locb":
        widest = min(widest, settings["gamma"])  # by the construction of the groups
    groups = _group_table(sums, found, estimates, stability, widest)
    likes = _likes(sums, found, groups["users"].to_numpy())
    theta = found.theta @ sums.basis.T
    return UserGroups(users, groups, memberships, likes, gammas, theta, columns, settings, skipped, notes)


def certify(estimates: Estimates, members: Ints, widest: float) -> float:
    """Return an upper bound on the distance of any two members of a group; ``widest`` is a bound for every group."""
    theta, radii = estimates.theta[members], estimates.radii[members]
    bound = diameter if len(members) <= MAX_PAIRS else diameter_bound
    return min(bound(theta, radii), widest)


def _group_table(sums: UserSums, found: Assignment, estimates: Estimates, stability: Floats, widest: float) -> Any:
    import polars as pl

    order = np.argsort(found.labels, kind="stable")
    starts = np.searchsorted(found.labels[order], np.arange(len(found.centres) + 1))
    rows = []
    for group in range(len(found.centres)):
        members = order[starts[group] : starts[group + 1]]
        by_radius = members[np.argsort(estimates.radii[members], kind="stable")]
        core = by_radius[: max(2, round(CORE_SHARE * len(members)))]
        counts = sums.counts[members]
        rows.append(
            {
                "group": group,
                "users": len(members),
                "rows": int(counts.sum()),
                "reward": float(sums.rewards[members].sum() / counts.sum()),
                "probability": float(found.probabilities[members].mean()),
                "certificate": certify(estimates, members, widest),
                "core_certificate": certify(estimates, core, widest),
                "stability": float(stability[group]),
            }
        )
    schema: dict[str, Any] = dict.fromkeys(("group", "users", "rows"), pl.Int64)
    schema |= dict.fromkeys(("reward", "probability", "certificate", "core_certificate", "stability"), pl.Float64)
    return pl.DataFrame(rows, schema=schema).with_columns(pl.col(pl.Float64).fill_nan(None))


def _likes(sums: UserSums, found: Assignment, sizes: Floats) -> Any:
    import polars as pl

    effects = found.centres @ sums.effects.T + sums.offsets
    average = sizes @ effects / max(sizes.sum(), 1)
    count = len(effects)
    table = pl.DataFrame(
        {
            "group": np.repeat(np.arange(count), len(sums.names)),
            "feature": sums.names * count,
            "step": pl.Series(np.tile(sums.steps, count), nan_to_null=True),
            "effect": effects.ravel(),
            "average": np.tile(average, count),
            "difference": (effects - average).ravel(),
        }
    )
    return table.sort("group", pl.col("difference").abs(), descending=[False, True], maintain_order=True)
