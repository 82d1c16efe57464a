"""Custom policies and environments from Python files."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from locb.common.validation import ParameterError
from locb.policies import POLICIES, Policy
from locb.policies.registry import BUILT_IN_NAMES


def register_custom_policy(reference: str) -> str:
    """Add a policy class from a Python file to ``locb.POLICIES`` under the name of the class.

    The file is loaded as a module with a unique name, so that a file such as ``json.py`` does not replace another
    module. Worker processes receive the class by value, so they need not be able to import the file.

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
        If the file does not exist or cannot be loaded, or if the class does not exist, does not derive from
        ``locb.Policy`` or has the name of a built-in policy.
    """
    path, _, class_name = reference.rpartition(":")
    if class_name in BUILT_IN_NAMES and Path(path).is_file():
        raise ParameterError(
            "policy", f": {path} has the class {class_name!r}, which is the name of a built-in policy; rename the class"
        )
    POLICIES[class_name] = load_class(reference, Policy)
    return class_name


def load_class(reference: str, base: type) -> type[Any]:
    """Return the class ``file.py:Class``, which must derive from ``base``: :class:`locb.Policy` or an environment.

    Raises
    ------
    ValueError
        If the file does not exist or cannot be loaded, or if it has no such class.
    """
    path, _, class_name = reference.rpartition(":")
    source, kind = Path(path), base.__name__.lower()
    if not source.is_file():
        raise ParameterError(kind, f": no file {path!r}; the form of a custom {kind} is file.py:Class")
    module = _load_module(source, kind)
    found = getattr(module, class_name, None)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ParameterError(kind, f": {path} has no class {class_name!r} that derives from locb.{base.__name__}")
    cloudpickle.register_pickle_by_value(module)
    return found


def _load_module(source: Path, kind: str) -> ModuleType:
    """Load a Python file as a module. The name of the module depends on the full path, so all processes agree on it."""
    digest = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"locb_custom_{kind}_{digest}_{source.stem}", source)
    if spec is None or spec.loader is None:
        raise ParameterError(kind, f": {str(source)!r} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise ParameterError(kind, f": loading {source} raised {type(error).__name__}: {error}") from error
    return module


def policy_source(reference: str) -> dict[str, str]:
    """Return the file and class of a custom policy or environment, and a digest of the file.

    The digest is part of the identity of a job. After the file changes, the jobs run again.
    """
    path, _, name = reference.rpartition(":")
    file = Path(path).resolve()
    return {"reference": f"{file}:{name}", "digest": hashlib.sha256(file.read_bytes()).hexdigest()[:16]}
