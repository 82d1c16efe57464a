"""Policies and environments of locb in other libraries, and environments of other libraries in locb."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from locb.interop.classification import Classification
    from locb.interop.coba_adapters import CobaEnvironment, CobaLearner, from_coba
    from locb.interop.gymnasium_adapters import GymnasiumEnvironment
    from locb.interop.obp_adapters import ObpPolicy
    from locb.interop.river_adapters import RiverPolicy

__all__ = [
    "Classification",
    "CobaEnvironment",
    "CobaLearner",
    "GymnasiumEnvironment",
    "ObpPolicy",
    "RiverPolicy",
    "from_coba",
]

_MODULE_OF = {
    "Classification": "classification",
    "CobaEnvironment": "coba_adapters",
    "CobaLearner": "coba_adapters",
    "GymnasiumEnvironment": "gymnasium_adapters",
    "ObpPolicy": "obp_adapters",
    "RiverPolicy": "river_adapters",
    "from_coba": "coba_adapters",
}


if not TYPE_CHECKING:  # each name is imported on first use, because it needs another library

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'locb.interop' has no attribute {name!r}")
        try:
            module = import_module(f"locb.interop.{_MODULE_OF[name]}")
        except ImportError as error:
            raise ImportError(
                f"locb.interop.{name} needs the package {error.name}: run pip install 'locb[interop]'", name=error.name
            ) from error
        return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
