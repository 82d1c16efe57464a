"""Data of the user map on a comparison page: the clusters of each policy at every checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from locb.evaluation.results import Comparison, sample_users
from locb.report.charts.report_maps import assign_clusters, project
from locb.report.curves import round_numbers


def cluster_timeline_data(comparison: Comparison) -> dict[str, Any] | None:
    """Return the positions of users and their clusters at every checkpoint; None if no policy finds clusters.

    The list ``entries`` has one element per policy and parameters, which is None for a policy without clusters. True
    clusters are numbered from 0. A user in found clusters has the number of the matched true cluster (see
    ``assign_clusters``). −1 means that no cluster contains the user.
    """
    user_map = comparison.user_map
    if user_map is None or not len(comparison.cluster_checkpoints):
        return None
    count = len(user_map.theta)
    sample = sample_users(count)
    truth = [np.intersect1d(members, sample) for members in user_map.truth]
    sampled_map = replace(user_map, truth=[members.tolist() for members in truth if len(members)])
    true_of = np.array(assign_clusters(replace(sampled_map, found=[]))[0])
    points = project(user_map.theta)[sample]
    entries: list[dict[str, Any] | None] = []
    for entry in comparison.results:
        if entry.cluster_history is None:
            entries.append(None)
            continue
        timeline: dict[str, Any] = {"cluster": [], "cluster_count": []}
        for found in entry.cluster_history.clusters:
            _, found_of, counts = assign_clusters(replace(sampled_map, found=[members.tolist() for members in found]))
            timeline["cluster"].append(np.array(found_of)[sample].tolist())
            timeline["cluster_count"].append(np.array(counts)[sample].tolist())
        entries.append(timeline)
    all_users = len(sample) == count
    sample_text = f"All {count:,} users" if all_users else f"Random sample of {len(sample):,} of {count:,} users"
    return {
        "rounds": comparison.cluster_checkpoints.tolist(),
        "users": sample.tolist(),
        "x": round_numbers(points[:, 0].tolist()),
        "y": round_numbers(points[:, 1].tolist()),
        "true_cluster": true_of[sample].tolist(),
        "n_clusters": len(sampled_map.truth),
        "sample": sample_text,
        "entries": entries,
    }
