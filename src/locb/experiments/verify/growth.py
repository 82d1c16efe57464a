"""(d) Theorem 3: regret against its bound, and its growth with rounds and seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.confidence import regret_bound
from locb.evaluation.findings import Claim, Criterion, LineChart, Measurement, ResultTable, line_points
from locb.experiments.jobs import Job
from locb.experiments.simulate import simulate
from locb.experiments.verify.coverage import smallest_eigenvalue
from locb.policies import make_policy

SECTION = "growth"
SEED_COUNTS = (5, 10, 30, 100)
USUAL = 30
GAMMA = 0.2
PROVEN = "LOCB, theory radius, tau 1"
POINTS_A_DECADE = 8


def plan(rounds: int, worlds: int, seed: int) -> list[Job]:
    """A job a policy and world."""
    eigenvalue = smallest_eigenvalue(Synthetic())
    players: dict[str, tuple[str, dict[str, Any]]] = {
        f"LOCB, {count} seeds": ("locb", {"gamma": GAMMA, "n_seeds": count}) for count in SEED_COUNTS
    }
    theory = {"gamma": GAMMA, "n_seeds": USUAL, "tau": 1.0, "radius": "theory", "min_eigenvalue": eigenvalue}
    players |= {PROVEN: ("locb", theory), "LinUCB-ONE": ("linucb-one", {}), "LinUCB-IND": ("linucb-ind", {})}
    return [
        Job(
            lose,
            {},
            seed + number,
            {"label": label, "policy": policy, "rounds": rounds, "parameters": parameters},
            cost=2.0 * rounds,
        )
        for label, (policy, parameters) in players.items()
        for number in range(worlds)
    ]


def lose(
    *, world: dict[str, Any], seed: int, label: str, policy: str, rounds: int, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Cumulative regret at rounds spaced evenly in their logarithm."""
    env = Synthetic(**world, seed=seed)
    player = make_policy(policy, n_users=env.n_users, dim=env.dim, seed=seed, **parameters)
    run = simulate(player, env, rounds=rounds, seed=seed)
    decades = np.log10(rounds) - 2.0
    at = np.unique(np.logspace(2.0, 2.0 + decades, 1 + round(POINTS_A_DECADE * decades)).round().astype(int))
    return {"label": label, "at": at.tolist(), "regret": run.regret[at - 1].tolist(), "rounds": rounds}


