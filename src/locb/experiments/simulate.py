"""Simulation of one policy in one environment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from locb.common.arrays import Ints
from locb.common.rounds import Rounds
from locb.common.validation import ParameterError
from locb.environments import Environment
from locb.evaluation.results import Run
from locb.policies import Policy, make_policy
from locb.report.terminal.progress_bar import ProgressBar


def split_rounds(blocks: Iterable[Rounds], checkpoints: Sequence[int]) -> Iterator[Rounds]:
    """Yield the rounds of ``blocks``, split so that a block ends at each checkpoint.

    ``checkpoints`` are strictly ascending numbers of rounds, counted from 1.
    """
    pending = list(checkpoints)
    done = 0
    for block in blocks:
        start = 0
        while pending and pending[0] <= done + len(block):
            stop = pending.pop(0) - done
            yield block.slice(start, stop)
            start = stop
        if start < len(block):
            yield block.slice(start, len(block))
        done += len(block)


def simulate(
    policy: Policy | str,
    env: Environment,
    *,
    rounds: int,
    seed: int = 0,
    progress: bool | Callable[[int], None] | None = None,
    checkpoints: Sequence[int] = (),
    at_checkpoint: Callable[[], None] | None = None,
) -> Run:
    """Run a policy on rounds of an environment and return its regret and rewards; see :class:`locb.Run`.

    Parameters
    ----------
    policy : Policy or str
        Policy to run, which is updated in place; or a name in ``locb.POLICIES``, for a new policy with default
        parameters.
    env : Environment
        Source of the rounds.
    rounds : int
        Number of rounds, at least 0.
    seed : int, default 0
        Random seed of the rounds. Runs with the same environment and random seed have the same rounds.
    progress : bool or callable, optional
        Whether to show a progress bar if the run takes more than a second. By default, in notebooks and terminals. A
        function is called with the number of finished rounds after each block of at most 4,096 rounds.
    checkpoints : sequence of int, default ()
        Strictly ascending numbers of rounds, counted from 1, after which ``at_checkpoint`` is called.
    at_checkpoint : callable, optional
        Called without arguments at each checkpoint, for example to record the clusters of the policy.

    Returns
    -------
    Run
        Cumulative regret, reward and chosen arm of each round, computation time in seconds, and the policy.

    Examples
    --------
    >>> import locb
    >>> env = locb.Synthetic(n_users=10, n_clusters=2, seed=7)
    >>> run = locb.simulate(locb.LinUCB(n_users=10, dim=env.dim), env, rounds=500, seed=1)
    >>> run.regret.shape, bool(run.regret[-1] < 100)
    ((500,), True)
    """
    if isinstance(policy, str) and isinstance(env, Environment):
        policy = make_policy(policy, n_users=env.n_users, dim=env.dim)
    _check_arguments(policy, env, rounds, checkpoints)
    assert isinstance(policy, Policy)  # noqa: S101 - see above
    options: dict[str, Any] = {"progress": progress, "checkpoints": checkpoints, "at_checkpoint": at_checkpoint}
    return play_blocks(policy, env.stream(rounds, seed=seed), rounds=rounds, **options)


def play_blocks(
    policy: Policy,
    blocks: Iterable[Rounds],
    *,
    rounds: int,
    progress: bool | Callable[[int], None] | None = None,
    checkpoints: Sequence[int] = (),
    at_checkpoint: Callable[[], None] | None = None,
) -> Run:
    """Run a policy on ``blocks`` with ``rounds`` rounds in total. See :func:`simulate` for the other parameters."""
    record, seconds = _Record(rounds), 0.0
    with ProgressBar(_reporter(progress)) as bar:
        bar.stage("Compiling", reported=False)
        policy.prepare()
        report = bar.stage("Running")
        for block in split_rounds(blocks, checkpoints):
            began = time.perf_counter()
            arms = policy.play(block)
            seconds += time.perf_counter() - began
            record.add(block, arms)
            report(record.done, rounds)
            if at_checkpoint is not None and record.done in checkpoints:
                at_checkpoint()
    return record.to_run(policy, seconds)


class _Record:
    """Regret, rewards, chosen arms and names of the rounds that were played."""

    def __init__(self, rounds: int) -> None:
        self.regret, self.rewards, self.chosen = np.empty(rounds), np.empty(rounds), np.empty(rounds, np.int64)
        self.names: dict[str, list[Any]] = {}
        self.done = 0

    def add(self, block: Rounds, arms: Ints) -> None:
        span, self.done = slice(self.done, self.done + len(block)), self.done + len(block)
        self.regret[span], self.rewards[span], self.chosen[span] = block.regret(arms), block.earned(arms), arms
        for name, values in block.names(arms).items():
            self.names.setdefault(name, []).extend(values)

    def to_run(self, policy: Policy, seconds: float) -> Run:
        known = int(np.count_nonzero(~np.isnan(self.regret)))
        regret = np.nancumsum(self.regret) if known else self.regret
        known_regrets = None if known == self.done else known
        return Run(regret, self.rewards, self.chosen, seconds, policy, known_regrets, self.names)


def _reporter(progress: bool | Callable[[int], None] | None) -> bool | Callable[[float, float], None] | None:
    """Return ``progress`` as a function of (finished rounds, total rounds), if it is a function."""
    if not callable(progress):
        return progress
    report = progress
    return lambda done, _: report(int(done))


def _check_arguments(policy: Any, env: Environment, rounds: int, checkpoints: Sequence[int]) -> None:
    if not isinstance(env, Environment):
        raise ParameterError("env", f" must be a locb.Environment, not {env!r}")
    if not isinstance(policy, Policy):
        raise ParameterError("policy", f" must be a locb.Policy or the name of one, not {policy!r}")
    if not isinstance(rounds, int | np.integer) or rounds < 0:
        raise ParameterError("rounds", f" must be an integer of at least 0, not {rounds!r}")
    if any(not low < high <= rounds for low, high in zip([0, *checkpoints], checkpoints, strict=False)):
        limit = f"{rounds}, the number of rounds"
        raise ParameterError(
            "checkpoints", f" must be strictly ascending integers from 1 to {limit}, not {list(checkpoints)}"
        )
