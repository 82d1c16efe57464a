"""Do certificates hold? LOCB with the ellipsoid radius until all sets are returned, in worlds whose truth is known.

40 users in 4 clusters, sigma 0.5, gamma 1.2; once with stop="radius" and tau = 1, as the paper's Theorem 1 asks for,
and once with stop="certificate". Every returned set must be a true gamma-cluster, and no certificate may be below the
true largest distance in its set. Exits with 1 if either fails.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

import locb

WORLDS = range(5)
GAMMA = 1.2
MOST_ROUNDS = 100_000_000


class Outcome(NamedTuple):
    """One world under one stopping rule."""

    stop: str
    world: int
    rounds: int  # when the last set was returned
    sets: int
    wrong: int  # sets that are no gamma-cluster
    broken: int  # sets whose certificate is below their true width
    width: float  # the largest true distance inside a set
    certificate: float  # the largest certificate
    seconds: float


def check(job: tuple[str, int]) -> Outcome:
    stop, world = job
    env = locb.Synthetic(n_users=40, n_clusters=4, seed=world)
    policy = locb.LOCB(
        n_users=40, dim=env.dim, n_seeds=40, gamma=GAMMA, tau=1.0, sigma=0.5, radius="ellipsoid", stop=stop
    )
    began = time.perf_counter()
    played = 0
    for block in env.stream(MOST_ROUNDS, seed=world):
        policy.play(block)
        played += len(block)
        if policy.finished:
            break
    clusters = [cluster for cluster in policy.clusters() if cluster.returned_at is not None]
    if len(clusters) < 40:
        raise SystemExit(f"{stop}, world {world}: only {len(clusters)} of 40 sets returned after {played:,} rounds")
    wrong = broken = 0
    widest = highest = 0.0
    for cluster in clusters:
        theta = env.theta[cluster.members]
        width = float(np.linalg.norm(theta[:, None] - theta[None, :], axis=2).max())
        certificate = policy.certificate(cluster)
        wrong += not width < GAMMA
        broken += certificate < width
        widest, highest = max(widest, width), max(highest, certificate)
    last = max(cluster.returned_at or 0 for cluster in clusters)
    return Outcome(stop, world, last, len(clusters), wrong, broken, widest, highest, time.perf_counter() - began)


def main() -> int:
    jobs = [(stop, world) for stop in ("certificate", "radius") for world in WORLDS]
    rounds: dict[str, list[int]] = {"certificate": [], "radius": []}
    faults = 0
    print(
        "stop         world       rounds  sets  not a γ-cluster  certificate too low  true width  certificate  seconds"
    )
    with ProcessPoolExecutor() as pool:
        for found in pool.map(check, jobs):
            print(
                f"{found.stop:<12} {found.world:5} {found.rounds:12,} {found.sets:5} {found.wrong:16} {found.broken:20}"
                f" {found.width:11.3f} {found.certificate:12.3f} {found.seconds:8.1f}",
                flush=True,
            )
            rounds[found.stop].append(found.rounds)
            faults += found.wrong + found.broken
    ratios = np.array(rounds["radius"]) / np.array(rounds["certificate"])
    print(
        f"stop='certificate' needs {ratios.mean():.1f} times fewer rounds than tau = 1 "
        f"({ratios.min():.1f} to {ratios.max():.1f} over {len(ratios)} worlds)."
    )
    print("Every set is a true gamma-cluster and every certificate holds." if not faults else f"{faults} FAULTS")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
