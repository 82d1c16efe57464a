"""Model of a service: its policy, dimension and parameters, as recorded in the store."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from locb.evaluation.clusters import Cluster
from locb.policies import POLICIES
from locb.policies.base.capabilities import (
    SupportsCertificates,
    SupportsCorrection,
    SupportsEstimates,
    SupportsSimilarUsers,
    UnavailableError,
    explainer,
)
from locb.recommender.policy_model import Model
from locb.service.config import DEFAULT_POLICY, ServiceConfig, format_parameter, format_value
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT

_log = logging.getLogger("locb.service")
NOT_REPLAYABLE = "random choices cannot be replayed from the log"


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
    model = Model.create(policy, dim, parameters)
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
    policy = model.build()
    policy.prepare()
    context = np.zeros(model.dim)
    context[0] = 1.0
    explainer(policy)([0], [np.array([context, context])])
    policy.update(0, context, 1.0)
    policy.add_users(1)
    if isinstance(policy, SupportsCorrection):
        _try("correct", policy.correct, 0, context, 1.0, 0.0)
    if isinstance(policy, SupportsEstimates):
        _try("estimate", policy.estimate, 1)
    if isinstance(policy, SupportsSimilarUsers):
        _try("similar_users", policy.similar_users, 1)
    if isinstance(policy, SupportsCertificates):
        for cluster in policy.clusters()[:1]:
            _try("certifier", _certify, policy, cluster)


def _certify(policy: SupportsCertificates, cluster: Cluster) -> None:
    for exact in (True, False):
        policy.certifier(cluster)(exact)


def _try(name: str, method: Callable[..., Any], *arguments: Any) -> None:
    """Call a method of a policy during warm-up. An error is only logged, because later calls may succeed."""
    try:
        method(*arguments)
    except UnavailableError:
        pass
    except Exception:
        _log.exception("warm-up: the method %s() of the policy failed; the service starts nevertheless", name)
