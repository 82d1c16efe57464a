"""Environments of a comparison, given as names, settings, classes, objects or factories."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from locb.common.validation import ParameterError
from locb.environments import Environment
from locb.experiments.comparison.source_digest import source_digest
from locb.experiments.custom_policy import load_class, policy_source
from locb.experiments.environment_factory import make_environment
from locb.experiments.scenarios import SCENARIOS

DIGEST_ROUNDS = 64  # rounds whose values identify an environment


@dataclass(frozen=True)
class EnvironmentSource:
    """Source of the environments of a comparison, one per repeat.

    Attributes
    ----------
    name : str
        Name in the results.
    settings : dict
        JSON values that identify the environment, for reports and for the folder of finished runs.
    factory : callable or None
        Function of the random seed that returns the environment of a repeat; None if ``settings`` are settings of
        ``make_environment``.
    """

    name: str
    settings: dict[str, Any]
    factory: Callable[[int], Any] | None = None

    @property
    def data(self) -> str:
        """Name of the data set; "synthetic" for settings of a synthetic environment, else the name of the source."""
        return str(self.settings.get("data", self.settings.get("environment", "synthetic")))

    def make(self, seed: int, *, warn: bool = False) -> Environment:
        """Return the environment of the repeat with this random seed, with or without warnings about its data.

        Raises
        ------
        ValueError
            If the settings are invalid, or if the factory fails or does not return an environment.
        """
        if self.factory is None:
            return make_environment(self.settings, seed, warn=warn)
        try:
            env = self.factory(seed)
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"creating environment {self.name} raised {type(error).__name__}: {error}") from error
        if not isinstance(env, Environment):
            raise ParameterError("environments", f": {self.name} gives {env!r}, not a locb.Environment")
        return env


def make_sources(environments: Any, settings: dict[str, Any] | None, seed: int) -> list[EnvironmentSource]:
    """Return the sources for one environment, a list of environments, or a mapping from names to environments.

    Parameters
    ----------
    environments : object
        None for the environment that ``settings`` describe.
    settings : dict or None
        Settings of ``make_environment``. Only one of the two arguments may be given.
    seed : int
        Random seed of the first repeat, with which the rounds of an environment are drawn to identify it.
    """
    if environments is None:
        return [settings_source(dict(settings or {}))]
    if settings is not None:
        raise ParameterError("environment", " is an alternative to environments; give only one of them")
    if isinstance(environments, Mapping):
        found = [_source(value, seed, str(name)) for name, value in environments.items()]
    else:
        single = isinstance(environments, str | Environment) or callable(environments)
        elements = [environments] if single else environments
        if not isinstance(elements, Iterable):
            raise ParameterError("environments", f" must be environments or names, not {environments!r}")
        found = [_source(value, seed) for value in elements]
    names = [source.name for source in found]
    if not names:
        raise ParameterError("environments", " must have at least one element, not 0")
    if len(set(names)) < len(names):
        advice = "give names with a dictionary, such as {'small': …, 'large': …}"
        raise ParameterError("environments", f" must have distinct names, not {', '.join(names)}; {advice}")
    return found


def settings_source(settings: dict[str, Any], name: str | None = None) -> EnvironmentSource:
    """Return the source for settings of ``make_environment``."""
    kind = str(settings.get("data", "categorical" if "categories" in settings else "synthetic"))
    return EnvironmentSource(name or kind, settings)


def _source(value: Any, seed: int, name: str | None = None) -> EnvironmentSource:
    if isinstance(value, str) and ":" not in value:
        if value not in SCENARIOS:
            allowed = f"a scenario ({', '.join(SCENARIOS)}) or file.py:Class"
            raise ParameterError("environments", f": unknown environment {value!r}; choose {allowed}")
        return settings_source(SCENARIOS[value].settings, name or value)
    if isinstance(value, Mapping):
        return settings_source(dict(value), name)
    identity: dict[str, Any]
    if isinstance(value, str):
        kind = load_class(value, Environment)
        identity, factory, label = policy_source(value), _with_seed(kind), kind.__name__
    elif isinstance(value, Environment):
        identity, factory, label = {}, partial(_same, value), type(value).__name__
    elif callable(value):
        label = getattr(value.func if isinstance(value, partial) else value, "__name__", type(value).__name__)
        if label == "<lambda>" and name is None:
            raise ParameterError("environments", ": a lambda has no name; use a dictionary, such as {'name': lambda …}")
        identity, factory = {"digest": source_digest(value)}, _with_seed(value)
    else:
        expected = "names, locb.Environment objects or classes, or functions that return an environment"
        raise ParameterError("environments", f" must be {expected}, not {value!r}")
    source = EnvironmentSource(name or label, {}, factory)
    identity |= {"environment": source.name, "rounds": rounds_digest(source.make(seed), seed)}
    return EnvironmentSource(source.name, identity, factory)


def _same(env: Environment, seed: int) -> Environment:
    del seed
    return env


def _with_seed(factory: Callable[..., Any]) -> Callable[[int], Any]:
    """Return a function of the random seed that calls ``factory``, with the seed if it has a parameter ``seed``."""
    parameters = inspect.signature(factory).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    missing = [name for name in required if name != "seed"]
    if missing:
        advice = "set them with functools.partial, or give them default values"
        raise ParameterError("environments", f": {factory!r} needs the arguments {', '.join(missing)}; {advice}")
    takes_seed = any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters)
    return partial(_call_with_seed, factory) if takes_seed else partial(_call_without_seed, factory)


def _call_with_seed(factory: Callable[..., Any], seed: int) -> Any:
    return factory(seed=seed)


def _call_without_seed(factory: Callable[..., Any], seed: int) -> Any:
    del seed
    return factory()


def rounds_digest(env: Environment, seed: int) -> str:
    """Return a digest of the first rounds and the true clusters of an environment."""
    count = DIGEST_ROUNDS if env.max_rounds is None else min(DIGEST_ROUNDS, env.max_rounds)
    rounds = env.rounds(count, seed=seed)
    digest = hashlib.sha256(f"{env.n_users} {rounds.contexts.shape}".encode())
    contexts = (
        rounds.contexts if rounds.sizes is None else np.concatenate([rounds.sizes, *map(np.ravel, rounds.contexts)])
    )
    for values in (rounds.users, contexts, rounds.rewards, rounds.means, rounds.observed):
        digest.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]
