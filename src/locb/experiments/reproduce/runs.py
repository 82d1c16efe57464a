"""Functions that run one job of a reproduction. The outcome of a job depends on its arguments only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from locb.common.arrays import Ints
from locb.environments import Environment
from locb.evaluation.cluster_agreement import cluster_agreement
from locb.evaluation.clusters import match_clusters
from locb.experiments import paper_values as paper
from locb.experiments.comparison.curve_points import regret_checkpoints
from locb.experiments.environment_factory import make_environment, true_clusters
from locb.experiments.simulate import simulate, split_rounds
from locb.policies import CLUB, LOCB, Policy, make_policy

# Policies that stop in the same round as LOCB: name of the policy, and name of its threshold.
STOPPED_BASELINES = {"ST-CLUB": ("club", "alpha2"), "ST-SCLUB": ("sclub", "alpha_theta"), "ST-ELOC": ("eloc", "")}
RECOVERED_F1 = 0.8  # F1 of a found cluster from which on a true cluster counts as recovered
STOPS = {"radius": "LOCB", "published": paper.PRINTED}  # stopping rule → method


def accuracy(
    *,
    environment: dict[str, Any],
    seed: int,
    gamma: float,
    truth_gammas: Sequence[float],
    taus: Sequence[float],
    alphas: Sequence[float],
    thresholds: dict[str, Sequence[float]],
    n_seeds: int,
    sigma: float,
    delta: float,
    stable_rounds: int,
    max_rounds: int,
    max_stable_rounds: int,
) -> dict[str, Any]:
    """Return the accuracy of all methods of Tables 1 and 2.

    LOCB runs until its last cluster is final, in two versions: with the re-test of all members before a cluster becomes
    final, and as printed in the paper, without it. ST-CLUB, ST-SCLUB and ST-ELOC run until the same round as LOCB with
    the re-test, and N-CLUB and N-LOCB until their clusters are stable.

    Parameters
    ----------
    environment, seed, gamma, n_seeds, sigma, delta
        Arguments of ``make_environment``, and parameters of :class:`locb.LOCB` with at most one seed per user.
    taus, alphas, thresholds
        Values of tau for LOCB (N-LOCB uses the first), and of alpha, ``alpha2`` and ``alpha_theta`` for CLUB and SCLUB.
    truth_gammas, stable_rounds, max_rounds, max_stable_rounds
        Gammas of the true clusters; rounds without a change after which N-CLUB and N-LOCB stop; limits of rounds.
    """
    env = make_environment(environment, seed, warn=False)
    truths = _true_clusters(env, truth_gammas)
    records: list[dict[str, Any]] = []

    def record(method: str, policy: Policy, rounds: int, **setting: Any) -> None:
        common = {"method": method, **setting, "rounds": rounds}
        records.extend({**common, **score} for score in _scores(policy, truths))

    last_rounds: dict[float, int] = {}
    for stop, method in STOPS.items():
        for tau in taus:
            locb = _make_locb(env, gamma, tau, n_seeds, sigma, delta, seed, stop)
            rounds = play_until_final(locb, env, seed, max_rounds)
            record(method, locb, rounds, tau=tau)
            if stop == "radius":
                last_rounds[tau] = rounds
    for method, (name, threshold) in STOPPED_BASELINES.items():
        for setting in _settings(alphas, threshold, thresholds):
            baseline = make_policy(name, n_users=env.n_users, dim=env.dim, seed=seed, **setting)
            for tau, last in _play_until_taus(baseline, env, seed, last_rounds):
                record(method, baseline, last, tau=tau, **setting)
    for setting in _settings(alphas, "alpha2", thresholds):
        club: Any = make_policy("club", n_users=env.n_users, dim=env.dim, seed=seed, **setting)
        for counted_from, last in play_until_stable(club, env, seed, stable_rounds, max_stable_rounds):
            record("N-CLUB", club, last, counted_from=counted_from, **setting)
    locb = _make_locb(env, gamma, taus[0], n_seeds, sigma, delta, seed)
    for counted_from, last in play_until_stable(locb, env, seed, stable_rounds, max_stable_rounds):
        record("N-LOCB", locb, last, counted_from=counted_from)
    return {"records": records}


def _play_until_taus(
    policy: Policy, env: Environment, seed: int, last_rounds: dict[float, int]
) -> Iterator[tuple[float, int]]:
    """Play, and yield each tau with its last round when the policy has played that round."""
    for last in play_with_stops(policy, env, seed, sorted(set(last_rounds.values()))):
        for tau, rounds in last_rounds.items():
            if rounds == last:
                yield tau, last


def _settings(
    alphas: Sequence[float], threshold: str, thresholds: dict[str, Sequence[float]]
) -> list[dict[str, float]]:
    """Return all combinations of alpha and a threshold; one empty combination for a policy without a threshold."""
    if not threshold:
        return [{}]
    return [{"alpha": alpha, threshold: value} for alpha in alphas for value in thresholds[threshold]]


def final_clusters(
    *,
    environment: dict[str, Any],
    seed: int,
    gamma: float,
    truth_gammas: Sequence[float],
    tau: float,
    n_seeds: int,
    sigma: float,
    delta: float,
    stop: str,
    max_rounds: int,
    alpha: float = 1.0,
) -> dict[str, Any]:
    """Return the accuracy of LOCB in the round in which its last cluster becomes final.

    See :func:`accuracy` for the parameters, and :class:`locb.LOCB` for ``stop`` and ``alpha``.
    """
    env = make_environment(environment, seed, warn=False)
    policy = _make_locb(env, gamma, tau, n_seeds, sigma, delta, seed, stop, alpha)
    rounds = play_until_final(policy, env, seed, max_rounds)
    truths = _true_clusters(env, truth_gammas)
    return {"records": [{**score, "rounds": rounds} for score in _scores(policy, truths)]}


def accuracy_over_rounds(
    *,
    environment: dict[str, Any],
    seed: int,
    policy: str,
    truth_gammas: Sequence[float],
    points: Sequence[int],
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return F1 of the clusters of a policy after each round in ``points``, for each gamma of the true clusters."""
    env = make_environment(environment, seed, warn=False)
    player = _make_policy(policy, env, seed, parameters)
    truths = _true_clusters(env, truth_gammas)
    f1: dict[str, list[float]] = {f"{gamma:g}": [] for gamma in truth_gammas}
    for _ in play_with_stops(player, env, seed, points):
        for score in _scores(player, truths):
            f1[f"{score['truth_gamma']:g}"].append(score["f1"])
    return {"f1": f1}


