"""Scenarios: named environments with settings, in which policies are compared."""

from locb.experiments.scenarios.registry import (
    DEVELOPMENT,
    EVALUATION,
    SCENARIOS,
    SEEDS_PER_SCENARIO,
    Scenario,
    dataset_scenarios,
    select_scenarios,
)

__all__ = [
    "DEVELOPMENT",
    "EVALUATION",
    "SCENARIOS",
    "SEEDS_PER_SCENARIO",
    "Scenario",
    "dataset_scenarios",
    "select_scenarios",
]
