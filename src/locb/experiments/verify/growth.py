"""Check of Theorem 3 of the LOCB paper: regret compared with its bound, and its growth with rounds and seed users."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.common.arrays import Floats
from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.evaluation.theorem_bounds import regret_bound
from locb.experiments.jobs import Job
from locb.experiments.simulate import simulate
from locb.experiments.verify.coverage import smallest_eigenvalue
from locb.policies import make_policy

SECTION = "growth"
TITLE = "Theorem 3: regret and its bound"
SEED_COUNTS = (5, 10, 30, 100)
REFERENCE_SEEDS = 30
GAMMA = 0.2
LOCB_DEFAULT = f"LOCB, {REFERENCE_SEEDS} seeds"
LOCB_THEORY = "LOCB, settings of Theorem 3"
BOUND, MAXIMUM = "bound of Theorem 3", "1 per round"
POINTS_PER_DECADE = 8


def plan(rounds: int, repeats: int, seed: int) -> list[Job]:
    """Return the jobs of the check: one per policy and repeat, each with ``rounds`` rounds."""
    eigenvalue = smallest_eigenvalue(Synthetic())
    policies: dict[str, tuple[str, dict[str, Any]]] = {
        f"LOCB, {count} seeds": ("locb", {"gamma": GAMMA, "n_seeds": count}) for count in SEED_COUNTS
    }
    # The theorem has alpha = O(√(d log T)), the theory radius, and no factor tau.
    theory = {"gamma": GAMMA, "n_seeds": REFERENCE_SEEDS, "tau": 1.0, "radius": "theory", "min_eigenvalue": eigenvalue}
    theory["alpha"] = float(np.sqrt(Synthetic().dim * np.log(rounds)))
    policies |= {LOCB_THEORY: ("locb", theory), "LinUCB-ONE": ("linucb-one", {}), "LinUCB-IND": ("linucb-ind", {})}
    return [
        Job(
            measure_regret,
            {},
            seed + repeat,
            {"label": label, "policy": policy, "rounds": rounds, "parameters": parameters},
            cost=2.0 * rounds,
        )
        for label, (policy, parameters) in policies.items()
        for repeat in range(repeats)
    ]


def measure_regret(
    *, environment: dict[str, Any], seed: int, label: str, policy: str, rounds: int, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return the cumulative regret of a policy from round 100 to the last round, at 8 points per factor of 10."""
    env = Synthetic(**environment, seed=seed)
    player = make_policy(policy, n_users=env.n_users, dim=env.dim, seed=seed, **parameters)
    run = simulate(player, env, rounds=rounds, seed=seed)
    decades = np.log10(rounds) - 2.0
    points = np.unique(np.logspace(2.0, 2.0 + decades, 1 + round(POINTS_PER_DECADE * decades)).round().astype(int))
    return {"label": label, "points": points.tolist(), "regret": run.regret[points - 1].tolist(), "rounds": rounds}


def summarize(
    outcomes: list[tuple[Job, dict[str, Any]]],
) -> tuple[list[ResultTable], list[LineChart], list[Claim]]:
    """Return the table and charts of the regret next to its bound, and the claims about its growth."""
    by_label: dict[str, list[list[float]]] = {}
    for _, outcome in outcomes:
        by_label.setdefault(outcome["label"], []).append(outcome["regret"])
    curves: dict[str, Floats] = {label: np.array(values) for label, values in by_label.items()}
    rounds = outcomes[0][1]["points"]
    env = Synthetic()
    eigenvalue = smallest_eigenvalue(env)
    bound = [regret_bound(t, env.n_users, env.dim, gamma=GAMMA, min_eigenvalue=eigenvalue) for t in rounds]
    rows = [
        {
            "policy": label,
            "regret": Measurement.from_values(values[:, -1]),
            "exponent of T": Measurement.from_values(_exponents(rounds, values)),
            "bound": bound[-1] if label == LOCB_THEORY else None,
            "share of the bound": float(values[:, -1].mean() / bound[-1]) if label == LOCB_THEORY else None,
        }
        for label, values in curves.items()
    ]
    note = (
        f"γ = {GAMMA:g}, δ = 0.1, alpha 1. T is the number of rounds. {LOCB_THEORY}: alpha √(d log T), tau 1 and the "
        "theory radius; the bound holds only with these settings. The exponent of T is fitted to the last decade of "
        "rounds: from one tenth of the rounds to the end."
    )
    figures = [_chart(rounds, curves, bound), _seeds_chart(rounds, curves)]
    return [ResultTable("growth", SECTION, TITLE, rows, note)], figures, _claims(rounds, curves, bound)


def _exponents(rounds: list[int], curves: Floats) -> list[float]:
    """Return the exponent of the growth of regret, one value per repeat.

    The exponent is the slope of log regret over log rounds in the last decade: from one tenth of the rounds to the end.
    """
    start = next(index for index, t in enumerate(rounds) if t >= rounds[-1] / 10)
    return [float(np.polyfit(np.log(rounds[start:]), np.log(curve[start:]), 1)[0]) for curve in curves]


