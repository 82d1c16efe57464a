"""What ``import locb`` costs beside ``import numba``, each in fresh processes, in turns."""

import os
import subprocess
import sys

from timing import show

GOES = 11


def seconds(module: str) -> float:
    # Bytecode on disk for both, as an installed package has it.
    writing = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(
        subprocess.run([sys.executable, "-c", code], env=writing, capture_output=True, check=True, text=True).stdout
    )


def main() -> None:
    taken = {"numba": [], "locb": []}  # type: dict[str, list[float]]
    for module in taken:
        seconds(module)
    for _ in range(GOES):
        for module, times in taken.items():
            times.append(seconds(module))
    middle = {module: sorted(times)[GOES // 2] for module, times in taken.items()}
    rows = [(f"import {m}", f"{1e3 * s:.0f}", f"{s / middle['numba']:.2f}") for m, s in middle.items()]
    show(f"imports, median of {GOES} fresh processes", ("", "ms", "× numba"), rows)


if __name__ == "__main__":
    main()
