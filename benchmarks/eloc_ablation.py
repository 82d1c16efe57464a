"""Regret of ELOC without one of its parts, or with another constant, compared with the default on the same rounds.

A variant changes parameters of ELOC, or lines of the source of its kernels. For the second kind, the package is copied
to a temporary folder, changed, and compiled there. All variants run in development scenarios only, because the
evaluation scenarios must not influence constants.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from timing import print_table

import locb
from locb.evaluation.findings import Criterion, Measurement
from locb.experiments.environment_factory import make_environment
from locb.experiments.scenarios.registry import SCENARIOS

ROUNDS = 30_000
SOURCE = Path(__file__).parent.parent / "src"
KERNELS = "locb/kernels/eloc"
STATE, LOOP = f"{KERNELS}/state.py", f"{KERNELS}/loop.py"
EVIDENCE, POSTERIOR = f"{KERNELS}/evidence.py", f"{KERNELS}/posterior.py"
DEFAULT_SCENARIOS = (
    "dev-bernoulli-100,dev-gaussian-0.1,dev-zipf-300,dev-no-structure,dev-one-cluster,dev-one-hot,"
    "dev-one-hot-groups,dev-outliers"
)


class Change(NamedTuple):
    """Replacement of one passage of a source file. The passage must occur exactly once."""

    path: str
    before: str
    after: str


class Variant(NamedTuple):
    """ELOC with changed source lines or parameters."""

    name: str
    changes: tuple[Change, ...] = ()
    parameters: dict[str, Any] | None = None


def constant(name: str, value: str) -> Change:
    """Return the change that gives a constant of ``state.py`` another value."""
    (line,) = re.findall(rf"^{name} = .*", (SOURCE / STATE).read_text(encoding="utf-8"), re.MULTILINE)
    return Change(STATE, line, f"{name} = {value}")


# Passages of the source.
OWN_EVIDENCE = """    form = dot(scratch.evidence_forms, f, state.centres, s, 0, state.centres.shape[1])
    scratch.log_evidence[s] = scratch.factor_scales[f, 1] + form
