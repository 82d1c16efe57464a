"""The registry of policies: names, defaults and properties that other parts of the package use.

To add a policy to locb, write its file and add a ``PolicySpec`` to ``_BUILT_IN``. The command line, the service,
experiments and the documentation then include it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

from locb.common.validation import ParameterError, check_int
from locb.policies.base.policy import Policy
from locb.policies.cab import CAB
from locb.policies.club import CLUB
from locb.policies.dynucb import DynUCB
from locb.policies.eloc import ELOC
from locb.policies.hybrid import HybridLinUCB
from locb.policies.linucb import LinTS, LinUCB
from locb.policies.locb import LOCB
from locb.policies.mixed_effects import MixedEffects
from locb.policies.parameters import DEFAULT_SEEDS, Parameter, format_parameter
from locb.policies.rclumb import RCLUMB
from locb.policies.sclub import SCLUB


class CostClass(Enum):
    """Relative cost of a round with six features, without a unit.

    Used only to order runs and to predict their duration.
    """

    LIGHT = 1.0
    MODERATE = 2.0
    HEAVY = 20.0
    UNKNOWN = 50.0


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Name, factory and properties of a policy, for the service, experiments and reports.

    The defaults of the properties are safe for any custom policy.

    Parameters
    ----------
    name : str
        Name in ``POLICIES`` and on the command line.
    factory : callable
        Policy class, or a function that returns a policy; called with keyword arguments.
    label : str, optional
        Name in tables and charts. By default ``name``.
    has_seeds : bool
        Whether clusters are built around seed users. The policy then has the parameter ``n_seeds``. Otherwise, a
        cluster is named after its first member.
    late_seeds : bool
        Whether the policy has the parameter ``late_seeds``, with which users who are added later become seed users.
        Otherwise, if ``has_seeds``, a service creates the policy with ``n_seeds`` users, who are all seed users, and
        gives their indices to the first users who arrive.
    overlapping : bool
        Whether a user can be in several clusters.
    can_be_final : bool
        Whether a cluster can become final, after which it loses no members and accepts only users who are added later.
    cost_class : CostClass
        Relative cost of a round.
    service_defaults : mapping
        Defaults of parameters in a service, where they differ from those of the policy.
    is_baseline : bool
        Whether ``locb compare --scenarios`` uses this policy as a baseline for the other policies.
    compare_by_default : bool
        Whether ``locb compare`` runs the policy if ``--policies`` is not given.
    """

    name: str
    factory: Callable[..., Policy]
    label: str = ""
    has_seeds: bool = False
    late_seeds: bool = False
    overlapping: bool = True
    can_be_final: bool = True
    cost_class: CostClass = CostClass.UNKNOWN
    service_defaults: Mapping[str, Any] = field(default_factory=dict)
    is_baseline: bool = False
    compare_by_default: bool = False

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)

    @property
    def policy_class(self) -> Any:
        """The policy class if the factory is a class or a ``functools.partial`` of a class; otherwise the factory."""
        return self.factory.func if isinstance(self.factory, partial) else self.factory

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a caller of the factory can set; empty if the factory does not declare parameters."""
        fixed = self.factory.keywords if isinstance(self.factory, partial) else {}
        declared = getattr(self.policy_class, "parameters", ())
        return tuple(parameter for parameter in declared if parameter.name not in fixed)

    @property
    def parameters_of_service(self) -> tuple[Parameter, ...]:
        """The parameters that the configuration of a service can set. The service sets the users and the dimension."""
        set_by_service = ("n_users", "dim", "seeds", "late_seeds") if self.has_seeds else ("n_users", "dim")
        return tuple(parameter for parameter in self.parameters if parameter.name not in set_by_service)

    def service_parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters ``given``, and the defaults of a service for parameters that are not given.

        Raises
        ------
        ValueError
            If a parameter is set by the service itself.
        """
        own = {parameter.name for parameter in self.parameters} - {p.name for p in self.parameters_of_service}
        for name in own.intersection(given):
            allowed = ", ".join(parameter.name for parameter in self.parameters_of_service)
            raise ParameterError(name, f" cannot be set, because the service sets it: choose from {allowed}")
        parameters = {**self.service_defaults, **given}
        if self.has_seeds:
            parameters["n_seeds"] = check_int("n_seeds", parameters.get("n_seeds", DEFAULT_SEEDS), 1)
        return parameters

    def initial_capacity(self, parameters: Mapping[str, Any]) -> int:
        """Return the number of users with which a new service creates the policy."""
        return parameters["n_seeds"] if self.has_seeds and not self.late_seeds else 1

    def make_for_service(self, *, n_users: int, dim: int, parameters: Mapping[str, Any]) -> Policy:
        """Return a new policy for a service. If it has seed users, these are the first users who arrive.

        Raises
        ------
        ValueError
            If the policy does not have these parameters or rejects their values, or if its class is abstract.
        """
        arguments = {"n_users": n_users, "dim": dim, **parameters}
        if self.late_seeds:
            arguments |= {"n_seeds": n_users, "late_seeds": parameters["n_seeds"] - n_users}
        if inspect.isabstract(self.policy_class):
            raise ValueError(
                f"policy {self.name!r} is not complete: its class must define the methods "
                f"{', '.join(sorted(self.policy_class.__abstractmethods__))}"
            )
        try:
            inspect.signature(self.factory).bind(**arguments)
        except TypeError as error:
            allowed = ", ".join(parameter.name for parameter in self.parameters_of_service)
            hint = f"; its parameters are {allowed}" if allowed else ""
            unknown = [name for name in parameters if name not in inspect.signature(self.factory).parameters]
            if unknown:
                raise ParameterError(unknown[0], f": policy {self.name!r} has no such parameter{hint}") from None
            raise ValueError(f"policy {self.name!r}: {error}{hint}") from None
        return self.factory(**arguments)


