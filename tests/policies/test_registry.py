"""The registry: names and properties of policies that other parts of the package use."""

from typing import Any

import numpy as np
import pytest

import locb
from locb.policies import POLICIES, REGISTRY, PolicySpec, describe_parameters, policy_spec, register_policy
from locb.policies.base.user_batch import OverlappingGroups, Partition
from policies.helpers import DIM, Popular, make, make_rounds, state_of

BUILT_IN = ["locb", "eloc", "linucb-one", "linucb-ind", "club", "sclub"]
BUILT_IN += ["lints-one", "lints-ind", "hybrid-linucb", "mixed-effects", "dynucb", "cab", "rclumb"]


def test_the_built_in_policies() -> None:
    assert list(POLICIES) == list(REGISTRY) == BUILT_IN
    labels = [spec.label for spec in REGISTRY.values()]
    assert labels[:6] == ["LOCB", "ELOC", "LinUCB-ONE", "LinUCB-IND", "CLUB", "SCLUB"]
    assert labels[6:] == ["LinTS-ONE", "LinTS-IND", "Hybrid LinUCB", "MixedEffects", "DynUCB", "CAB", "RCLUMB"]
    assert [name for name, spec in REGISTRY.items() if spec.compare_by_default] == BUILT_IN[:6]
    assert repr(POLICIES) == f"POLICIES({', '.join(BUILT_IN)})"
    with pytest.raises(ValueError, match="policy: unknown policy 'oracle'; choose from locb, eloc, "):
        policy_spec("oracle")


@pytest.mark.parametrize("name", BUILT_IN)
def test_properties_are_those_of_the_policy(name: str) -> None:
    spec, policy = REGISTRY[name], make(name)
    parameters = {parameter.name for parameter in spec.parameters}
    assert spec.has_seeds == ("n_seeds" in parameters)
    assert spec.late_seeds == ("late_seeds" in parameters)
    assert spec.service_defaults.keys() <= parameters
    assert spec.can_be_final == bool(np.isfinite(policy.group_summary().progress).any())
    groups = policy.user_batch(np.arange(policy.n_users)).groups
    assert isinstance(groups, OverlappingGroups if spec.overlapping or not policy.clusters() else Partition)


@pytest.mark.parametrize("name", BUILT_IN)
def test_initial_capacity_of_a_service(name: str) -> None:
    spec = REGISTRY[name]
    parameters = spec.service_parameters({})
    capacity = spec.initial_capacity(parameters)
    policy: Any = spec.make_for_service(n_users=capacity, dim=3, parameters=parameters)
    assert policy.n_users == capacity == (30 if name == "eloc" else 1)
    policy.add_users(40)
    if spec.has_seeds:
        assert [cluster.seed for cluster in policy.clusters()][:30] == list(range(30))


@pytest.mark.parametrize(("name", "parameters"), [*((name, {}) for name in BUILT_IN), ("club", {"graph": "complete"})])
def test_users_can_be_added_one_by_one_or_all_at_once(name: str, parameters: dict[str, Any]) -> None:
    """A service adds users one by one when they arrive, and all at once when it replays its log."""
    spec = REGISTRY[name]
    parameters = spec.service_parameters(parameters)
    rounds, states = make_rounds(300, seed=3), []
    for counts in ([7], [1] * 7):
        policy: Any = spec.make_for_service(n_users=spec.initial_capacity(parameters), dim=DIM, parameters=parameters)
        policy.add_users(50 - policy.n_users)
        policy.play(rounds)
        for count in counts:
            policy.add_users(count)
        policy.play(rounds)
        states.append(state_of(policy))
    assert states[0] == states[1]


def test_help_for_a_service_gives_the_defaults_of_a_service() -> None:
    assert 'bonus (str, default "mean";' in describe_parameters("locb")
    lines = describe_parameters("locb", for_service=True).splitlines()
    assert any(line.startswith('bonus (str, default "pooled";') for line in lines)
    assert any(line.startswith("n_seeds (int or None, default 30;") for line in lines)
    assert not any(line.startswith(("seeds ", "late_seeds ", "n_users ", "dim ")) for line in lines)
    (gamma,) = describe_parameters("locb", only=["gamma"]).splitlines()
    description = "Intended maximum distance between preferences of two cluster members."
    assert gamma == f"gamma (float, default 0.2; > 0): {description}"


@pytest.mark.parametrize(("name", "parameter"), [("locb", "late_seeds"), ("eloc", "seeds"), ("club", "n_users")])
def test_service_refuses_parameters_that_it_sets(name: str, parameter: str) -> None:
    message = f"{parameter} cannot be set, because the service sets it: choose from .*(alpha|beta)"
    with pytest.raises(ValueError, match=message):
        policy_spec(name).service_parameters({parameter: 3})


def test_assignment_registers_a_custom_policy() -> None:
    POLICIES["popular"] = Popular
    try:
        spec = REGISTRY["popular"]
        assert spec.factory is POLICIES["popular"] is Popular
        assert (spec.label, spec.is_baseline, spec.has_seeds) == ("popular", False, False)
        assert isinstance(locb.make_policy("popular", n_users=2, dim=2), Popular)
        with pytest.raises(ValueError, match="policy 'popular' is already registered"):
            register_policy(PolicySpec("popular", Popular))
    finally:
        del POLICIES["popular"]
    assert "popular" not in POLICIES


def test_a_built_in_policy_that_is_assigned_again_has_its_properties() -> None:
    spec = policy_spec("locb")
    try:
        POLICIES["locb"] = lambda **parameters: locb.LOCB(**parameters)
        assert not policy_spec("locb").has_seeds  # a custom factory has the default properties
    finally:
        POLICIES["locb"] = spec.factory
    assert policy_spec("locb") is spec
