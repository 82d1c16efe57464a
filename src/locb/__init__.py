"""Contextual bandits that find like-minded users: LOCB and its baselines, exact and compiled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from locb.clusters import Cluster, ClusterScore, Membership, SimilarUser, match_clusters
from locb.environments import Environment, Interactions, Synthetic
from locb.hashing import features
from locb.policies import (
    CLUB,
    ELOC,
    LOCB,
    POLICIES,
    SCLUB,
    Checkpoint,
    Estimate,
    Explanation,
    Lender,
    LinUCB,
    Policy,
    load,
    make_policy,
)
from locb.rounds import Rounds

if TYPE_CHECKING:
    from locb import datasets
    from locb.experiments.compare import compare
    from locb.experiments.simulate import simulate
    from locb.results import Comparison, Run

__version__ = "0.1.0"
__all__ = [
    "CLUB",
    "ELOC",
    "LOCB",
    "POLICIES",
    "SCLUB",
    "Checkpoint",
    "Cluster",
    "ClusterScore",
    "Comparison",
    "Environment",
    "Estimate",
    "Explanation",
    "Interactions",
    "Lender",
    "LinUCB",
    "Membership",
    "Policy",
    "Rounds",
    "Run",
    "SimilarUser",
    "Synthetic",
    "compare",
    "datasets",
    "features",
    "load",
    "make_policy",
    "match_clusters",
    "simulate",
]

# Found on first use, so that `import locb` costs little more than its compiler.
_LATER = {
    "Comparison": "locb.results",
    "Run": "locb.results",
    "compare": "locb.experiments.compare",
    "simulate": "locb.experiments.simulate",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("locb.datasets")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'locb' has no attribute {name!r}")
