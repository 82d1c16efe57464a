"""Figures 1 and 2: users in two dimensions, and accuracy as rounds go by."""

from __future__ import annotations

from typing import Any

import numpy as np

from locb.environments import Interactions
from locb.evaluation.findings import (
    FAILS,
    HOLDS,
    Claim,
    Criterion,
    GroupMap,
    LineChart,
    Measurement,
    ResultTable,
    line_points,
)
from locb.experiments import paper_values as paper
from locb.experiments.environment_factory import noise_free_environment, truth
from locb.experiments.jobs import Job
from locb.experiments.reproduce import runs
from locb.experiments.reproduce.targets import DataSet, Evidence, Played, Sizes
from locb.policies import policy_spec

POINTS = 50  # of a curve
FOLLOWED = {name: policy_spec(name).label for name in ("locb", "club", "sclub")}


def plan_users(data: DataSet, sizes: Sizes) -> list[Job]:
    """Nothing is played."""
    return []


def tell_users(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """60 users in two dimensions, and whether any two of them are the same."""
    env: Any = noise_free_environment({**data.world, "n_users": paper.MAP_USERS}, sizes.seed)
    gamma = paper.GAMMA
    if isinstance(env, Interactions) and env.users_in_groups(gamma) < env.n_users / 2:
        gamma = min(env.scaled_gamma(), 1e9)
    groups = [cluster.tolist() for cluster in truth(env, gamma)]
    apart = np.linalg.norm(env.theta[:, None] - env.theta[None, :], axis=2)[np.triu_indices(env.n_users, 1)]
    subtitle = f"θ of {env.n_users} users in two dimensions; groups of users all nearer than {gamma:.3g}"
    name, title = f"users-{data.name}", f"Users: {data.label}"
    row: dict[str, Any] = {
        "users": env.n_users,
        "smallest distance": float(apart.min()),
        "median distance": float(np.median(apart)),
        "largest distance": float(apart.max()),
        "pairs nearer than 0.2": float((apart < paper.GAMMA).mean()),
    }
    parts = [Criterion.always("pairs of users who differ", int((apart > 0.0).sum()), apart.size)]
    says = "No two users have the same parameters."
    return Evidence(
        [ResultTable(name, "users", title, [row])],
        [GroupMap(name, "users", title, subtitle, env.theta, groups)],
        [Claim("users", data.label, says, "Cluster structure, figure in Section 1", parts, evidence=name)],
    )


def plan_rounds(data: DataSet, sizes: Sizes) -> list[Job]:
    """A job a policy and repeat."""
    at = np.unique(np.linspace(0, 2 * sizes.rounds, POINTS + 1).round().astype(int))[1:].tolist()
    own: dict[str, dict[str, Any]] = {
        "locb": {"gamma": paper.GAMMA, "tau": paper.TAU, "n_seeds": paper.ACCURACY_SEEDS, "sigma": paper.SIGMA}
    }
    own["locb"] |= {"delta": paper.DELTA, "radius": "clustering"}
    return [
        Job(
            runs.over_rounds,
            data.world,
            sizes.seed + repeat,
            {"policy": name, "judged_at": data.gammas, "at": at, "parameters": own.get(name, {"alpha": 1.0})},
            cost=6.0 * sizes.rounds,
            data=data.name,
        )
        for name in FOLLOWED
        for repeat in range(sizes.repeats)
    ]


def tell_rounds(data: DataSet, sizes: Sizes, played: Played) -> Evidence:
    """F1 over rounds: does it peak and fall for CLUB and SCLUB?"""
    evidence = Evidence([], [], [])
    at = played[0][0].settings["at"]
    for judged in data.gammas:
        curves = {}
        for name in FOLLOWED:
            of = {job.seed: outcome["f1"] for job, outcome in played if job.settings["policy"] == name}
            curves[name] = np.array([of[seed][f"{judged:g}"] for seed in sorted(of)])
        points = []
        for name, label in FOLLOWED.items():
            points += line_points(label, "round", at, "F1", curves[name], upper=1.0)
        where = data.label if data.scaled is None else f"{data.label}, judged at gamma {judged:g}"
        name = f"rounds-{data.name}" + ("" if judged == paper.GAMMA else f"-judged-{judged:g}")
        title = f"Accuracy over rounds: {where}"
        subtitle = "LOCB at tau 10 with 100 seeds, CLUB and SCLUB at alpha 1; shaded: 95% interval"
        evidence.figures.append(LineChart(name, "rounds", title, subtitle, "round", "F1", points))
        rows: list[dict[str, Any]] = [
            {
                "policy": label,
                "highest mean F1": float(curves[key].mean(axis=0).max()),
                "in round": int(at[int(curves[key].mean(axis=0).argmax())]),
                "F1": Measurement.from_values(curves[key][:, -1]),
                "rounds": at[-1],
            }
            for key, label in FOLLOWED.items()
        ]
        evidence.tables.append(ResultTable(name, "rounds", title, rows, "F1 is that after the last round."))
        chosen = "(its round chosen by the other repeats)"
        falls = [
            Criterion(
                f"F1 of {label} at its peak {chosen} above that at the end",
                Measurement.from_values(_fall(curves[key])),
            )
            for key, label in FOLLOWED.items()
            if key != "locb"
        ]
        last = curves["locb"][:, -1]
        best = [
            Criterion.paired(f"F1 of LOCB above that of {label} at the end", last, curves[key][:, -1])
            for key, label in FOLLOWED.items()
            if key != "locb"
        ]
        why = data.why if judged == paper.GAMMA else ""
        source = "Varying accuracy, figure in Section 1"
        if not why and falls[0].verdict == HOLDS and falls[1].verdict == FAILS:
            why = "CLUB only cuts, and loses what it had; SCLUB also merges, and keeps it."
        says = "CLUB and SCLUB find the clusters best at some round and lose them again."
        evidence.claims.append(Claim("rounds", where, says, source, falls, why, name))
        evidence.claims.append(Claim("rounds", where, "LOCB ends with the best clusters.", source, best, evidence=name))
    return evidence


def _fall(curves: Any) -> list[float]:
    """How far F1 falls from its peak to the end; the other repeats say where the peak is, which favours nothing."""
    found = []
    for one in range(len(curves)):
        others = np.delete(curves, one, axis=0) if len(curves) > 1 else curves
        peak = int(others.mean(axis=0).argmax())
        found.append(float(curves[one, peak] - curves[one, -1]))
    return found
