"""Saved policies from which a service can start."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from locb.policies import load
from locb.policies.base.capabilities import SupportsNewUsers
from locb.policies.registry import REGISTRY, PolicySpec
from locb.recommender.events import MAX_ID_LENGTH
from locb.service.config import ServiceConfig
from locb.service.core.model import NOT_REPLAYABLE, StoreModel, check_unchanged


def is_saved_policy(source: str) -> bool:
    """Return whether a source is a file that ``policy.save`` has written, or has the suffix of such files."""
    path = Path(source)
    return path.suffix == ".locb" or (path.is_file() and zipfile.is_zipfile(path))


def read_saved_policy(path: str, config: ServiceConfig) -> tuple[StoreModel, bytes]:
    """Return the model and the content of the file of a saved policy.

    Raises
    ------
    ValueError
        If the file is not a saved policy, if the policy cannot be served, or if the configuration contradicts it.
    OSError
        If the file cannot be read.
    """
    content = Path(path).read_bytes()
    policy = load(path)
    parameters = dict(policy.get_params())
    n_users, dim = int(parameters.pop("n_users")), int(parameters.pop("dim"))
    spec = _spec_of(type(policy), parameters)
    if spec is None or not isinstance(policy, SupportsNewUsers):
        raise ValueError(f"{path} has a policy of the class {type(policy).__name__}, which cannot be served")
    if policy.has_random_choices or parameters.get("ties", "first") != "first":
        raise ValueError(f"{path} has a policy that draws random numbers: {NOT_REPLAYABLE}; save another policy")
    allowed = {parameter.name for parameter in spec.parameters}
    kept = {name: value for name, value in parameters.items() if name in allowed}
    digest = sha256(content).hexdigest()
    model = StoreModel(spec.name, dim, n_users, kept, digest, lambda: content)
    check_unchanged(config, model, f"the policy in {path} was created")
    return model, content


def _spec_of(policy_class: type, parameters: dict[str, Any]) -> PolicySpec | None:
    """Return the registry entry with which a policy of this class and with these parameters can be created."""
    for spec in REGISTRY.values():
        fixed = getattr(spec.factory, "keywords", {})
        if spec.policy_class is policy_class and fixed.items() <= parameters.items():
            return spec
    return None


def user_names(count: int, path: str | None) -> list[str]:
    """Return the ids of the users of a saved policy: the lines of a text file, or 0, 1, 2 and so on without a file.

    Raises
    ------
    ValueError
        If the file does not have one id per user, or an id is invalid or occurs twice.
    """
    if path is None:
        return [str(user) for user in range(count)]
    names = Path(path).read_text(encoding="utf-8").splitlines()
    if len(names) != count:
        raise ValueError(f"{path} has {len(names)} lines, but the saved policy has {count} users: one line per user")
    if len(set(names)) < count:
        repeated = next(name for number, name in enumerate(names) if name in names[:number])
        raise ValueError(f"{path} has the id {repeated!r} twice: ids of users must be unique")
    wrong = next((number for number, name in enumerate(names, 1) if not 0 < len(name) <= MAX_ID_LENGTH), None)
    if wrong is not None:
        raise ValueError(f"{path}, line {wrong}: an id must have 1 to {MAX_ID_LENGTH} characters")
    return names
