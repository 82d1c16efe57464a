"""Contextual bandits that find groups of similar users: the policies LOCB and ELOC, baselines, and experiments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from locb.common.live_store import set_store_reader
from locb.common.presentation import set_presenter

if TYPE_CHECKING:
    from locb import datasets, interop
    from locb.common.feature_hashing import features
    from locb.common.rounds import Rounds
    from locb.environments import (
        Categorical,
        Environment,
        Interactions,
        RecordedRewards,
        RecordedRounds,
        Synthetic,
    )
    from locb.evaluation.clusters import Cluster, ClusterScore, Membership, SimilarUser, match_clusters
    from locb.evaluation.results import Comparison, Run
    from locb.experiments.comparison.compare import compare
    from locb.experiments.simulate import simulate
    from locb.logs.evaluate import evaluate
    from locb.logs.groups.find_groups import find_groups
    from locb.logs.groups.user_groups import UserGroups
    from locb.logs.log import Log, LogWarning
    from locb.logs.results import Evaluation, Tuning
    from locb.logs.tune import tune
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
    from locb.recommender.recommender import Recommender
    from locb.recommender.results import Recommendation

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
    "Recommendation",
    "Recommender",
    "RecordedRewards",
    "RecordedRounds",
    "RewardScaleWarning",
    "Rounds",
    "Run",
    "SimilarUser",
    "Synthetic",
    "Tuning",
    "UserGroups",
    "compare",
    "datasets",
    "evaluate",
    "features",
    "find_groups",
    "interop",
    "load",
    "make_policy",
    "match_clusters",
    "register_policy",
    "simulate",
    "tune",
    "validate_parameters",
]

# Every public name is imported on first use, so that ``import locb.client`` needs neither NumPy nor Numba.
_MODULES = {
    "locb.common.feature_hashing": ("features",),
    "locb.common.rounds": ("Rounds",),
    "locb.environments": (
        "Categorical",
        "Environment",
        "Interactions",
        "RecordedRewards",
        "RecordedRounds",
        "Synthetic",
    ),
    "locb.evaluation.clusters": ("Cluster", "ClusterScore", "Membership", "SimilarUser", "match_clusters"),
    "locb.evaluation.results": ("Comparison", "Run"),
    "locb.experiments.comparison.compare": ("compare",),
    "locb.experiments.simulate": ("simulate",),
    "locb.logs.log": ("Log", "LogWarning"),
    "locb.logs.evaluate": ("evaluate",),
    "locb.logs.groups.find_groups": ("find_groups",),
    "locb.logs.groups.user_groups": ("UserGroups",),
    "locb.logs.results": ("Evaluation", "Tuning"),
    "locb.logs.tune": ("tune",),
    "locb.recommender.recommender": ("Recommender",),
    "locb.recommender.results": ("Recommendation",),
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
set_presenter(lambda: import_module("locb.report.notebook"))
set_store_reader(lambda: import_module("locb.service.store.export"))
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # with the imports above and without __getattr__, type checkers report unknown names

    def __getattr__(name: str) -> Any:
        if name in ("datasets", "interop"):
            return import_module(f"locb.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'locb' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
