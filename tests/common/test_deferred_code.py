"""Functions that are compiled as a part of their callers."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import config, types
from numba.core.caching import NullCache

from locb.common import jit

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="kernels are not compiled")


@jit.no_alloc
def scaled(values: Any, index: int, factor: int) -> float:
    return float(values[index]) * factor


@jit.inline
def total(values: Any) -> float:
    result = 0.0
    for i in range(values.size):
        result += scaled(values, i, 2) + scaled(values, 0, 1)
    return result


@jit.no_alloc
def half(value: float) -> float:
    return 0.5 * value - 1.0 + 1.0


@jit.inline_fastmath
def norm(values: Any) -> float:
    result = 0.0
    for i in range(values.size):
        result += values[i] * values[i]
    return half(result) * 2.0


@jit.alloc
def doubled(values: Any) -> Any:
    result = np.empty(values.size)
    for i in range(values.size):
        result[i] = scaled(values, i, 2)
    return result


def both(values: Any) -> float:
    return total(values) + norm(values) + scaled(values, 1, 3)


def copied(values: Any) -> float:
    return total(doubled(values)) + scaled(values, 1, 3)


IS_TESTED = "locb.common.deferred_code" in sys.modules  # whether this version of Numba is in ``jit.TESTED_NUMBA``
VALUES = types.Array(types.float64, 1, "C")


@pytest.fixture(autouse=True)
def without_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "KernelCache", lambda _function: NullCache())


def test_result_is_that_of_the_plain_functions() -> None:
    values = np.array([1.0, 2.0, 4.0])
    compiled = jit.compile_unchecked(both, types.float64(VALUES))
    assert compiled(values) == 14.0 + 3.0 + 21.0 + 6.0
    assert gc.isenabled()


def test_caller_with_reference_counts() -> None:
    assert jit.entry_point(copied)(np.array([1.0, 2.0, 4.0])) == 28.0 + 6.0 + 6.0


@pytest.mark.skipif(not IS_TESTED, reason=f"Numba {numba.__version__} compiles with its own pipeline")
def test_one_version_for_all_constants_without_machine_code() -> None:
    jit.compile_unchecked(both, types.float64(VALUES))
    results: Any = scaled.overloads.values()  # type: ignore[attr-defined]  # of Numba
    (result,) = results
    assert result.signature.args == (VALUES, types.int64, types.int64)
    assert result.library.get_pointer_to_function(result.fndesc.llvm_func_name) == 0


@pytest.mark.skipif(not IS_TESTED, reason=f"Numba {numba.__version__} compiles with its own pipeline")
def test_options_are_not_those_of_the_first_caller() -> None:
    """``scaled`` is called by functions that are always inlined, ``half`` by one with another order of sums."""
    jit.compile_unchecked(both, types.float64(VALUES))
    for function in (scaled, half):
        (result,) = function.overloads.values()  # type: ignore[attr-defined]  # of Numba
        code = str(result.library._final_module)
        assert "noinline" in code
        assert "alwaysinline" not in code
        assert "reassoc" not in code
    (result,) = norm.overloads.values()  # type: ignore[attr-defined]  # of Numba
    assert "alwaysinline" in str(result.library._final_module)
    assert "reassoc" in str(result.library._final_module)


def test_other_versions_of_numba_use_its_own_pipeline(tmp_path: Path) -> None:
    """The choices are the same. LinUCB is the policy that compiles fastest."""
    script = """
import sys
import numba
if len(sys.argv) > 1:
    numba.__version__ = sys.argv[1]
import locb
env = locb.Synthetic(n_users=5, n_clusters=2, n_arms=4, seed=1)
print(locb.LinUCB(n_users=5, dim=env.dim).play(env.rounds(200, seed=2)).tolist())
print("locb.common.deferred_code" in sys.modules)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "LOCB_QUIET": "1"}
    outputs = []
    for arguments in ([], ["0.99.0"]):
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.splitlines())
    (tested, uses_deferred), (other, uses_other) = outputs
    assert (uses_deferred, uses_other) == (str(IS_TESTED), "False")
    assert tested == other
