"""Disk cache of compiled kernels. All installations of locb with the same cache directory share it.

Numba's own cache checks only the source file of an entry point, has separate entries for each installation, and can
mix up two signatures that two processes compile at the same time. This cache has one folder for each combination of the
source code of the kernels and the versions of Python, Numba and llvmlite. A folder has one file per entry point,
signature and type of processor. A file is written atomically and not modified afterwards, so processes can share it.
"""

import hashlib
import logging
import os
import pickle
import platform
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # has no type hints
import numba
from numba.core import compiler
from numba.core.serialize import dumps

from locb.common.cache_dir import cache_dir

_PACKAGE = Path(__file__).parent.parent
_SOURCES = ("common", "evaluation", "kernels")  # the packages that kernels may import
_log = logging.getLogger("locb.compilation")


@cache
def sources_digest() -> str:
    """Return a checksum of the packages in ``_SOURCES`` and of the versions of Python, Numba and llvmlite."""
    digest = hashlib.sha256(f"{platform.python_version()} {numba.__version__} {llvmlite.__version__}".encode())
    for path in sorted(path for name in _SOURCES for path in (_PACKAGE / name).rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def kernel_cache_dir() -> Path:
    """Return the folder of the compiled kernels.

    It is a subfolder of ``$NUMBA_CACHE_DIR`` if set, otherwise of the folder ``kernels`` in the cache directory. Its
    name is ``sources_digest()``.
    """
    base = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(base) if base else cache_dir() / "kernels") / sources_digest()


class KernelCache:
    """Cache of the compiled versions of one function, with the interface that Numba requires of a cache.

    Parameters
    ----------
    function : callable
        The function before its compilation.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._folder = kernel_cache_dir()
        self._is_enabled = True

    @property
    def cache_path(self) -> str:
        """Folder of the compiled versions."""
        return str(self._folder)

    def enable(self) -> None:
        """Read and write compiled versions."""
        self._is_enabled = True

    def disable(self) -> None:
        """Neither read nor write compiled versions."""
        self._is_enabled = False

    def flush(self) -> None:
        """Delete all compiled versions of the function."""
        for path in self._folder.glob(f"{self._name}-*.kernel"):
            path.unlink(missing_ok=True)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled version for a signature; None if the cache does not contain it or is disabled."""
        target_context.refresh()
        if not self._is_enabled:
            return None
        key = self._key(signature, target_context.codegen())
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            stored_key, reduced = pickle.loads(content)  # noqa: S301 - a file that this class has written
            rebuild: Any = compiler.CompileResult._rebuild
            return rebuild(target_context, *reduced) if stored_key == key else None
        except Exception as error:  # damaged bytes can raise any exception
            _log.warning("Compiling again, because the cached code in %s cannot be read: %r", path, error)
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write the compiled version for a signature. If this fails, log a warning and disable this cache."""
        if not self._is_enabled:
            return
        key = self._key(signature, compiled.codegen)
        serialize: Any = dumps
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="incomplete-")
            with os.fdopen(handle, "wb") as file:
                file.write(serialize((key, compiled._reduce())))
            os.replace(name, self._path(key))
        except OSError as error:
            self._is_enabled = False
            _log.warning(
                "Cannot cache compiled code, so that each process compiles again: %s. "
                "Set LOCB_CACHE or NUMBA_CACHE_DIR to a writable folder.",
                error,
            )

    def _key(self, signature: Any, codegen: Any) -> tuple[str, ...]:
        return (self._name, str(signature), *map(str, codegen.magic_tuple()))

    def _path(self, key: tuple[str, ...]) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"
