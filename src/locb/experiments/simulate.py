"""The experiment loop: a policy, an environment, some rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from locb.common.rounds import Rounds
from locb.environments import Environment
from locb.evaluation.results import Run
from locb.policies import Policy


def pieces(blocks: Iterable[Rounds], stops: Sequence[int]) -> Iterator[Rounds]:
    """The same rounds, cut so that a piece ends after each of ``stops``, which ascend."""
    waiting = list(stops)
    done = 0
    for block in blocks:
        start = 0
        while waiting and waiting[0] <= done + len(block):
            stop = waiting.pop(0) - done
            yield block.slice(start, stop)
            start = stop
        if start < len(block):
            yield block.slice(start, len(block))
        done += len(block)


def simulate(
    policy: Policy,
    env: Environment,
    *,
    rounds: int,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    stops: Sequence[int] = (),
    at_stop: Callable[[], None] | None = None,
) -> Run:
    """Let a policy play ``rounds`` rounds of an environment.

    The same seed gives the same rounds to every policy. Rounds are made a block at a time, so memory holds the
    three series of the result and little else. ``progress`` is called with the rounds done. ``at_stop`` is called after
    each of the rounds ``stops``, which ascend, to look at the policy as it is then; that changes no choice.

    Examples
    --------
    >>> import locb
    >>> env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    >>> run = locb.simulate(locb.LinUCB(n_users=10, dim=env.dim), env, rounds=500, seed=1)
    >>> run.regret.shape, bool(run.regret[-1] < 100)
    ((500,), True)
    """
    if not isinstance(policy, Policy) or not isinstance(env, Environment):
        wrong, name = (env, "env") if isinstance(policy, Policy) else (policy, "policy")
        raise ValueError(f"{name} must be a locb.{'Environment' if name == 'env' else 'Policy'}, not {wrong!r}")
    if not isinstance(rounds, int | np.integer) or rounds < 0:
        raise ValueError(f"rounds must be a whole number of at least 0, not {rounds!r}")
    if any(not low < high <= rounds for low, high in zip([0, *stops], stops, strict=False)):
        raise ValueError(f"stops must ascend from 1 to at most {rounds}, not {list(stops)}")
    regret, rewards, chosen = np.empty(rounds), np.empty(rounds), np.empty(rounds, np.int64)
    policy.prepare()
    seconds, done = 0.0, 0
    for block in pieces(env.stream(rounds, seed=seed), stops):
        began = time.perf_counter()
        arms = policy.play(block)
        seconds += time.perf_counter() - began
        here = slice(done, done + len(block))
        regret[here], rewards[here], chosen[here] = block.regret(arms), block.earned(arms), arms
        done += len(block)
        if progress is not None:
            progress(done)
        if at_stop is not None and done in stops:
            at_stop()
    return Run(np.cumsum(regret), rewards, chosen, seconds, policy)