def _chart(rounds: list[int], curves: dict[str, Floats], bound: list[float]) -> LineChart:
    points = []
    for label, values in curves.items():
        points += line_points(label, "round", rounds, "regret", values)
    points += [{"line": BOUND, "round": t, "regret": value} for t, value in zip(rounds, bound, strict=True)]
    points += [{"line": MAXIMUM, "round": t, "regret": float(t)} for t in rounds]
    return LineChart(
        "growth",
        SECTION,
        TITLE,
        "logarithmic axes; dashed: not measured",
        "round",
        "regret",
        points,
        log_x=True,
        log_y=True,
        dashed=(BOUND, MAXIMUM),
    )


def _seeds_chart(rounds: list[int], curves: dict[str, Floats]) -> LineChart:
    final = np.array([curves[f"LOCB, {count} seeds"][:, -1] for count in SEED_COUNTS]).T
    return LineChart(
        "growth-by-seeds",
        SECTION,
        "Theorem 3: regret by the number of seeds",
        f"after {rounds[-1]:,} rounds; shaded: 95% interval",
        "seeds",
        "regret",
        line_points("LOCB", "seeds", SEED_COUNTS, "regret", final),
        log_x=True,
    )


def _claims(rounds: list[int], curves: dict[str, Floats], bound: list[float]) -> list[Claim]:
    data = f"{rounds[-1]:,} rounds of the synthetic environment"

    def claim(statement: str, source: str, criterion: Criterion, explanation: str = "", vacuous: str = "") -> Claim:
        return Claim(SECTION, data, statement, source, [criterion], explanation, SECTION, vacuous=vacuous)

    exponent = Measurement.from_values(_exponents(rounds, curves[LOCB_DEFAULT]))
    growth = f"regret grows as T to the power {exponent.mean:.3f} ± {exponent.margin:.3f} in the last decade of rounds"
    covered = curves[LOCB_THEORY]
    below, total = int((covered < np.array(bound)).sum()), covered.size
    trivial = bound[-1] > rounds[-1]
    few, many = (curves[f"LOCB, {count} seeds"][:, -1] for count in (SEED_COUNTS[0], SEED_COUNTS[-1]))
    return [
        claim(
            "Regret stays below the bound of the theorem.",
            "Theorem 3",
            Criterion.always("points of the curves below the bound", below, total),
            vacuous="The bound exceeds 1 per round, the largest possible regret of a round." if trivial else "",
        ),
        claim(
            "Regret grows more slowly than the number of rounds.",
            "Theorem 3",
            Criterion("slower than T", Measurement(1.0 - exponent.mean, exponent.margin, exponent.degrees), growth),
        ),
        claim(
            "Regret grows no faster than the square root of the number of rounds.",
            "Theorem 3, first term",
            Criterion("no faster than √T", Measurement(0.5 - exponent.mean, exponent.margin, exponent.degrees), growth),
            "The bound of the theorem has a second term, which grows by 2γ per round: the differences between the "
            "users of a cluster cost regret in every round.",
        ),
        claim(
            "More seeds do not raise the regret.",
            "Theorem 3, whose bound does not depend on the number of seeds",
            Criterion.paired(f"regret with {SEED_COUNTS[0]} seeds above regret with {SEED_COUNTS[-1]}", few, many),
        ),
        *_baseline_claims(claim, curves, rounds[-1]),
    ]


def _baseline_claims(claim: Any, curves: dict[str, Floats], rounds: int) -> list[Claim]:
    locb, theory, shared, individual = (
        curves[label][:, -1] for label in (LOCB_DEFAULT, LOCB_THEORY, "LinUCB-ONE", "LinUCB-IND")
    )
    return [
        claim(
            "LOCB has lower regret than LinUCB-IND.",
            f"not in the paper: the comparison of Section 6.2 with {rounds:,} rounds",
            Criterion.paired(
                f"regret of LinUCB-IND above regret of LOCB with {REFERENCE_SEEDS} seeds", individual, locb
            ),
            "Final clusters do not change, and differences within a cluster cost regret in every round. LinUCB-IND "
            "learns every user separately and has no such cost."
            if individual.mean() < locb.mean()
            else "",
        ),
        claim(
            "With the settings of Theorem 3, LOCB has lower regret than LinUCB-ONE.",
            "not in the paper: implied by Theorems 2 and 3",
            Criterion.paired("regret of LinUCB-ONE above regret of LOCB with these settings", shared, theory),
            "With the theory radius, no user leaves a cluster during these runs, so LOCB uses the mean estimate of all "
            "users. The experiments of the paper use smaller radii without proof.",
        ),
    ]