def regret(
    *, environment: dict[str, Any], seed: int, policy: str, rounds: int, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return the cumulative regret of a policy at up to 200 evenly spaced rounds."""
    env = make_environment(environment, seed, warn=False)
    run = simulate(_make_policy(policy, env, seed, parameters), env, rounds=rounds, seed=seed)
    points = regret_checkpoints(rounds)
    return {"rounds": points.tolist(), "regret": run.regret[points - 1].tolist()}


def play_until_final(policy: LOCB, env: Environment, seed: int, max_rounds: int) -> int:
    """Play until all clusters of LOCB are final, and return the round in which the last cluster became final.

    The policy plays whole blocks of rounds, so it may have played more rounds. If a cluster is not final after
    ``max_rounds`` rounds, return ``max_rounds``.
    """
    for block in env.stream(max_rounds, seed=seed):
        policy.play(block)
        if policy.finished:
            return max(cluster.returned_at or 0 for cluster in policy.clusters())
    return max_rounds


def play_with_stops(policy: Policy, env: Environment, seed: int, stops: Sequence[int]) -> Iterator[int]:
    """Play rounds of an environment and yield the number of rounds played at each of the ascending ``stops``."""
    played = 0
    for block in split_rounds(env.stream(stops[-1], seed=seed), stops):
        policy.play(block)
        played += len(block)
        if played in stops:
            yield played


def play_until_stable(
    policy: CLUB | LOCB, env: Environment, seed: int, stable_rounds: int, max_rounds: int
) -> Iterator[tuple[str, int]]:
    """Play until the cluster sizes are unchanged for ``stable_rounds`` rounds, counted in two ways.

    The paper's rule counts unchanged rounds from the start. It stops early, because clusters do not change in the first
    rounds. The second rule counts from the first change.

    Yields
    ------
    tuple of str and int
        ("start", round) when the paper's rule stops, then ("change", round) when the second rule stops. At each yield,
        the policy is in the state of that round. A rule that does not stop within ``max_rounds`` gives the last round.
    """
    sizes = policy.cluster_sizes().tobytes()
    changed_at, changed, from_start, played = 0, False, True, 0
    for block in env.stream(max_rounds, seed=seed):
        for t in range(len(block)):
            policy.play(block.slice(t, t + 1))
            played += 1
            current = policy.cluster_sizes().tobytes()
            if current != sizes:
                sizes, changed_at, changed = current, played, True
            if played - changed_at < stable_rounds:
                continue
            if from_start:
                from_start = False
                yield "start", played
            if changed:
                yield "change", played
                return
    for counted_from in ["start", "change"] if from_start else ["change"]:
        yield counted_from, played


def _make_locb(
    env: Environment,
    gamma: float,
    tau: float,
    n_seeds: int,
    sigma: float,
    delta: float,
    seed: int,
    stop: str = "radius",
    alpha: float = 1.0,
) -> LOCB:
    """Return LOCB with the settings of the paper's accuracy experiments."""
    return LOCB(
        n_users=env.n_users,
        dim=env.dim,
        gamma=gamma,
        tau=tau,
        n_seeds=min(n_seeds, env.n_users),
        sigma=sigma,
        delta=delta,
        radius="clustering",
        stop=stop,
        alpha=alpha,
        seed=seed,
    )


def _make_policy(name: str, env: Environment, seed: int, parameters: dict[str, Any]) -> Policy:
    """Return a policy by name. ``n_seeds`` is reduced to the number of users."""
    arguments = dict(parameters)
    if "n_seeds" in arguments:
        arguments["n_seeds"] = min(arguments["n_seeds"], env.n_users)
    return make_policy(name, n_users=env.n_users, dim=env.dim, seed=seed, **arguments)


def _true_clusters(env: Environment, gammas: Sequence[float]) -> list[tuple[float, list[Ints]]]:
    return [(gamma, true_clusters(env, gamma)) for gamma in gammas]


def _scores(policy: Policy, truths: list[tuple[float, list[Ints]]]) -> Iterator[dict[str, float]]:
    """Yield the scores of the clusters of a policy, for each gamma of the true clusters.

    ``recovered`` is the number of true clusters for which a found cluster has an F1 of at least ``RECOVERED_F1``.
    """
    found = {tuple(cluster.members.tolist()) for cluster in policy.clusters()}
    for gamma, truth in truths:
        score = match_clusters(found, truth)
        recovered = sum(match_clusters(found, [cluster]).f1 >= RECOVERED_F1 for cluster in truth)
        agreement = cluster_agreement(found, truth)._asdict()
        yield {"truth_gamma": gamma, **score._asdict(), **agreement, "recovered": recovered}
