"""Functions that run one job of a reproduction. The outcome of a job depends on its arguments only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from locb.common.arrays import Ints
from locb.environments import Environment
from locb.evaluation.clusters import match_clusters
from locb.experiments.comparison.comparison_run import regret_checkpoints
from locb.experiments.environment_factory import make_environment, true_clusters
from locb.experiments.simulate import simulate, split_rounds
from locb.policies import CLUB, LOCB, SCLUB, Policy, make_policy

STOPPED_BASELINES = {"ST-CLUB": CLUB, "ST-SCLUB": SCLUB}


def accuracy(
    *,
    environment: dict[str, Any],
    seed: int,
    gamma: float,
    truth_gammas: Sequence[float],
    taus: Sequence[float],
    alphas: Sequence[float],
    n_seeds: int,
    sigma: float,
    delta: float,
    stable_rounds: int,
    max_rounds: int,
) -> dict[str, Any]:
    """Return the accuracy of all methods of Tables 1 and 2.

    LOCB runs until its last cluster is final (does not change any more), and ST-CLUB and ST-SCLUB until the same round.
    N-CLUB and N-LOCB run until their clusters are unchanged for ``stable_rounds`` rounds.

    Parameters
    ----------
    environment, seed
        Arguments of ``make_environment``. The seed is also used for the rounds and the policies.
    gamma, n_seeds, sigma, delta
        Parameters of :class:`locb.LOCB`. The number of seeds is at most the number of users.
    truth_gammas : sequence of float
        Gammas of the true clusters with which the found clusters are compared.
    taus, alphas : sequence of float
        Values of tau for LOCB (N-LOCB uses the first), and of alpha for CLUB and SCLUB.
    stable_rounds, max_rounds : int
        Rounds without a change after which N-CLUB and N-LOCB stop, and limit of the rounds per run.
    """
    env = make_environment(environment, seed, warn=False)
    truths = _true_clusters(env, truth_gammas)
    records: list[dict[str, Any]] = []

    def record(method: str, policy: Policy, rounds: int, **setting: Any) -> None:
        common = {"method": method, **setting, "rounds": rounds}
        records.extend({**common, **score} for score in _scores(policy, truths))

    last_rounds: dict[float, int] = {}
    for tau in taus:
        locb = _make_locb(env, gamma, tau, n_seeds, sigma, delta, seed)
        last_rounds[tau] = play_until_final(locb, env, seed, max_rounds)
        record("LOCB", locb, last_rounds[tau], tau=tau)
    for method, factory in STOPPED_BASELINES.items():
        for alpha in alphas:
            baseline = factory(n_users=env.n_users, dim=env.dim, alpha=alpha, seed=seed)
            for stop in play_with_stops(baseline, env, seed, sorted(set(last_rounds.values()))):
                for tau in taus:
                    if last_rounds[tau] == stop:
                        record(method, baseline, stop, tau=tau, alpha=alpha)
    for alpha in alphas:
        club = CLUB(n_users=env.n_users, dim=env.dim, alpha=alpha, seed=seed)
        for counted_from, stop in play_until_stable(club, env, seed, stable_rounds, max_rounds):
            record("N-CLUB", club, stop, alpha=alpha, counted_from=counted_from)
    locb = _make_locb(env, gamma, taus[0], n_seeds, sigma, delta, seed)
    for counted_from, stop in play_until_stable(locb, env, seed, stable_rounds, max_rounds):
        record("N-LOCB", locb, stop, counted_from=counted_from)
    return {"records": records}


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
    max_rounds: int,
) -> dict[str, Any]:
    """Return the accuracy of LOCB in the round in which its last cluster becomes final.

    See :func:`accuracy` for the parameters.
    """
    env = make_environment(environment, seed, warn=False)
    policy = _make_locb(env, gamma, tau, n_seeds, sigma, delta, seed)
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


def _make_locb(env: Environment, gamma: float, tau: float, n_seeds: int, sigma: float, delta: float, seed: int) -> LOCB:
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
    """Yield F1, precision and recall of the clusters of a policy, for each gamma of the true clusters."""
    found = {tuple(cluster.members.tolist()) for cluster in policy.clusters()}
    for gamma, truth in truths:
        score = match_clusters(found, truth)
        yield {"truth_gamma": gamma, "f1": score.f1, "precision": score.precision, "recall": score.recall}
