"""Groups as they form: what the map of a comparison's page shows at each moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from locb.evaluation.results import Comparison, sample_users
from locb.report.charts import colour_groups, plane
from locb.report.curves import plain


def forming_shown(comparison: Comparison) -> dict[str, Any] | None:
    """Where users are, and at each moment who is in which cluster and in how many sets; None if nobody looked for sets.

    An entry without groups has None. Clusters count from 0, and −1 is none.
    """
    user_map = comparison.user_map
    if user_map is None or not len(comparison.cluster_checkpoints):
        return None
    count = len(user_map.theta)
    drawn = sample_users(count)
    truth = [np.intersect1d(members, drawn) for members in user_map.truth]
    seen = replace(user_map, truth=[members.tolist() for members in truth if len(members)])
    true_of = np.array(colour_groups(replace(seen, found=[]))[0])
    flat = plane(user_map.theta)[drawn]
    entries: list[dict[str, Any] | None] = []
    for entry in comparison.results:
        if entry.cluster_history is None:
            entries.append(None)
            continue
        kept: dict[str, Any] = {"group": [], "sets": []}
        for found in entry.cluster_history.clusters:
            _, found_of, held = colour_groups(replace(seen, found=[members.tolist() for members in found]))
            kept["group"].append(np.array(found_of)[drawn].tolist())
            kept["sets"].append(np.array(held)[drawn].tolist())
        entries.append(kept)
    how = f"All {count:,} users" if len(drawn) == count else f"{len(drawn):,} of {count:,} users, drawn by chance"
    return {
        "rounds": comparison.cluster_checkpoints.tolist(),
        "users": drawn.tolist(),
        "x": plain(flat[:, 0].tolist()),
        "y": plain(flat[:, 1].tolist()),
        "true": true_of[drawn].tolist(),
        "n_groups": len(seen.truth),
        "how": how,
        "entries": entries,
    }
