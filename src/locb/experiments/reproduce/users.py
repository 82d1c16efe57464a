"""Reproduction of Figure 1: map of users in two dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Interactions
from locb.evaluation.findings import Claim, Criterion, GroupMap, ResultTable
from locb.experiments import paper_values as paper
from locb.experiments.dataset_summary import MAX_GAMMA, describe_group_map
from locb.experiments.environment_factory import make_environment, true_clusters
from locb.experiments.jobs import Job
from locb.experiments.reproduce.data_set import DataSet
from locb.experiments.reproduce.target import JobOutcomes, Sizes, TargetFindings

SECTION = "users"
TRIVIAL = "Two users with real-valued preference vectors are different with probability 1."


def plan(data: DataSet, sizes: Sizes) -> list[Job]:
    """Return an empty list of jobs, because Figure 1 shows the environment without a run."""
    return []


def summarize(data: DataSet, sizes: Sizes, outcomes: JobOutcomes) -> TargetFindings:
    """Return a map of 60 users, a table of their distances, and the claim that all users have different preferences.

    The users of the synthetic environment do not depend on the noise of rewards, so they are shown once.
    """
    if data.name != data.paper_name:
        return TargetFindings([], [], [])
    env: Any = make_environment({**data.environment, "n_users": paper.MAP_USERS}, sizes.seed, warn=False)
    gamma = paper.GAMMA
    if isinstance(env, Interactions) and env.users_in_groups(gamma) < env.n_users / 2:
        gamma = min(env.scaled_gamma(), MAX_GAMMA)
    groups = [cluster.tolist() for cluster in true_clusters(env, gamma)]
    distances = np.linalg.norm(env.theta[:, None] - env.theta[None, :], axis=2)[np.triu_indices(env.n_users, 1)]
    subtitle = describe_group_map(env.n_users, gamma)
    name, title = f"users-{data.name}", f"Users: {data.family}"
    row: dict[str, Any] = {
        "users": env.n_users,
        "smallest distance": float(distances.min()),
        "median distance": float(np.median(distances)),
        "largest distance": float(distances.max()),
        "share of pairs below 0.2": float((distances < paper.GAMMA).mean()),
    }
    different = int((distances > 0.0).sum())
    criteria = [Criterion.always("pairs of users with different preference vectors", different, distances.size)]
    statement = "No two users have the same preference vector."
    source = "Cluster structure, Figure 1"
    return TargetFindings(
        [ResultTable(name, SECTION, title, [row])],
        [GroupMap(name, SECTION, title, subtitle, env.theta, groups)],
        [Claim(SECTION, data.family, statement, source, criteria, evidence=name, vacuous=TRIVIAL)],
    )
