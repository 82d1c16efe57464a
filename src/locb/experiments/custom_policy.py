"""Registration of a custom policy from a Python file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import cloudpickle

from locb.policies import POLICIES, Policy


def register_custom_policy(reference: str) -> str:
    """Add the class at ``path/to/file.py:Class`` to ``locb.POLICIES`` and return its name, which is the class name.

    Worker processes receive the class by value, so they need not be able to import the file.

    Raises
    ------
    ValueError
        If the file does not exist or does not load, or the class is not a ``locb.Policy``.
    """
    path, _, class_name = reference.rpartition(":")
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"policies: no file {path!r}; write a custom policy as file.py:Class")
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or spec.loader is None:
        raise ValueError(f"policies: {path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"policies: cannot load {path}: {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type) or not issubclass(found, Policy):
        raise ValueError(f"policies: {path} has no class {class_name!r} that derives from locb.Policy")
    cloudpickle.register_pickle_by_value(module)
    POLICIES[class_name] = found
    return class_name
