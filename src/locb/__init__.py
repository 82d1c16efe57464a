"""Contextual bandits that find groups of similar users: the policies LOCB and ELOC, baselines, and experiments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locb import datasets
    from locb.common.feature_hashing import features
    from locb.common.rounds import Rounds
    from locb.environments import Categorical, Environment, Interactions, Synthetic
    from locb.evaluation.clusters import Cluster, ClusterScore, Membership, SimilarUser, match_clusters
    from locb.evaluation.results import Comparison, Run
    from locb.experiments.comparison.compare import compare
    from locb.experiments.simulate import simulate
    from locb.logs.evaluate import evaluate
    from locb.logs.log import Log, LogWarning
    from locb.logs.results import Evaluation
    from locb.policies import (
        CAB,
        CLUB,
        ELOC,
        LOCB,
        POLICIES,
        RCLUMB,
        SCLUB,
        Checkpoint,
        DynUCB,
        Estimate,
        EvidenceSource,
        Explanation,
        HybridLinUCB,
        LinTS,
        LinUCB,
        MixedEffects,
        Parameter,
        Policy,
        PolicySpec,
        RewardScaleWarning,
        load,
        make_policy,
        register_policy,
        validate_parameters,
    )

__version__ = "0.1.0"
__all__ = [
    "CAB",
    "CLUB",
    "ELOC",
    "LOCB",
    "POLICIES",
    "RCLUMB",
    "SCLUB",
    "Categorical",
    "Checkpoint",
    "Cluster",
    "ClusterScore",
    "Comparison",
    "DynUCB",
    "Environment",
    "Estimate",
    "Evaluation",
    "EvidenceSource",
    "Explanation",
    "HybridLinUCB",
    "Interactions",
    "LinTS",
    "LinUCB",
    "Log",
    "LogWarning",
    "Membership",
    "MixedEffects",
    "Parameter",
    "Policy",
    "PolicySpec",
    "RewardScaleWarning",
    "Rounds",
    "Run",
    "SimilarUser",
    "Synthetic",
    "compare",
    "datasets",
    "evaluate",
    "features",
    "load",
    "make_policy",
    "match_clusters",
    "register_policy",
    "simulate",
    "validate_parameters",
]

# Every public name is imported on first use, so that ``import locb.client`` needs neither NumPy nor Numba.
_MODULES = {
    "locb.common.feature_hashing": ("features",),
    "locb.common.rounds": ("Rounds",),
    "locb.environments": ("Categorical", "Environment", "Interactions", "Synthetic"),
    "locb.evaluation.clusters": ("Cluster", "ClusterScore", "Membership", "SimilarUser", "match_clusters"),
    "locb.evaluation.results": ("Comparison", "Run"),
    "locb.experiments.comparison.compare": ("compare",),
    "locb.experiments.simulate": ("simulate",),
    "locb.logs.log": ("Log", "LogWarning"),
    "locb.logs.evaluate": ("evaluate",),
    "locb.logs.results": ("Evaluation",),
    "locb.policies": (
        "RCLUMB",
        "CAB",
        "DynUCB",
        "MixedEffects",
        "LinTS",
        "HybridLinUCB",
        "CLUB",
        "ELOC",
        "LOCB",
        "POLICIES",
        "SCLUB",
        "Checkpoint",
        "Estimate",
        "EvidenceSource",
        "Explanation",
        "LinUCB",
        "Parameter",
        "Policy",
        "PolicySpec",
        "RewardScaleWarning",
        "load",
        "make_policy",
        "register_policy",
        "validate_parameters",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # with the imports above and without __getattr__, type checkers report unknown names

    def __getattr__(name: str) -> Any:
        if name == "datasets":
            return import_module("locb.datasets")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'locb' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
