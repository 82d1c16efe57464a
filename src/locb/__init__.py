"""Contextual bandits that find like-minded users: LOCB and its baselines, exact and compiled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from locb.common.feature_hashing import features
from locb.common.rounds import Rounds
from locb.environments import Environment, Interactions, Synthetic
from locb.evaluation.clusters import Cluster, ClusterScore, Membership, SimilarUser, match_clusters
from locb.policies import (
    CLUB,
    ELOC,
    LOCB,
    POLICIES,
    SCLUB,
    Checkpoint,
    Estimate,
    EvidenceSource,
    Explanation,
    LinUCB,
    Policy,
    load,
    make_policy,
)

if TYPE_CHECKING:
    from locb import datasets
    from locb.evaluation.results import Comparison, Run
    from locb.experiments.compare import compare
    from locb.experiments.simulate import simulate

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
    "EvidenceSource",
    "Explanation",
    "Interactions",
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
    "Comparison": "locb.evaluation.results",
    "Run": "locb.evaluation.results",
    "compare": "locb.experiments.compare",
    "simulate": "locb.experiments.simulate",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("locb.datasets")
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'locb' has no attribute {name!r}")