SPARSE_GRAPH = {"graph": "erdos-renyi"}  # a complete graph takes n²/8 bytes


def _baseline(name: str, factory: Callable[..., Policy], label: str, cost: CostClass, **properties: Any) -> PolicySpec:
    """Return the registry entry of a baseline. Its clusters, if it has any, are disjoint and never final."""
    properties |= {"overlapping": False, "can_be_final": False, "is_baseline": True}
    return PolicySpec(name, factory, label, cost_class=cost, **properties)


_BUILT_IN = (
    PolicySpec(
        "locb",
        LOCB,
        "LOCB",
        has_seeds=True,
        late_seeds=True,
        cost_class=CostClass.MODERATE,
        service_defaults={"bonus": "pooled"},  # its time per round does not depend on the number of members
        is_baseline=True,
        compare_by_default=True,
    ),
    PolicySpec(
        "eloc",
        ELOC,
        "ELOC",
        has_seeds=True,
        can_be_final=False,
        cost_class=CostClass.HEAVY,
        compare_by_default=True,
    ),
    _baseline("linucb-one", partial(LinUCB, shared=True), "LinUCB-ONE", CostClass.LIGHT, compare_by_default=True),
    _baseline("linucb-ind", partial(LinUCB, shared=False), "LinUCB-IND", CostClass.LIGHT, compare_by_default=True),
    _baseline("club", CLUB, "CLUB", CostClass.MODERATE, service_defaults=SPARSE_GRAPH, compare_by_default=True),
    _baseline("sclub", SCLUB, "SCLUB", CostClass.MODERATE, compare_by_default=True),
    _baseline("lints-one", partial(LinTS, shared=True), "LinTS-ONE", CostClass.LIGHT),
    _baseline("lints-ind", partial(LinTS, shared=False), "LinTS-IND", CostClass.LIGHT),
    _baseline("hybrid-linucb", HybridLinUCB, "Hybrid LinUCB", CostClass.LIGHT),
    _baseline("mixed-effects", MixedEffects, "MixedEffects", CostClass.LIGHT),
    _baseline("dynucb", DynUCB, "DynUCB", CostClass.LIGHT),
    _baseline("cab", CAB, "CAB", CostClass.HEAVY),
    _baseline("rclumb", RCLUMB, "RCLUMB", CostClass.MODERATE, service_defaults=SPARSE_GRAPH),
)

