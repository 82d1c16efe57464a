"""How a service is set up, and what its store remembers of that."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from locb.policies import POLICIES, policy_spec
from locb.service.core.replay import Model
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT

OPTIONS = ("policy", "dim", "gamma", "n-seeds", "alpha")  # all else is a --parameter


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """What ``locb serve`` was told. None: as the store remembers, or the default."""

    data_dir: Path
    store: str | None = None
    policy: str | None = None
    dim: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    default_reward: float | None = None
    reward_wait: float = 600.0
    snapshot_every: int = 100_000
    personalizer_user: str = "user.id"
    max_body_bytes: int = 1 << 20
    max_in_flight: int = 1000
    read_timeout: float = 30.0  # for a request to arrive


def load_or_create_model(options: ServiceConfig, log: EventLog) -> tuple[Model, str]:
    """The model and the name of a store: what it remembers, or what a new one is to remember.

    Raises
    ------
    ValueError
        If the store was made otherwise than it is asked for now.
    """
    kept = log.settings()
    if "model" in kept:
        model = Model(**kept["model"])
        if model.policy not in POLICIES:
            name = model.policy
            raise ValueError(f"the store was made with a policy of your own: say again where it is, --policy …:{name}")
        _compare(options, model)
        return model, kept["store"]
    if options.dim is None:
        raise ValueError("--dim must say how many features an arm has, since the store is new")
    model = new_model(options.policy or "locb", options.dim, options.parameters)
    name = secrets.token_hex(4)
    values = {"policy": model.policy, "dim": model.dim, "places": model.places, "parameters": model.parameters}
    log.write_settings({"format": FORMAT, "store": name, "model": values, "rebuilt_at": 0, "seq": 0})
    return model, name


def new_model(policy: str, dim: int, parameters: dict[str, Any]) -> Model:
    """A policy with room for its seeds, and tried: a parameter that does not fit is told now."""
    if policy not in POLICIES:
        raise ValueError(f"--policy must be one of {', '.join(POLICIES)}, not {policy!r}")
    if parameters.get("ties", "first") != "first":
        raise ValueError("--parameter ties must be first: a choice drawn by lot cannot be made again from the log")
    spec = policy_spec(policy)
    parameters = spec.service_parameters(parameters)
    model = Model(policy, dim, spec.initial_capacity(parameters), parameters)
    model.build()
    return model


def _compare(options: ServiceConfig, model: Model) -> None:
    asked: dict[str, Any] = {"policy": options.policy, "dim": options.dim, **options.parameters}
    made = {"policy": model.policy, "dim": model.dim, **model.parameters}
    for name, value in asked.items():
        if value is None or (name in made and value == made[name]):
            continue
        if name not in made:
            raise ValueError(f"the store was made without {_option(name, value)}: it cannot be set now")
        told = f"the store was made with {_option(name, made[name])}, not {value}: give this one a folder of its own"
        raise ValueError(told)


def _option(name: str, value: Any) -> str:
    """How it is said on the command line."""
    named = name.replace("_", "-")
    return f"--{named} {value}" if named in OPTIONS else f"--parameter {name}={value}"
