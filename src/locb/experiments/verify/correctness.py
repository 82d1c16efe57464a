"""Check of Theorem 1 of the LOCB paper: all clusters that become final with tau = 1 are true gamma-clusters.

A cluster of LOCB is final when it does not change any more. A true gamma-cluster is a set of users in which the
distance between the true parameter vectors θ of any two users is below gamma. See :class:`locb.LOCB` for gamma, tau and
the rules that make a cluster final.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from locb.environments import Synthetic
from locb.evaluation.findings import Claim, Criterion, Measurement, ResultTable
from locb.experiments.jobs import Job
from locb.experiments.reproduce.runs import play_until_final
from locb.policies import LOCB

SECTION = "correctness"
RULES = {"radius": "tau = 1, with re-test", "published": "tau = 1, without re-test", "certificate": "certificate"}
ARRIVALS = {"play_random_arrivals": "random", "play_sequential_arrivals": "sequential"}
MAX_ROUNDS = 400_000_000  # limit per run
BLOCK = 4096  # rounds per block with sequential arrivals
PROOF_GAP = (
    "The paper tests only the user who was served. With sequential arrivals, the last test of an early user against a "
    "late seed takes place before the seed has observations, and the cluster becomes final with that user. This is the "
    "gap in the proof of Theorem 1. Testing all members again before a cluster becomes final closes the gap."
)


def plan(n_users: int, gammas: Sequence[float], repeats: int, seed: int) -> list[Job]:
    """Return the jobs of the check, with random and with sequential arrivals.

    With random arrivals, there is one job per gamma, rule and repeat. With sequential arrivals, there is one job per
    repeat for each of the rules "radius" and "published", with 10 users and the first gamma.

    Parameters
    ----------
    n_users : int
        Number of users with random arrivals.
    gammas : sequence of float
        Values of gamma.
    repeats : int
        Number of environments per gamma and rule.
    seed : int
        Random seed of the first environment.
    """
    environment = {"n_users": n_users, "n_clusters": 4}
    jobs = [
        Job(
            play_random_arrivals,
            environment,
            seed + repeat,
            {"gamma": gamma, "stop": stop},
            cost=(1.0 if stop == "certificate" else 8.0) * n_users * 140_000.0 / gamma**2,
        )
        for gamma in gammas
        for stop in RULES
        for repeat in range(repeats)
    ]
    small = {"n_users": 10, "n_clusters": 4}
    jobs += [
        Job(
            play_sequential_arrivals,
            small,
            seed + repeat,
            {"gamma": gammas[0], "stop": stop},
            cost=8.0 * 10 * 140_000.0,
        )
        for stop in ("radius", "published")
        for repeat in range(repeats)
    ]
    return jobs


def _make_locb(env: Synthetic, gamma: float, stop: str) -> LOCB:
    """Return LOCB with tau = 1, the ellipsoid radius, which has a proof of coverage, and every user as a seed user."""
    size: dict[str, Any] = {"n_users": env.n_users, "dim": env.dim, "n_seeds": env.n_users}
    return LOCB(**size, gamma=gamma, tau=1.0, radius="ellipsoid", stop=stop)


def play_random_arrivals(*, environment: dict[str, Any], seed: int, gamma: float, stop: str) -> dict[str, Any]:
    """Play rounds with users in random order until all clusters are final, and count the wrong clusters.

    A cluster is wrong if the distance between the true θ of two members is not below gamma.
    """
    env = Synthetic(**environment, seed=seed)
    policy = _make_locb(env, gamma, stop)
    return _check_clusters(policy, env, gamma, play_until_final(policy, env, seed, MAX_ROUNDS))


def play_sequential_arrivals(*, environment: dict[str, Any], seed: int, gamma: float, stop: str) -> dict[str, Any]:
    """Play all rounds of one user before those of the next user, and count the wrong final clusters.

    A cluster is wrong if the distance between the true θ of two members is not below gamma. The rounds of a user end
    when the confidence radius of the user's estimate is below gamma / 8. With this order, the last test of an early
    user against a late seed user takes place before the seed user has observations.
    """
    env = Synthetic(**environment, seed=seed)
    policy = _make_locb(env, gamma, stop)
    for user in range(env.n_users):
        block = 0
        while policy.radii[user] >= gamma / 8.0 and policy.rounds_played < MAX_ROUNDS:
            rng = np.random.default_rng([seed, user, block])
            policy.play(env.rounds_of(np.full(BLOCK, user), rng))
            block += 1
    return _check_clusters(policy, env, gamma, policy.rounds_played)


def _check_clusters(policy: LOCB, env: Synthetic, gamma: float, rounds: int) -> dict[str, Any]:
    wrong = violated = 0
    largest = 0.0
    final = [cluster for cluster in policy.clusters() if cluster.returned_at is not None]
    for cluster in final:
        theta = env.theta[cluster.members]
        diameter = float(np.linalg.norm(theta[:, None] - theta[None, :], axis=2).max())
        largest = max(largest, diameter)
        wrong += not diameter < gamma
        violated += policy.certificate(cluster) < diameter
    counts = {"clusters": len(final), "wrong": wrong, "violated_certificates": violated}
    return {"rounds": rounds, "not_final": len(policy.clusters()) - len(final), "largest_diameter": largest, **counts}


def summarize(outcomes: list[tuple[Job, dict[str, Any]]]) -> tuple[list[ResultTable], list[Claim]]:
    """Return a table of the final clusters and rounds per rule, and the claims about them."""
    found: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for job, outcome in outcomes:
        key = (ARRIVALS[job.function.__name__], job.settings["gamma"], job.settings["stop"])
        found.setdefault(key, []).append(outcome)
    rows, claims = [], []
    for (arrivals, gamma, stop), values in found.items():
        rows.append(_row(arrivals, gamma, stop, values))
        claims.append(_correctness_claim(arrivals, gamma, stop, values))
    violated = sum(outcome["violated_certificates"] for _, outcome in outcomes)
    total = sum(outcome["clusters"] for _, outcome in outcomes)
    criterion = Criterion.always("certificates at least as large as the true diameter", total - violated, total)
    statement = "No cluster has a diameter above its certificate."
    claims.append(
        Claim(SECTION, "all of these runs", statement, "not in the paper", [criterion], "", SECTION, guaranteed=True)
    )
    claims += [
        _speed_claim(gamma, found["random", gamma, "radius"], found["random", gamma, "certificate"])
        for gamma in dict.fromkeys(gamma for _, gamma, _ in found)
    ]
    note = (
        "Ellipsoid radius, δ = 0.1, every user is a seed. Rounds: until the last cluster is final. A gamma-cluster is "
        "a set of users in which the distance between the preference vectors of any two users is below gamma. "
        "True diameter: the largest of these distances in a cluster."
    )
    return [ResultTable("correctness", SECTION, "Theorem 1: final clusters", rows, note)], claims


def _row(arrivals: str, gamma: float, stop: str, outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "arrivals": arrivals,
        "gamma": gamma,
        "rule": RULES[stop],
        "environments": len(outcomes),
        "rounds": Measurement.from_values(outcome["rounds"] for outcome in outcomes),
        "clusters": sum(outcome["clusters"] for outcome in outcomes),
        "not a gamma-cluster": sum(outcome["wrong"] for outcome in outcomes),
        "largest true diameter": max(outcome["largest_diameter"] for outcome in outcomes),
        "certificates violated": sum(outcome["violated_certificates"] for outcome in outcomes),
        "clusters not final": sum(outcome["not_final"] for outcome in outcomes),
    }


def _correctness_claim(arrivals: str, gamma: float, stop: str, outcomes: list[dict[str, Any]]) -> Claim:
    total, wrong = (sum(outcome[name] for outcome in outcomes) for name in ("clusters", "wrong"))
    by_certificate = stop == "certificate"
    condition = {"certificate": "by their certificate", "radius": "with tau = 1 and the re-test"}.get(
        stop, "with tau = 1 and without the re-test"
    )
    statement = f"All clusters that become final {condition} are true gamma-clusters."
    rule = "" if by_certificate else ", with re-test" if stop == "radius" else ", without re-test"
    data = f"gamma {gamma:g}, {arrivals} arrivals{rule}"
    criterion = Criterion.always("final clusters that are true gamma-clusters", total - wrong, total)
    source = "not in the paper: the guarantee of Theorem 1 for another rule" if by_certificate else "Theorem 1"
    explanation = PROOF_GAP if wrong and stop == "published" else ""
    return Claim(SECTION, data, statement, source, [criterion], explanation, SECTION, guaranteed=stop != "published")


def _speed_claim(gamma: float, slow: list[dict[str, Any]], fast: list[dict[str, Any]]) -> Claim:
    ratio = Measurement.from_values(a["rounds"] / b["rounds"] for a, b in zip(slow, fast, strict=True))
    detail = f"rounds with tau = 1 divided by rounds with the certificate: {ratio.mean:.1f} ± {ratio.margin:.1f}"
    criterion = Criterion("fewer rounds", Measurement(ratio.mean - 1.0, ratio.margin, ratio.degrees), detail)
    statement = "The certificate gives the guarantee of Theorem 1 in fewer rounds."
    data = f"gamma {gamma:g}, random arrivals"
    return Claim(SECTION, data, statement, "not in the paper", [criterion], "", SECTION)
