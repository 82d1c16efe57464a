"""Check of the safety screen: regret compared with the bound of its theorem, and the share of choices it replaces.

The theorem is in docs/explanation/eloc.md. It covers only screens with the widths of the theorem: ``screen="theory"``
of ELOC, and ``safe=True`` of other policies with a sufficiently large ``alpha``. The check of ``safe=True`` uses LOCB
with wrong clusters (gamma 2). The check also reports the regret and the replaced choices of policies without a screen,
or with a screen without a guarantee.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from locb.common.arrays import Floats, Ints
from locb.environments import Categorical, Synthetic
from locb.evaluation.findings import Claim, Criterion, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.experiments.simulate import split_rounds
from locb.kernels.common.arm_scoring import SCREEN_SLACK
from locb.policies import make_policy
from locb.policies.base.capabilities import explainer

SECTION = "safety"
DELTA = 0.1
THEORY, WIDE = "ELOC, screen theory", "LOCB, gamma 2, safe, alpha of the theorem"
COVERED = (THEORY, WIDE)  # policies that the theorem covers
WRONG, WRONG_SAFE = "LOCB, gamma 2", "LOCB, gamma 2, safe"
# With gamma 2, all clusters are final, with all users as members, once each user was served.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    THEORY: ("eloc", {"screen": "theory", "robust": False, "delta": DELTA}),
    WIDE: ("locb", {"gamma": 2.0, "safe": True}),
    "ELOC, screen noise": ("eloc", {}),
    "LOCB, safe": ("locb", {"safe": True}),
    WRONG_SAFE: ("locb", {"gamma": 2.0, "safe": True}),
    WRONG: ("locb", {"gamma": 2.0}),
}
_SIZE: dict[str, Any] = {"n_users": 8, "n_arms": 5}
# Settings of the environment, and σ of its rewards: ½ is valid for rewards of 0 or 1.
SCENARIOS: dict[str, tuple[dict[str, Any], float]] = {
    "groups": ({**_SIZE, "n_clusters": 2, "raw_dim": 2}, 0.5),
    "no groups": ({**_SIZE, "n_clusters": 8, "raw_dim": 2}, 0.5),
    "low noise": ({**_SIZE, "n_clusters": 2, "raw_dim": 2, "noise": 0.05}, 0.05),
    "one-hot arms": ({**_SIZE, "n_clusters": 2, "categories": 5}, 0.5),
}
STEP, SAMPLE = 512, 32  # of each 512 rounds, the choices of the first 32 are explained to count replaced arms
MAX_RATIO = 1000.0  # a bound that exceeds the regret by a larger factor is not informative
COSTS = {"eloc": 20.0, "locb": 4.0}


def plan(rounds: int, repeats: int, seed: int) -> list[Job]:
    """Return the jobs of the check: one per scenario, policy and repeat, each with ``rounds`` rounds."""
    return [
        Job(
            measure_safety,
            environment,
            seed + repeat,
            {"label": label, "policy": policy, "parameters": parameters, "sigma": sigma, "rounds": rounds},
            cost=COSTS[policy] * rounds,
            data=scenario,
        )
        for scenario, (environment, sigma) in SCENARIOS.items()
        for label, (policy, parameters) in POLICIES.items()
        for repeat in range(repeats)
    ]


def measure_safety(
    *,
    environment: dict[str, Any],
    seed: int,
    label: str,
    policy: str,
    parameters: dict[str, Any],
    sigma: float,
    rounds: int,
) -> dict[str, Any]:
    """Return the regret of a policy, the share of replaced choices and, if the theorem covers the policy, the audit.

    The share is measured in a sample of the rounds (STEP, SAMPLE). ``possible`` is the largest possible regret, that
    of always choosing the worst arm. The results of the audit are those of ``audit_regret``.
    """
    env = (Categorical if "categories" in environment else Synthetic)(**environment, seed=seed)
    norm_bound = max(1.0, float(np.linalg.norm(env.theta, axis=1).max()))
    log_det = env.dim * math.log(1.0 + rounds / env.dim)  # at least log det A of any user
    alpha = _width(sigma, norm_bound, env.n_users - 1, log_det)
    widths = {THEORY: {"sigma": sigma, "norm_bound": norm_bound}, WIDE: {"alpha": alpha}}.get(label, {})
    player = make_policy(policy, n_users=env.n_users, dim=env.dim, seed=seed, **parameters, **widths)
    explain = explainer(player)
    possible, replaced, explained = 0.0, 0, 0
    played: list[tuple[Ints, Floats, Floats, Floats]] = []
    for block in split_rounds(env.stream(rounds, seed=seed), range(STEP, rounds, STEP)):
        sample = block.slice(0, SAMPLE)
        choices = explain(sample.users.tolist(), list(sample.contexts))
        replaced, explained = replaced + sum(choice.screened for choice in choices), explained + len(choices)
        every, chosen = np.arange(len(block)), player.play(block)
        possible += float(np.ptp(np.einsum("tkd,td->tk", block.contexts, env.theta[block.users]), axis=1).sum())
        played.append((block.users, block.contexts[every, chosen], block.earned(chosen), block.regret(chosen)))
    users, contexts, rewards, regret = (np.concatenate(parts) for parts in zip(*played, strict=True))
    outcome = {"rounds": rounds, "regret": float(regret.sum()), "possible": possible, "replaced": replaced / explained}
    if label in COVERED:
        fixed = alpha if label == WIDE else None
        outcome |= audit_regret(users, contexts, rewards, regret, env.theta, sigma, norm_bound, fixed)
    return outcome


def _width(sigma: float, norm_bound: float, i: int, log_det: Any) -> Any:
    """Return α_i of the theorem, for one log det A or for an array of them."""
    log_risk = math.log((math.pi * (i + 1)) ** 2 / (6.0 * DELTA))
    return sigma * np.sqrt(2.0 * log_risk + log_det) + norm_bound


def audit_regret(
    users: Ints,
    contexts: Floats,
    rewards: Floats,
    regret: Floats,
    theta: Floats,
    sigma: float,
    norm_bound: float,
    fixed: float | None = None,
) -> dict[str, Any]:
    """Compare the rounds of all users with the theorem of the safety screen, from its formulas.

    Parameters
    ----------
    users : (T,) int array
        User of each round.
    contexts : (T, d) array
        Context of the chosen arm.
    rewards, regret : (T,) array
        Reward and regret of the chosen arm.
    theta : (n, d) array
        True preferences of the users.
    sigma, norm_bound : float
        The parameters σ and S of the theorem.
    fixed : float, optional
        Weight of the widths of all users in all rounds, at least as large as all α_i of the theorem. By default, α_i.

    Returns
    -------
    dict
        ``bound``: the sum over users of the bound after the last round. ``below``: the number of rounds after which the
        regret of the user is at most its bound. ``largest_error``: the largest error of the expected reward of a chosen
        arm, in confidence widths. ``largest_regret``: the largest regret of a round, divided by the bound of the round.
    """
    bound, below, largest_error, largest_regret = 0.0, 0, 0.0, 0.0
    factor, identity = 2.0 + SCREEN_SLACK, np.eye(contexts.shape[1])
    for i in range(len(theta)):
        mine = users == i
        x, r, lost = contexts[mine], rewards[mine], regret[mine]
        if not len(x):
            continue
        gram, sums = np.cumsum(x[:, :, None] * x[:, None, :], axis=0), np.cumsum(r[:, None] * x, axis=0)
        before = np.concatenate([identity[None], identity + gram[:-1]])
        inverse = np.linalg.inv(before)
        estimate = np.einsum("tij,tj->ti", inverse, np.concatenate([np.zeros((1, x.shape[1])), sums[:-1]]))
        variance = np.einsum("ti,tij,tj->t", x, inverse, x)
        log_det = np.concatenate([[0.0], np.cumsum(np.log1p(variance))])  # before the first round, and after each round
        alpha = _width(sigma, norm_bound, i, log_det) if fixed is None else np.full(len(log_det), fixed)
        width = alpha[:-1] * np.sqrt(variance)
        largest_error = max(largest_error, float((np.abs(((estimate - theta[i]) * x).sum(axis=1)) / width).max()))
        largest_regret = max(largest_regret, float((lost / (factor * width)).max()))
        bounds = factor * alpha[1:] * np.sqrt(2.0 * np.arange(1, len(x) + 1) * log_det[1:])
        below += int((np.cumsum(lost) <= bounds).sum())
        bound += float(bounds[-1])
    return {"bound": bound, "below": below, "largest_error": largest_error, "largest_regret": largest_regret}


def summarize(outcomes: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[Claim]]:
    """Return a table of regret, bounds and replaced choices per scenario and policy, and the claims about them."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for job, outcome in outcomes:
        found.setdefault((job.data, job.settings["label"]), []).append(outcome)
    rows = [_row(scenario, label, values) for (scenario, label), values in found.items()]
    claims = []
    for scenario in dict.fromkeys(scenario for scenario, _ in found):
        claims += [_bound_claim(scenario, label, found[scenario, label]) for label in COVERED]
        claims.append(_gain_claim(scenario, found[scenario, WRONG], found[scenario, WRONG_SAFE]))
    audited = [outcome for (_, label), values in found.items() if label in COVERED for outcome in values]
    claims.append(_round_claim(audited))
    note = (
        f"8 users; δ = {DELTA:g}. The theorem covers only the policies with a bound; the others have no guarantee. The "
        "bound is the sum over users of the bound of the theorem. Possible regret: that of always choosing the worst "
        f"arm. A bound is informative if it is below the possible regret and at most {MAX_RATIO:,.0f} times the "
        "regret. Replaced: share of choices that the screen replaces, in a sample of the rounds. Largest error in "
        "widths: error of the expected reward of a chosen arm, divided by its confidence width. With gamma 2, all "
        "users are in every cluster."
    )
    return [ResultTable("safety", SECTION, "Safety screen: regret and replaced choices", rows, note)], claims


