"""Model of a service: its policy, dimension and parameters, as recorded in the store."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

from locb.policies import POLICIES, load
from locb.policies.base.policy import ServablePolicy
from locb.policies.base.warm_up import call_methods
from locb.recommender.policy_model import Model
from locb.service.config import DEFAULT_POLICY, ServiceConfig, format_parameter, format_value
from locb.service.store import schema as tables
from locb.service.store.integrity import DamagedLogError
from locb.service.store.log import EventLog
from locb.service.store.schema import FORMAT

NOT_REPLAYABLE = "random choices cannot be replayed from the log"


@dataclass(frozen=True, slots=True)
class StoreModel(Model):
    """Model of a store. The service can start from a saved policy, whose file is then in the store."""

    base: str | None = None  # SHA-256 of the file of the saved policy; None without such a policy
    read_base: Callable[[], bytes] = field(default=bytes, compare=False, repr=False)  # returns the file

    @property
    def base_users(self) -> int:
        """Number of users of the saved policy from which the service started; 0 without such a policy."""
        return 0 if self.base is None else self.initial_users

    def settings(self) -> dict[str, Any]:
        """Return the model as it is written to the store."""
        values = {name: getattr(self, name) for name in ("policy", "dim", "initial_users", "parameters")}
        return values if self.base is None else {**values, "base": self.base}

    def build(self) -> ServablePolicy:
        """Return the policy before the first event: untrained, or the saved policy from which the service started.

        Raises
        ------
        ValueError
            If the policy rejects the dimension or a parameter, or does not accept new users.
        DamagedLogError
            If the saved policy in the store is damaged.
        """
        return Model.build(self) if self.base is None else self._load_base(self.base)

    def _load_base(self, digest: str) -> ServablePolicy:
        content = self.read_base()
        if sha256(content).hexdigest() != digest:
            advice = "restore the store from a backup"
            raise DamagedLogError(f"the saved policy in the store (--start-from) is missing or damaged: {advice}")
        with tempfile.NamedTemporaryFile(suffix=".locb") as file:
            file.write(content)
            file.flush()
            return cast(ServablePolicy, load(file.name))


def load_or_create_model(config: ServiceConfig, log: EventLog) -> tuple[StoreModel, str]:
    """Return the model and the id of a store.

    For a new store, create the model from the configuration and a random id, and write both to the store.

    Raises
    ------
    ValueError
        If the configuration contradicts the model of an existing store, or is incomplete or invalid for a new store.
    """
    settings = log.settings()
    if "model" in settings:
        model = StoreModel(**settings["model"], read_base=log.base_policy)
        if model.policy not in POLICIES:
            name = model.policy
            raise ValueError(f"the store was created with the custom policy {name!r}: pass --policy file.py:{name}")
        check_unchanged(config, model, "the store was created")
        return model, settings["store"]
    if tables.START_SETTING in settings:
        source = settings[tables.START_SETTING]["source"]
        advice = f"start the service with --start-from {source} to repeat it, or with another --data-dir or --store"
        raise ValueError(f"the import of {source} into this store did not finish: {advice}")
    if config.dim is None:
        raise ValueError("--dim, the number of features per arm, is required for a new store: add --dim N")
    model = new_model(config.policy or DEFAULT_POLICY, config.dim, config.parameters)
    store_id = secrets.token_hex(4)
    log.write_settings({"format": FORMAT, "store": store_id, "model": model.settings(), "rebuilt_at": 0})
    return model, store_id


def new_model(policy: str, dim: int, parameters: dict[str, Any]) -> StoreModel:
    """Return the model of a new store. Its policy is built once, to validate the parameters.

    Raises
    ------
    ValueError
        If the policy is unknown, does not accept new users or rejects a parameter, or if choices would be random.
    """
    if policy not in POLICIES:
        known = ", ".join(POLICIES)
        raise ValueError(
            f"--policy: unknown policy {policy!r}; choose from {known}, or file.py:Class for your own policy"
        )
    if parameters.get("ties", "first") != "first":
        found = parameters["ties"]
        raise ValueError(f"--parameter ties must be 'first', not {found!r}: {NOT_REPLAYABLE}")
    model = StoreModel.create(policy, dim, parameters)
    if model.build().has_random_choices:
        advice = "choose other parameters, or another policy"
        raise ValueError(f"--policy {policy} draws random numbers with these parameters: {NOT_REPLAYABLE}; {advice}")
    return model


def check_unchanged(config: ServiceConfig, model: StoreModel, created: str) -> None:
    """Raise a ValueError if the configuration contradicts a model. ``created`` starts the message."""
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
        raise ValueError(f"{created} {found}: choose another --data-dir or --store for a different model")


def warm_up(model: StoreModel) -> None:
    """Compile all kernels that requests need, on a temporary policy, so that the first requests are fast."""
    call_methods(model.build())
