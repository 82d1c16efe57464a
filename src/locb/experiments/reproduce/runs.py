"""The four kinds of runs behind the paper's tables and figures. Each is played from its settings alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from locb.common.arrays import Ints
from locb.environments import Environment
from locb.evaluation.clusters import match_clusters
from locb.experiments.compare import checkpoints
from locb.experiments.environment_factory import noise_free_environment, truth
from locb.experiments.simulate import pieces, simulate
from locb.policies import CLUB, LOCB, SCLUB, Policy, make_policy

CLUSTERED = {"club": CLUB, "sclub": SCLUB}


def accuracy(
    *,
    world: dict[str, Any],
    seed: int,
    gamma: float,
    judged_at: Sequence[float],
    taus: Sequence[float],
    alphas: Sequence[float],
    n_seeds: int,
    sigma: float,
    delta: float,
    quiet: int,
    most_rounds: int,
) -> dict[str, Any]:
    """LOCB until its last return, CLUB and SCLUB until that very round, and those that stop when it is quiet."""
    env = noise_free_environment(world, seed)
    judges = _judges(env, judged_at)
    records: list[dict[str, Any]] = []

    def note(method: str, policy: Policy, ended: int, **setting: Any) -> None:
        told = {"method": method, **setting, "ended": ended}
        records.extend({**told, **score} for score in _scores(policy, judges))

    ends: dict[float, int] = {}
    for tau in taus:
        locb = _locb(env, gamma, tau, n_seeds, sigma, delta, seed)
        ends[tau] = until_returned(locb, env, seed, most_rounds)
        note("LOCB", locb, ends[tau], tau=tau)
    for name, factory in CLUSTERED.items():
        for alpha in alphas:
            baseline = factory(n_users=env.n_users, dim=env.dim, alpha=alpha, seed=seed)
            for stop in play_to(baseline, env, seed, sorted(set(ends.values()))):
                for tau in taus:
                    if ends[tau] == stop:
                        note(f"ST-{name.upper()}", baseline, stop, tau=tau, alpha=alpha)
    for alpha in alphas:
        club = CLUB(n_users=env.n_users, dim=env.dim, alpha=alpha, seed=seed)
        for counted, stop in until_quiet(club, env, seed, quiet, most_rounds):
            note("N-CLUB", club, stop, alpha=alpha, counted=counted)
    locb = _locb(env, gamma, taus[0], n_seeds, sigma, delta, seed)
    for counted, stop in until_quiet(locb, env, seed, quiet, most_rounds):
        note("N-LOCB", locb, stop, counted=counted)
    return {"records": records}


def clusters(
    *,
    world: dict[str, Any],
    seed: int,
    gamma: float,
    judged_at: Sequence[float],
    tau: float,
    n_seeds: int,
    sigma: float,
    delta: float,
    most_rounds: int,
) -> dict[str, Any]:
    """LOCB until its last set is returned, and how well its sets match."""
    env = noise_free_environment(world, seed)
    policy = _locb(env, gamma, tau, n_seeds, sigma, delta, seed)
    ended = until_returned(policy, env, seed, most_rounds)
    judges = _judges(env, judged_at)
    return {"records": [{**score, "ended": ended} for score in _scores(policy, judges)]}


def over_rounds(
    *,
    world: dict[str, Any],
    seed: int,
    policy: str,
    judged_at: Sequence[float],
    at: Sequence[int],
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """How well the groups of a policy match as rounds go by."""
    env = noise_free_environment(world, seed)
    player = _made(policy, env, seed, parameters)
    judges = _judges(env, judged_at)
    f1: dict[str, list[float]] = {f"{gamma:g}": [] for gamma in judged_at}
    for _ in play_to(player, env, seed, at):
        for score in _scores(player, judges):
            f1[f"{score['judged_at']:g}"].append(score["f1"])
    return {"f1": f1}


def regret(*, world: dict[str, Any], seed: int, policy: str, rounds: int, parameters: dict[str, Any]) -> dict[str, Any]:
    """Cumulative regret of a policy, at evenly spaced rounds."""
    env = noise_free_environment(world, seed)
    run = simulate(_made(policy, env, seed, parameters), env, rounds=rounds, seed=seed)
    at = checkpoints(rounds)
    return {"rounds": at.tolist(), "regret": run.regret[at - 1].tolist()}


def until_returned(policy: LOCB, env: Environment, seed: int, most_rounds: int) -> int:
    """Play until clustering has ended, or ``most_rounds``; the round of the last return."""
    for block in env.stream(most_rounds, seed=seed):
        policy.play(block)
        if policy.finished:
            return max(cluster.returned_at or 0 for cluster in policy.clusters())
    return most_rounds


def play_to(policy: Policy, env: Environment, seed: int, stops: Sequence[int]) -> Iterator[int]:
    """Play one stream, stopping after each of these rounds, which ascend."""
    played = 0
    for piece in pieces(env.stream(stops[-1], seed=seed), stops):
        policy.play(piece)
        played += len(piece)
        if played in stops:
            yield played


def until_quiet(
    policy: CLUB | LOCB, env: Environment, seed: int, quiet: int, most_rounds: int
) -> Iterator[tuple[str, int]]:
    """Play until the sizes of the groups were the same for ``quiet`` rounds, counted in two ways.

    From the start, as the rule is written: before anything is known nothing changes, so that it stops almost at once.
    And from the first change on. Gives ("start", round), then ("change", round), with the policy as it is then.
    """
    sizes = policy.cluster_sizes().tobytes()
    changed_at, changed, from_start, played = 0, False, True, 0
    for block in env.stream(most_rounds, seed=seed):
        for t in range(len(block)):
            policy.play(block.slice(t, t + 1))
            played += 1
            now = policy.cluster_sizes().tobytes()
            if now != sizes:
                sizes, changed_at, changed = now, played, True
            if played - changed_at < quiet:
                continue
            if from_start:
                from_start = False
                yield "start", played
            if changed:
                yield "change", played
                return
    for counted in ["start", "change"] if from_start else ["change"]:
        yield counted, played


def _locb(env: Environment, gamma: float, tau: float, n_seeds: int, sigma: float, delta: float, seed: int) -> LOCB:
    """LOCB as in the paper's accuracy experiments."""
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


def _made(name: str, env: Environment, seed: int, parameters: dict[str, Any]) -> Policy:
    """A policy by name, with no more seeds than there are users."""
    given = dict(parameters)
    if "n_seeds" in given:
        given["n_seeds"] = min(given["n_seeds"], env.n_users)
    return make_policy(name, n_users=env.n_users, dim=env.dim, seed=seed, **given)


def _judges(env: Environment, judged_at: Sequence[float]) -> list[tuple[float, list[Ints]]]:
    """The true clusters at each gamma."""
    return [(gamma, truth(env, gamma)) for gamma in judged_at]


def _scores(policy: Policy, judges: list[tuple[float, list[Ints]]]) -> Iterator[dict[str, float]]:
    """The match of the policy's groups with the true ones at each gamma."""
    found = {tuple(cluster.members.tolist()) for cluster in policy.clusters()}
    for gamma, true in judges:
        score = match_clusters(found, true)
        yield {"judged_at": gamma, "f1": score.f1, "precision": score.precision, "recall": score.recall}
