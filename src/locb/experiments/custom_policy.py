"""A policy of one's own, from a file, under a name that experiments know."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import cloudpickle

from locb.policies import POLICIES, Policy


def register(reference: str) -> str:
    """Make ``path/to/file.py:Class`` a name in ``locb.POLICIES``; the name is the class's.

    The class travels to other processes by value, so the file need not be importable there.
    """
    path, _, class_name = reference.rpartition(":")
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"policies: there is no file {path!r} (a policy of your own is given as file.py:Class)")
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or spec.loader is None:
        raise ValueError(f"policies: {path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"policies: {path} does not load: {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type) or not issubclass(found, Policy):
        raise ValueError(f"policies: {path} has no class {class_name!r} that is a locb.Policy")
    cloudpickle.register_pickle_by_value(module)
    POLICIES[class_name] = found
    return class_name
