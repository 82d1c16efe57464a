"""Registration of a custom policy from a Python file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import cloudpickle

from locb.policies import POLICIES, Policy


def register_custom_policy(reference: str) -> str:
    """Add a policy class from a Python file to ``locb.POLICIES`` under the name of the class.

    Worker processes receive the class by value, so they need not be able to import the file.

    Parameters
    ----------
    reference : str
        File and class, in the form ``path/to/file.py:Class``.

    Returns
    -------
    str
        Name of the class.

    Raises
    ------
    ValueError
        If the file does not exist or does not load, or the class is not a ``locb.Policy``.
    """
    path, _, class_name = reference.rpartition(":")
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"policies: no file {path!r}; the form of a custom policy is file.py:Class")
    spec = importlib.util.spec_from_file_location(source.stem, source)
    if spec is None or spec.loader is None:
        raise ValueError(f"policies: {path!r} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"policies: loading {path} raised {type(error).__name__}: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type) or not issubclass(found, Policy):
        raise ValueError(f"policies: {path} has no class {class_name!r} that derives from locb.Policy")
    cloudpickle.register_pickle_by_value(module)
    POLICIES[class_name] = found
    return class_name