"""
NO_EVIDENCE = "    scratch.log_evidence[s] = -np.inf\n"
EVALUATED = "    compute_evidence(state, i, is_full, scratch)"

VARIANTS = (
    Variant('no safety screen (`screen="off"`)', parameters={"screen": "off"}),
    Variant("outliers not limited (`robust=False`)", parameters={"robust": False}),
    Variant("β = 0.5", parameters={"beta": 0.5}),
    Variant("β = 2", parameters={"beta": 2.0}),
    Variant("no neighbourhoods: only everyone and population", (Change(EVIDENCE, OWN_EVIDENCE, NO_EVIDENCE),)),
    Variant(
        "no everyone",
        (
            constant("MAX_GAP", "-1e18"),
            Change(LOOP, "log_evidence[state.seeds.size + 1] - log_evidence[state.seeds.size]", "0.0"),
            Change(POSTERIOR, EVALUATED, f"{EVALUATED}\n    scratch.log_evidence[state.seeds.size] = -np.inf"),
        ),
    ),
    Variant(
        "no gate: only the mixture",
        (Change(POSTERIOR, "gate_weights[a] /= total", "gate_weights[a] = 1.0 if a == MIXTURE else 0.0"),),
    ),
    Variant("no leave-one-out", (constant("LEAVE_ONE_OUT_SHARE", "1e18"),)),
    Variant("centres certain in the bonus", (constant("MIN_UNCERTAIN_WEIGHT", "2.0"),)),
    Variant("no merging of twins", (constant("TWIN_DISTANCE", "0.0"),)),
    Variant("`WITHIN_VARIANCE` 0.005 (gamma × ½)", (constant("WITHIN_VARIANCE", "0.005"),)),
    Variant("`WITHIN_VARIANCE` 0.08 (gamma × 2)", (constant("WITHIN_VARIANCE", "0.08"),)),
)
FURTHER_VARIANTS = (  # only with --all
    Variant("no moving of seeds", (constant("UNEXPLAINED_RESPONSIBILITY", "2.0"),)),
    Variant("gate with all errors of the first rounds", (constant("GATE_MEMORY_SHARE", "1e18"),)),
    Variant("gate without the test of everyone", (constant("MAX_GAP", "1e18"),)),
    Variant("no prior of Σ_0", (constant("WISHART_USERS", "0.0"),)),
    Variant("Σ_0 not shrunk", (constant("SHRINKAGE_USERS", "1e-12"),)),
    Variant("no lower bound of σ² for two-valued rewards", (constant("MIN_BINARY_NOISE", "0.0"),)),
    Variant("all components in every round", (constant("FULL_EVIDENCE_INTERVAL", "1"),)),
)


def final_regrets(parameters: dict[str, Any], scenarios: list[str], repeats: int) -> list[list[float]]:
    """Return the cumulative regret after the last round: a list per scenario, with one value per repeat."""
    found = []
    for name in scenarios:
        seeds = [SCENARIOS[name].seed(repeat) for repeat in range(repeats)]
        found.append([final_regret(SCENARIOS[name].settings, parameters, seed) for seed in seeds])
    return found


def final_regret(settings: dict[str, Any], parameters: dict[str, Any], seed: int) -> float:
    """Return the cumulative regret of ELOC in one environment after the last round."""
    env = make_environment(settings, seed, warn=False)
    policy = locb.ELOC(n_users=env.n_users, dim=env.dim, seed=seed, **parameters)
    return float(locb.simulate(policy, env, rounds=ROUNDS, seed=seed).regret[-1])


def run_variant(variant: Variant, scenarios: list[str], repeats: int) -> list[list[float]]:
    """Run a variant in a process of its own, with a changed copy of the package if it changes the source."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if variant.changes:
            copy = shutil.copytree(SOURCE / "locb", Path(folder) / "locb", ignore=shutil.ignore_patterns("__pycache__"))
            for change in variant.changes:
                apply(change, copy.parent)
            environment |= {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": f"{folder}/kernels"}
        job = json.dumps([variant.parameters or {}, scenarios, repeats])
        command = [sys.executable, __file__, "--job", job]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def apply(change: Change, folder: Path) -> None:
    """Apply a change to the copy of the package in ``folder``."""
    source = (folder / change.path).read_text(encoding="utf-8")
    if source.count(change.before) != 1:
        raise SystemExit(f"{change.path} must contain this passage exactly once: {change.before}")
    (folder / change.path).write_text(source.replace(change.before, change.after), encoding="utf-8")


def main() -> None:
    """Run all variants, and print a table of the default and a table of the paired differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default=DEFAULT_SCENARIOS, help="names, separated by commas")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="run only the variants whose name contains this text")
    parser.add_argument("--all", action="store_true", help="also run the variants that the documentation does not show")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(final_regrets(*json.loads(arguments.job))))
        return
    scenarios = arguments.scenarios.split(",")
    if not all(name.startswith("dev-") for name in scenarios):
        raise SystemExit("--scenarios takes development scenarios only: their names start with dev-")
    default = run_variant(Variant("default"), scenarios, arguments.repeats)
    rows = [("default", *map(format_level, default))]
    for variant in VARIANTS + (FURTHER_VARIANTS if arguments.all else ()):
        if arguments.only in variant.name:
            changed = run_variant(variant, scenarios, arguments.repeats)
            rows.append((variant.name, *(format_change(a, b) for a, b in zip(changed, default, strict=True))))
            print(" | ".join(rows[-1]), file=sys.stderr)
    title = f"ELOC, {ROUNDS:,} rounds, {arguments.repeats} repeats: regret, and paired difference from the default"
    print_table(title, ("variant", *(f"`{name}`" for name in scenarios)), rows)


def format_level(values: list[float]) -> str:
    """Return the mean of the repeats, and half the width of its 95% interval."""
    level = Measurement.from_values(values)
    return f"{level.mean:,.0f} ± {level.margin:,.0f}"


def format_change(changed: list[float], default: list[float]) -> str:
    """Return the mean of the paired differences, and half the width of its 95% interval; bold if it excludes 0."""
    level = Criterion.paired("", changed, default).difference
    text = f"{level.mean:+,.0f} ± {level.margin:,.0f}".replace("-", "−")
    return f"**{text}**" if abs(level.mean) > level.margin else text


if __name__ == "__main__":
    main()
