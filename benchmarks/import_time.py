"""Time of ``import locb`` compared with ``import numba``, measured in turn in new processes."""

import os
import subprocess
import sys

from timing import print_table

REPETITIONS = 11


def import_seconds(module: str) -> float:
    """Return the time in seconds that a new Python process needs to import a module."""
    # Python may write bytecode, as it does for an installed package.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    process = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True)
    return float(process.stdout)


def main() -> None:
    """Measure both imports and print the table."""
    seconds: dict[str, list[float]] = {"numba": [], "locb": []}
    for module in seconds:
        import_seconds(module)
    for _ in range(REPETITIONS):
        for module, measured in seconds.items():
            measured.append(import_seconds(module))
    median = {module: sorted(measured)[REPETITIONS // 2] for module, measured in seconds.items()}
    rows = [(f"import {m}", f"{1e3 * s:.0f}", f"{s / median['numba']:.2f}") for m, s in median.items()]
    print_table(f"imports, median of {REPETITIONS} new processes", ("", "ms", "× numba"), rows)


if __name__ == "__main__":
    main()