def is_informative(outcomes: list[dict[str, Any]]) -> bool:
    """Return whether the bound of every run is below the possible regret and at most MAX_RATIO times the regret."""
    return all(o["bound"] < o["possible"] and o["bound"] <= MAX_RATIO * o["regret"] for o in outcomes)


def _row(scenario: str, label: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    regret = Measurement.from_values(outcome["regret"] for outcome in outcomes)
    row = {"scenario": scenario, "policy": label, "regret": regret}
    row["replaced"] = None if label == WRONG else Measurement.from_values(outcome["replaced"] for outcome in outcomes)
    has_bound = label in COVERED
    bound = float(np.mean([outcome["bound"] for outcome in outcomes])) if has_bound else None
    row["bound"] = bound
    row["bound / regret"] = None if bound is None else bound / regret.mean
    possible = float(np.mean([outcome["possible"] for outcome in outcomes]))
    row["bound / possible regret"] = None if bound is None else bound / possible
    row["informative"] = None if bound is None else "yes" if is_informative(outcomes) else "no"
    row["largest error in widths"] = max(outcome["largest_error"] for outcome in outcomes) if has_bound else None
    return row


def _bound_claim(scenario: str, label: str, outcomes: list[dict[str, Any]]) -> Claim:
    below, total = (sum(outcome[name] for outcome in outcomes) for name in ("below", "rounds"))
    ratio = float(np.mean([outcome["bound"] for outcome in outcomes]) / np.mean([o["regret"] for o in outcomes]))
    possible = float(np.mean([outcome["bound"] / outcome["possible"] for outcome in outcomes]))
    size = f"the bound is {ratio:,.0f} times the regret and {possible:.2f} times the possible regret"
    criterion = Criterion.always("rounds after which regret is at most the bound", below, total)
    # A bound that fails is reported in any case.
    is_vacuous = below == total and not is_informative(outcomes)
    return Claim(
        SECTION,
        f"{scenario}, {label}, {outcomes[0]['rounds']:,} rounds",
        "With the widths of the theorem, the regret of every user stays below its bound in all rounds.",
        "not in the paper: theorem of the safety screen",
        [replace(criterion, detail=f"{criterion.detail}; {size}")],
        evidence=SECTION,
        guaranteed=True,
        family=SECTION,
        vacuous=f"{scenario}, {label}: the bound holds, but is not informative: {size}." if is_vacuous else "",
    )


def _round_claim(outcomes: list[dict[str, Any]]) -> Claim:
    """Return the claim about single rounds.

    The bound of a round is much closer to the measured regret than the bound of the sum over all rounds.
    """
    right = sum(outcome["largest_error"] <= 1.0 and outcome["largest_regret"] <= 1.0 for outcome in outcomes)
    error, regret = (max(outcome[name] for outcome in outcomes) for name in ("largest_error", "largest_regret"))
    sizes = f"the largest error is {error:.2f} widths, and the largest regret {regret:.2f} of its bound"
    criterion = Criterion.always("runs without an error or regret above its bound", right, len(outcomes))
    return Claim(
        SECTION,
        "all scenarios",
        "With the widths of the theorem, no error exceeds its width, and no regret of a round exceeds its bound.",
        "not in the paper: theorem of the safety screen",
        [replace(criterion, detail=f"{criterion.detail}; {sizes}")],
        evidence=SECTION,
        guaranteed=True,
        family=SECTION,
    )


def _gain_claim(scenario: str, wrong: list[dict[str, Any]], safe: list[dict[str, Any]]) -> Claim:
    """Return the claim about the ratio of the regrets without and with the screen.

    The claim uses logarithms of ratios, which vary less between environments than differences of regrets.
    """
    regrets = ([max(outcome["regret"], 1e-9) for outcome in outcomes] for outcomes in (wrong, safe))
    logs = [math.log(a / b) for a, b in zip(*regrets, strict=True)]
    ratio, name = Measurement.from_values(logs), "regret with gamma 2 divided by regret with gamma 2 and safe=True"
    low, mean, high = (math.exp(ratio.mean + sign * ratio.margin) for sign in (-1, 0, 1))
    detail = f"{name}: {mean:,.1f} (geometric mean; 95% interval {low:,.1f} to {high:,.1f})"
    return Claim(
        SECTION,
        f"{scenario}, {wrong[0]['rounds']:,} rounds",
        "With wrong clusters, safe=True reduces the regret of LOCB.",
        "not in the paper",
        [Criterion(name, ratio, detail)],
        evidence=SECTION,
        family=SECTION,
    )