def tell(played: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[LineChart], list[Claim]]:
    """Regret curves beside the bound, and what their slopes say."""
    curves: dict[str, Any] = {}
    for _, outcome in played:
        curves.setdefault(outcome["label"], []).append(outcome["regret"])
    curves = {label: np.array(values) for label, values in curves.items()}
    at = played[0][1]["at"]
    env = Synthetic()
    bound = [regret_bound(t, env.n_users, env.dim, gamma=GAMMA, min_eigenvalue=smallest_eigenvalue(env)) for t in at]
    since = next(place for place, t in enumerate(at) if t >= at[-1] / 10)  # the last tenfold of rounds

    def slopes(label: str) -> list[float]:
        return [float(np.polyfit(np.log(at[since:]), np.log(curve[since:]), 1)[0]) for curve in curves[label]]

    rows = [
        {
            "policy": label,
            "regret": Measurement.from_values(values[:, -1]),
            "power of T": Measurement.from_values(slopes(label)),
            "bound": bound[-1],
            "share of the bound": float(values[:, -1].mean() / bound[-1]),
        }
        for label, values in curves.items()
    ]
    points = []
    for label, values in curves.items():
        points += line_points(label, "round", at, "regret", values)
    points += [{"line": "bound of Theorem 3", "round": t, "regret": value} for t, value in zip(at, bound, strict=True)]
    points += [{"line": "one a round", "round": t, "regret": float(t)} for t in at]
    usual = f"LOCB, {USUAL} seeds"
    told_slope = Measurement.from_values(slopes(usual))
    growth = f"regret grows as T to the power {told_slope.mean:.3f} ± {told_slope.margin:.3f} in the last tenfold"

    def seeded(count: int) -> Any:
        return curves[f"LOCB, {count} seeds"]

    few, many = seeded(SEED_COUNTS[0])[:, -1], seeded(SEED_COUNTS[-1])[:, -1]
    under = int(sum((values < np.array(bound)).sum() for values in curves.values() if len(values)))
    total = int(sum(values.size for values in curves.values()))
    useless = bound[-1] > at[-1]
    data = f"{at[-1]:,} rounds of the synthetic world"
    proven, one, alone = (curves[label][:, -1] for label in (PROVEN, "LinUCB-ONE", "LinUCB-IND"))

    def claim(says: str, where: str, parts: list[Criterion], why: str = "") -> Claim:
        return Claim(SECTION, data, says, where, parts, why, SECTION)

    claims = [
        claim(
            "Regret stays below the bound.",
            "Theorem 3",
            [Criterion.always("points of the curves below the bound", under, total)],
            "The bound is above one a round here, which nobody can lose, so that it says nothing at this size."
            if useless
            else "",
        ),
        claim(
            "Regret grows more slowly than the rounds.",
            "Theorem 3",
            [Criterion("slower than T", Measurement(1.0 - told_slope.mean, told_slope.margin), growth)],
        ),
        claim(
            "Regret grows as the root of the rounds, or more slowly.",
            "Theorem 3, first term",
            [Criterion("no faster than √T", Measurement(0.5 - told_slope.mean, told_slope.margin), growth)],
            "The theorem has a second term, γ a round: a set of users who differ costs something in every round, and "
            "no number of rounds makes up for it.",
        ),
        claim(
            "More seeds do not raise the regret.",
            "Theorem 3, free of |S|",
            [Criterion.paired(f"regret with {SEED_COUNTS[0]} seeds above that with {SEED_COUNTS[-1]}", few, many)],
        ),
        claim(
            "LOCB stays ahead of LinUCB-IND.",
            "not in the paper: Section 6.2 with 20 times the rounds",
            [
                Criterion.paired(
                    f"regret of LinUCB-IND above that of LOCB with {USUAL} seeds", alone, curves[usual][:, -1]
                )
            ],
            "Returned sets are frozen, and what is not shared inside a set costs something in every round; a user who "
            "learns alone stops paying."
            if alone.mean() < curves[usual][:, -1].mean()
            else "",
        ),
        claim(
            "With the radius that the theorems rest on, LOCB does better than one estimate for all.",
            "not in the paper: implied by Theorems 2 and 3",
            [Criterion.paired("regret of LinUCB-ONE above that of LOCB with the theory radius", one, proven)],
            "With that radius nobody leaves a set for as long as these runs last, so that LOCB pools everyone; the "
            "experiments of the paper use smaller radii without a proof.",
        ),
    ]
    title = "Theorem 3: regret and its bound"
    chart = LineChart(
        "growth",
        SECTION,
        title,
        "logarithmic axes; dashed: not measured",
        "round",
        "regret",
        points,
        log_x=True,
        log_y=True,
        dashed=("bound of Theorem 3", "one a round"),
    )
    by_seeds = LineChart(
        "growth-by-seeds",
        SECTION,
        "Theorem 3: regret by the number of seeds",
        f"after {at[-1]:,} rounds; shaded: 95% interval",
        "seeds",
        "regret",
        line_points(
            "LOCB", "seeds", SEED_COUNTS, "regret", np.array([seeded(count)[:, -1] for count in SEED_COUNTS]).T
        ),
        log_x=True,
    )
    note = f"γ = {GAMMA:g}, δ = 0.1, alpha 1; the power of T is fitted to the last tenfold of rounds."
    return [ResultTable("growth", SECTION, title, rows, note)], [chart, by_seeds], claims
