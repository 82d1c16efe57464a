"""Policies of a comparison, given as names, classes, configured objects or factories."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from locb.common.validation import ParameterError
from locb.evaluation.results import PolicyResult
from locb.experiments.comparison.source_digest import source_digest
from locb.experiments.custom_policy import policy_source, register_custom_policy
from locb.policies import POLICIES, REGISTRY, Policy
from locb.policies.registry import policy_spec

SET_BY_RUN = ("n_users", "dim", "seed")  # parameters that a run sets
Grid = dict[str, tuple[Any, ...]]  # values of each parameter


@dataclass(frozen=True)
class Candidate:
    """Policy of a comparison.

    Attributes
    ----------
    name : str
        Name in the results.
    factory : callable
        Policy class or function, called with keyword arguments.
    configured : dict or None
        Parameters that the user has set in an object or a ``functools.partial``; empty for another factory. None for a
        name or a class, whose parameters the comparison sets.
    sizes : tuple of int or None
        ``n_users`` and ``dim`` of a configured object; None if the policy accepts any.
    identity : dict or None
        JSON values that identify the code of a custom policy; None for a policy of the package.
    """

    name: str
    factory: Callable[..., Policy]
    configured: dict[str, Any] | None = None
    sizes: tuple[int, int] | None = None
    identity: dict[str, Any] | None = None

    def parameter_sets(self, grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
        """Return all combinations of the values of a grid, reduced to the parameters that the policy has."""
        accepted = accepted_parameters(self.factory, dict(grid))
        return [dict(zip(accepted, values, strict=True)) for values in product(*accepted.values())]


def accepted_parameters(factory: Callable[..., Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the elements of ``parameters`` that ``factory`` accepts as keyword arguments."""
    known = inspect.signature(factory).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return parameters
    return {name: value for name, value in parameters.items() if name in known}


def is_policy(value: Any) -> bool:
    """Return whether a value is the name of a policy, a policy class or a policy."""
    if isinstance(value, str):
        return value in POLICIES
    return isinstance(value, Policy) or (isinstance(value, type) and issubclass(value, Policy))


def make_candidates(policies: Any, custom: Mapping[str, str] | None = None) -> list[Candidate]:
    """Return the candidates for one policy, a list of policies, or a mapping from names to policies.

    ``custom`` has the references ``file.py:Class`` of names that are already registered.

    Raises
    ------
    ValueError
        If an element is not a policy, or if two candidates have the same name.
    """
    if isinstance(policies, Mapping):
        found = [_candidate(policy, custom or {}, str(name)) for name, policy in policies.items()]
    else:
        elements = [policies] if isinstance(policies, str | Policy) or callable(policies) else policies
        if not isinstance(elements, Iterable):
            raise ParameterError("policies", f" must be policies or names, not {policies!r}")
        found = [_candidate(policy, custom or {}) for policy in elements]
    names = [candidate.name for candidate in found]
    if not names:
        raise ParameterError("policies", " must have at least one element, not 0")
    if len(set(names)) < len(names):
        advice = "give names with a dictionary, such as {'small': …, 'large': …}"
        raise ParameterError("policies", f" must be distinct names, not {', '.join(names)}; {advice}")
    return found


def _candidate(policy: Any, custom: Mapping[str, str], name: str | None = None) -> Candidate:
    if isinstance(policy, str):
        if policy not in POLICIES and ":" in policy:
            registered = register_custom_policy(policy)
            return Candidate(name or registered, POLICIES[registered], identity=policy_source(policy))
        factory = policy_spec(policy, parameter="policies").factory
        identity = policy_source(custom[policy]) if policy in custom else _identity(factory)
        return Candidate(name or policy, factory, identity=identity)
    if isinstance(policy, Policy):
        return _configured_candidate(policy, name)
    if isinstance(policy, type) and issubclass(policy, Policy):
        return Candidate(name or _class_name(policy), policy, identity=_identity(policy))
    if not callable(policy) or isinstance(policy, type):
        raise ParameterError(
            "policies", f" must be names, policy classes, policies or functions that return a policy, not {policy!r}"
        )
    configured = dict(policy.keywords) if isinstance(policy, partial) else {}
    return Candidate(name or _factory_name(policy), policy, configured, identity=_identity(policy))


