"""Model of a service: its policy, dimension and parameters, as recorded in the store."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from typing import Any, cast

from locb.policies import POLICIES, policy_spec
from locb.policies.base.capabilities import SupportsNewUsers
from locb.policies.base.policy import ServablePolicy
from locb.policies.base.warm_up import call_methods
from locb.service.config import DEFAULT_POLICY, ServiceConfig, format_parameter, format_value
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT

NOT_REPLAYABLE = "random choices cannot be replayed from the log"


@dataclass(frozen=True, slots=True)
class Model:
    """Name, dimension and parameters of a policy. Model and event log together determine the state of the policy."""

    policy: str
    dim: int  # number of features per arm
    initial_users: int  # number of user indices of the untrained policy
    parameters: dict[str, Any]

    def build(self) -> ServablePolicy:
        """Return the untrained policy.

        Raises
        ------
        ValueError
            If the policy rejects the dimension or a parameter, or does not accept new users.
        """
        spec = policy_spec(self.policy)
        policy = spec.make_for_service(n_users=self.initial_users, dim=self.dim, parameters=self.parameters)
        if not isinstance(policy, SupportsNewUsers):
            reason = "it has no method add_users(), with which the service creates users; implement add_users()"
            raise ValueError(f"--policy {self.policy} cannot be served: {reason}")
        return cast(ServablePolicy, policy)


def load_or_create_model(config: ServiceConfig, log: EventLog) -> tuple[Model, str]:
    """Return the model and the id of a store.

    For a new store, create the model from the configuration and a random id, and write both to the store.

    Raises
    ------
    ValueError
        If the configuration contradicts the model of an existing store, or is incomplete or invalid for a new store.
    """
    settings = log.settings()
    if "model" in settings:
        model = Model(**settings["model"])
        if model.policy not in POLICIES:
            name = model.policy
            raise ValueError(f"the store was created with the custom policy {name!r}: pass --policy file.py:{name}")
        _check_unchanged(config, model)
        return model, settings["store"]
    if config.dim is None:
        raise ValueError("--dim, the number of features per arm, is required for a new store: add --dim N")
    model = new_model(config.policy or DEFAULT_POLICY, config.dim, config.parameters)
    store_id = secrets.token_hex(4)
    log.write_settings({"format": FORMAT, "store": store_id, "model": asdict(model), "rebuilt_at": 0})
    return model, store_id


def new_model(policy: str, dim: int, parameters: dict[str, Any]) -> Model:
    """Return the model of a new store. Its policy is built once, to validate the parameters.

    Raises
    ------
    ValueError
        If the policy is unknown, does not accept new users or rejects a parameter, or if choices would be random.
    """
    if policy not in POLICIES:
        known = ", ".join(POLICIES)
        raise ValueError(f"--policy must be one of {known}, or file.py:Class for your own policy, not {policy!r}")
    if parameters.get("ties", "first") != "first":
        found = parameters["ties"]
        raise ValueError(f"--parameter ties must be 'first', not {found!r}: {NOT_REPLAYABLE}")
    spec = policy_spec(policy)
    parameters = spec.service_parameters(parameters)
    model = Model(policy, dim, spec.initial_capacity(parameters), parameters)
    if model.build().has_random_choices:
        advice = "choose other parameters, or another policy"
        raise ValueError(f"--policy {policy} draws random numbers with these parameters: {NOT_REPLAYABLE}; {advice}")
    return model


def _check_unchanged(config: ServiceConfig, model: Model) -> None:
    # The store has the parameters as JSON, in which a tuple is a list.
    parameters = json.loads(json.dumps(config.parameters))
    requested: dict[str, Any] = {"policy": config.policy, "dim": config.dim, **parameters}
    stored = {"policy": model.policy, "dim": model.dim, **model.parameters}
    for name, value in requested.items():
        if value is None or (name in stored and value == stored[name]):
            continue
        if name not in stored:
            found = f"without {format_parameter(name, value)}, which cannot be added later"
        else:
            found = f"with {format_parameter(name, stored[name])}, not {format_value(name, value)}"
        raise ValueError(f"the store was created {found}: choose another --data-dir or --store for a different model")


def warm_up(model: Model) -> None:
    """Compile all kernels that requests need, on a temporary policy, so that the first requests are fast."""
    call_methods(model.build())
