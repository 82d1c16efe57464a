"""Policies (contextual bandits), their base classes, and the registry of policies by name."""

from locb.policies.base.checkpoints import Checkpoint
from locb.policies.base.compiled import CompiledPolicy
from locb.policies.base.explanations import Estimate, EvidenceSource, Explanation
from locb.policies.base.persistence import load
from locb.policies.base.policy import Policy
from locb.policies.base.reward_scale import RewardScaleWarning
from locb.policies.cab import CAB
from locb.policies.club import CLUB
from locb.policies.dynucb import DynUCB
from locb.policies.eloc import ELOC
from locb.policies.hybrid import HybridLinUCB
from locb.policies.linucb import LinTS, LinUCB
from locb.policies.locb import LOCB
from locb.policies.mixed_effects import MixedEffects
from locb.policies.parameters import Parameter, parameter_table, validate_parameters
from locb.policies.rclumb import RCLUMB
from locb.policies.registry import (
    POLICIES,
    REGISTRY,
    PolicySpec,
    describe_parameters,
    make_policy,
    policy_spec,
    register_policy,
)
from locb.policies.sclub import SCLUB

__all__ = [
    "CAB",
    "CLUB",
    "ELOC",
    "LOCB",
    "POLICIES",
    "RCLUMB",
    "REGISTRY",
    "SCLUB",
    "Checkpoint",
    "CompiledPolicy",
    "DynUCB",
    "Estimate",
    "EvidenceSource",
    "Explanation",
    "HybridLinUCB",
    "LinTS",
    "LinUCB",
    "MixedEffects",
    "Parameter",
    "Policy",
    "PolicySpec",
    "RewardScaleWarning",
    "describe_parameters",
    "load",
    "make_policy",
    "parameter_table",
    "policy_spec",
    "register_policy",
    "validate_parameters",
]