BUILT_IN_NAMES = frozenset(spec.name for spec in _BUILT_IN)

REGISTRY: dict[str, PolicySpec] = {spec.name: spec for spec in _BUILT_IN}


class _Factories(MutableMapping[str, Callable[..., Policy]]):
    """View of the registry as a mapping from names to factories. Assignment registers a custom policy."""

    def __getitem__(self, name: str) -> Callable[..., Policy]:
        return REGISTRY[name].factory

    def __setitem__(self, name: str, factory: Callable[..., Policy]) -> None:
        built_in = next((spec for spec in _BUILT_IN if spec.name == name and spec.factory is factory), None)
        REGISTRY[name] = built_in or PolicySpec(name, factory)

    def __delitem__(self, name: str) -> None:
        del REGISTRY[name]

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTRY)

    def __len__(self) -> int:
        return len(REGISTRY)

    def __repr__(self) -> str:
        return f"POLICIES({', '.join(REGISTRY)})"


POLICIES: MutableMapping[str, Callable[..., Policy]] = _Factories()
"""Policy factories by name. Assign a factory to a name to register a custom policy."""


def register_policy(spec: PolicySpec) -> None:
    """Add a policy to the registry under the name ``spec.name``.

    Raises
    ------
    ValueError
        If a policy with this name is already registered.
    """
    if spec.name in REGISTRY:
        raise ValueError(f"policy {spec.name!r} is already registered: choose another name")
    REGISTRY[spec.name] = spec


def policy_spec(name: str, *, parameter: str = "policy", others: Sequence[str] = ()) -> PolicySpec:
    """Return the registry entry of a policy.

    Parameters
    ----------
    name : str
        Name of the policy.
    parameter : str, default "policy"
        Parameter or option that contains the name, for the error message.
    others : sequence of str, optional
        Other values that the parameter accepts, for the error message.

    Raises
    ------
    ValueError
        If no policy has this name.
    """
    if name not in REGISTRY:
        raise ParameterError(parameter, f": unknown policy {name!r}; choose from {', '.join([*REGISTRY, *others])}")
    return REGISTRY[name]


def make_policy(name: str, **parameters: Any) -> Policy:
    """Return a new policy, given by its name in ``POLICIES``.

    Parameters
    ----------
    name : str
        A name in ``POLICIES``.
    **parameters
        Parameters of the policy, such as ``n_users`` and ``dim``.

    Raises
    ------
    ValueError
        If no policy has this name, or the value of a parameter is invalid.
    TypeError
        If a parameter is unknown, or a required parameter is missing.

    Examples
    --------
    >>> make_policy("linucb-one", n_users=2, dim=3).dim
    3
    """
    return policy_spec(name).factory(**parameters)


def describe_parameters(name: str, only: Collection[str] = (), *, for_service: bool = False) -> str:
    """Return the parameters of a policy as text, one per line, for command-line help.

    Parameters
    ----------
    name : str
        A name in ``POLICIES``.
    only : collection of str, optional
        Names of the parameters to describe. By default, all parameters except ``n_users`` and ``dim``.
    for_service : bool, default=False
        Whether to show the parameters and defaults of a service instead of those of the policy.
    """
    spec = policy_spec(name)
    defaults = spec.service_parameters({}) if for_service else {}
    declared = spec.parameters_of_service if for_service else spec.parameters
    shown = [p for p in declared if (p.name in only if only else p.name not in ("n_users", "dim"))]
    return "\n".join(format_parameter(replace(p, default=defaults.get(p.name, p.default))) for p in shown)
