"""Disk cache of compiled kernels, which all installations of a user share.

Numba's own cache checks only the source file of an entry point, has separate entries for each installation, and can
mix up two signatures that two processes compile at the same time. This cache has one file per entry point, signature,
type of processor and content of the sources: the module of the entry point and all modules of locb that it imports,
directly or indirectly. Files are replaced atomically and never changed, so that processes can share a folder.
"""

import ast
import hashlib
import logging
import os
import pickle
import platform
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # has no type hints
import numba
from numba.core import compiler
from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from locb.common.cache_dir import cache_dir

_ROOT = Path(__file__).parent.parent.parent  # the folder that contains the package locb
_log = logging.getLogger("locb.compilation")


def kernel_cache_dir() -> Path:
    """Return the folder of the compiled kernels: ``$NUMBA_CACHE_DIR`` if set, otherwise in the cache directory."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(base) if base else cache_dir() / "kernels") / versions()


def versions() -> str:
    """Return the versions of Python and of the compiler, on which compiled code depends."""
    return f"python{platform.python_version()}-numba{numba.__version__}-llvmlite{llvmlite.__version__}"


@cache
def sources_digest(module: str) -> str:
    """Return a checksum of the sources of a module of locb and of all modules of locb that it imports."""
    digest, found, waiting = hashlib.sha256(), {module}, [module]
    while waiting:
        new = set(_imported_modules(_source_path(waiting.pop()))) - found
        found |= new
        waiting += new
    for name in sorted(found):
        content = _source_path(name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of locb that a source file imports, and the packages that contain them."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{name}" for name in names)]
        for name in names:
            parts = name.split(".")
            packages = (".".join(parts[:count]) for count in range(2, len(parts) + 1)) if parts[0] == "locb" else ()
            yield from (package for package in packages if _source_path(package).exists())


def _source_path(module: str) -> Path:
    path = _ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


class KernelCache:
    """Cache of the compiled versions of one function, with the interface that Numba requires of a cache.

    Parameters
    ----------
    function : callable
        The function before its compilation.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._module = function.__module__
        self._folder = kernel_cache_dir()
        self._is_enabled = True

    @property
    def cache_path(self) -> str:
        """Folder of the compiled versions."""
        return str(self._folder)

    def enable(self) -> None:
        """Start to read and write compiled versions."""
        self._is_enabled = True

    def disable(self) -> None:
        """Stop reading and writing compiled versions."""
        self._is_enabled = False

    def flush(self) -> None:
        """Delete all compiled versions of the function."""
        for path in self._folder.glob(f"{self._name}-*.kernel"):
            path.unlink(missing_ok=True)

    def has(self, signature: Any) -> bool:
        """Return whether the cache contains a compiled version for a signature."""
        return self._path(self._key(signature, cpu_target.target_context.codegen())).exists()

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
        return (self._name, sources_digest(self._module), str(signature), *map(str, codegen.magic_tuple()))

    def _path(self, key: tuple[str, ...]) -> Path:
        return self._folder / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.kernel"