def _configured_candidate(policy: Policy, name: str | None) -> Candidate:
    """Return the candidate for a configured object: each run has an untrained copy with its own random seed."""
    try:
        parameters = policy.get_params()
    except AttributeError as error:
        raise ParameterError("policies", f": {error}; or give the class, or a function that returns a policy") from None
    kind = type(policy)
    defaults = {parameter.name: parameter.default for parameter in policy.parameters}
    configured = {key: value for key, value in parameters.items() if key not in SET_BY_RUN}
    changed = {key: value for key, value in configured.items() if value != defaults[key] and key != "seeds"}
    made = partial(kind, **configured)
    return Candidate(
        name or _with_parameters(_class_name(kind), changed),
        made,
        configured,
        (policy.n_users, policy.dim),
        _identity(made),
    )


def _class_name(kind: type) -> str:
    """Return the name of a class in the registry; for other classes, the name of the class."""
    return next((name for name, spec in REGISTRY.items() if spec.factory is kind), kind.__name__)


def _factory_name(factory: Callable[..., Any]) -> str:
    if isinstance(factory, partial):
        name = _class_name(factory.func) if isinstance(factory.func, type) else _factory_name(factory.func)
        return _with_parameters(name, factory.keywords)
    name = getattr(factory, "__name__", type(factory).__name__)
    if name == "<lambda>":
        raise ParameterError("policies", ": a lambda has no name; use a dictionary, such as {'name': lambda …}")
    return str(name)


def _with_parameters(name: str, parameters: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return f"{name}({shown})" if shown else name


def _identity(factory: Any) -> dict[str, Any] | None:
    digest = source_digest(factory)
    return None if digest is None else {"digest": digest}


def check_grid(grid: Mapping[str, Any] | None, candidates: Sequence[Candidate]) -> tuple[Grid, dict[str, Grid]]:
    """Return the values of the parameters of all policies, and those of single policies by name.

    Parameters
    ----------
    grid : mapping or None
        Parameter → values for all policies that have the parameter, or name of a policy → mapping of this form.
    candidates : sequence of Candidate
        Policies of the comparison.

    Raises
    ------
    ValueError
        If none of the policies has one of the parameters, or if the values of a parameter are empty or not distinct.
    """
    shared: Grid = {}
    own: dict[str, Grid] = {}
    by_name = {candidate.name: candidate for candidate in candidates}
    for key, values in (grid or {}).items():
        if isinstance(values, Mapping):
            if key not in by_name:
                raise ParameterError(
                    "grid", f": policy {key!r} is not in the comparison; choose from {', '.join(by_name)}"
                )
            own[key] = {name: _check_values(name, several, [by_name[key]]) for name, several in values.items()}
        else:
            shared[key] = _check_values(key, values, candidates)
    return shared, own


def _check_values(name: str, values: Any, candidates: Sequence[Candidate]) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("grid", f" must have a list of values for {name}, not {values!r}")
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if not values:
        raise ParameterError("grid", f" must have at least one value for {name}, not an empty list")
    if any(value in values[:index] for index, value in enumerate(values)):
        raise ParameterError("grid", f" must have distinct values for {name}, not {', '.join(map(str, values))}")
    if name in SET_BY_RUN:
        raise ParameterError("grid", f" cannot have {name}, which the comparison sets for each run; omit it")
    if not any(accepted_parameters(candidate.factory, {name: None}) for candidate in candidates):
        names = ", ".join(candidate.name for candidate in candidates)
        known = {key for candidate in candidates for key in inspect.signature(candidate.factory).parameters}
        allowed = ", ".join(sorted(known.difference(SET_BY_RUN)))
        raise ParameterError(
            "grid", f": no compared policy ({names}) has the parameter {name!r}; choose from {allowed}"
        )
    return tuple(values)


def edge_notes(results: Sequence[PolicyResult]) -> list[str]:
    """Return a note on parameters whose best value is the smallest or largest of at least three values, or no note.

    Of two values, the best one is always at the edge of the grid, so there is no note.
    """
    edges = []
    for policy in dict.fromkeys(result.policy for result in results):
        own = [result for result in results if result.policy == policy]
        best = min(own, key=lambda result: float(result.final_regret.mean()))
        for name, value in best.parameters.items():
            values: set[Any] = {result.parameters.get(name) for result in own}
            if len(values) < 3 or not all(isinstance(number, int | float) for number in values):
                continue
            kind = {min(values): "smallest", max(values): "largest"}.get(value)
            if kind is not None:
                edges.append(f"{name} = {value:g} of {policy} ({kind})")
    if not edges:
        return []
    return [f"The best value is at the edge of the grid for {', '.join(edges)}: values beyond it may be better."]
