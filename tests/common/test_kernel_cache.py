"""Cache of compiled kernels: shared by installations, keyed by sources, safe with damaged files and folders."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from locb.common import kernel_cache

PACKAGE = Path(kernel_cache.__file__).parent.parent
# Calls a small kernel and prints how often it was compiled.
SCRIPT = """
import logging
import numpy as np
from locb.kernels.club.graph import add_edges

logging.basicConfig(format="%(message)s")
indices = np.zeros(1, np.int64)
add_edges(np.empty((0, 2), np.int64), indices, indices, indices, indices)
print(sum(add_edges.stats.cache_misses.values()))
"""


def compile_count(cache: Path, *, package: Path = PACKAGE, stderr: str = "") -> int:
    """Run the script in a new process with an installation of locb, and return how often it compiled the kernel."""
    path = os.pathsep.join([str(package.parent), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "LOCB_QUIET": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert stderr in done.stderr
    assert bool(done.stderr) == bool(stderr), done.stderr
    return int(done.stdout)


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """Return a cache that contains the compiled kernel."""
    cache = tmp_path / "cache"
    assert compile_count(cache) == 1
    return cache


def test_another_installation_with_the_same_sources_does_not_compile(compiled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "locb"
    shutil.copytree(PACKAGE, other)
    assert compile_count(compiled, package=other) == 0
    # Only an edit of a file that the kernel imports matters, also if it imports the file through another module.
    edits = [("kernels/linucb/loop.py", 0), ("common/compile_notice.py", 1)]
    for name, count in edits:
        with (other / name).open("a") as file:
            file.write("# edited\n")
        assert compile_count(compiled, package=other) == count
    assert compile_count(compiled) == 0  # the code of the first installation is kept


def test_damaged_file_is_replaced(compiled: Path) -> None:
    (path,) = compiled.rglob("*.kernel")
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"no pickle"):
        path.write_bytes(damaged)
        assert compile_count(compiled, stderr="Compiling again, because the cached code in") == 1
    assert compile_count(compiled) == 0


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    message = "Cannot cache compiled code, so that each process compiles again: "
    assert compile_count(tmp_path / "file" / "cache", stderr=message) == 1


def test_digests_cover_all_modules_that_kernels_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests of the kernels read the source of each module of locb that the import of the kernels loads."""
    modules = [f"locb.kernels.{policy}.loop" for policy in ("club", "eloc", "linucb", "locb", "sclub")]
    code = f"import sys, locb; before = set(sys.modules); import {', '.join(modules)}; "
    code += "print(*(name for name in set(sys.modules) - before if name.startswith('locb.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    read: list[Path] = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.append(path), original(path))[1])
    assert len({kernel_cache.sources_digest.__wrapped__(module) for module in modules}) == len(modules)
    loaded = done.stdout.split()
    assert "locb.kernels.common.bit_sets" in loaded
    assert {name for name in loaded if kernel_cache._source_path(name) not in read} == set()
