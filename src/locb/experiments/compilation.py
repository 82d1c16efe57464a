"""Compilation of policies before their first use, in parallel processes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from numba.core import event

from locb.common.kernel_cache import kernel_cache_dir
from locb.policies.base.warm_up import call_methods
from locb.policies.registry import REGISTRY, policy_spec

DIM = 2  # features of the policies that are compiled; the same code serves every number of features


def default_names() -> list[str]:
    """Return the names of the policies that ``locb compare`` and ``locb serve`` use by default, slowest first."""
    names = [spec.name for spec in REGISTRY.values() if spec.compare_by_default]
    return sorted(names, key=lambda name: -policy_spec(name).cost_class.value)


def compile_policy(name: str) -> float:
    """Compile the kernels of a policy that are not in the cache, and return the seconds that this took.

    The policy is created with its own defaults, and with the defaults of a service.
    """
    started = time.perf_counter()
    spec = policy_spec(name)
    parameters = spec.service_parameters({})
    policies = [
        spec.factory(n_users=2, dim=DIM),
        spec.make_for_service(n_users=spec.initial_capacity(parameters), dim=DIM, parameters=parameters),
    ]
    for policy in policies:
        call_methods(policy)
    return time.perf_counter() - started


class _NotCached(BaseException):
    """A kernel is not in the cache. Derived from BaseException, so that no error handler stops it."""


class _RefuseCompilation(event.Listener):
    def on_start(self, event: Any) -> None:
        """Interrupt the compilation of a function that belongs into the cache."""
        if event.data["dispatcher"].stats.cache_path is not None:
            raise _NotCached

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def is_cached(name: str) -> bool:
    """Return whether all kernels of a policy are in the cache.

    If the result is False, the process should not use the policy, because a compilation was interrupted.
    """
    install: Any = event.install_listener
    try:
        with install("numba:compile", _RefuseCompilation()):
            compile_policy(name)
    except _NotCached:
        return False
    return True


def compile_policies(names: Sequence[str], processes: int) -> Iterator[tuple[str, float]]:
    """Compile policies in parallel processes. Yield the name and the seconds of each policy when it is compiled."""
    yield from run_in_processes(compile_policy, [(name,) for name in names], processes)


def run_in_processes(
    function: Callable[..., float], tasks: Sequence[tuple[str, ...]], processes: int
) -> Iterator[tuple[str, float]]:
    """Call a function with each of several tuples of arguments. Yield the first argument and the result of each."""
    workers = min(processes, len(tasks))
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=hide_notice)
    try:
        waiting = {pool.submit(function, *arguments): arguments[0] for arguments in tasks}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def hide_notice() -> None:
    """Disable the notice that a kernel is being compiled, because the caller shows the progress."""
    logging.getLogger("locb.compilation").setLevel(logging.ERROR)


def count_cached() -> int:
    """Return the number of compiled functions in the cache."""
    folder = kernel_cache_dir()
    return sum(entry.name.endswith(".kernel") for entry in os.scandir(folder)) if folder.is_dir() else 0
