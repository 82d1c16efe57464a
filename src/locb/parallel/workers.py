"""Parallel execution of tasks with joblib: in processes of this machine (loky), or on a Dask or Ray cluster."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config, register_parallel_backend

from locb.common.validation import ParameterError, ParameterName
from locb.parallel.clusters import CLUSTERS, connect_dask, connect_ray

BACKENDS = ("loky", *CLUSTERS)
MAX_RETRIES = 3  # limit of consecutive worker failures without a finished task


class Workers(AbstractContextManager["Workers"]):
    """Pool of worker processes that runs tasks in parallel. Results do not depend on the backend.

    Parameters
    ----------
    jobs : int, default -1
        Number of processes; -1 for one per core. Ignored if ``address`` is given: all cores of the cluster are used.
    backend : {"loky", "dask", "ray"}, default "loky"
        joblib backend. "loky" uses processes of this machine; "dask" and "ray" can use a cluster.
    address : str, optional
        HOST:PORT of the Dask scheduler or the Ray head. Without an address, Dask and Ray start workers on this machine.

    Examples
    --------
    >>> with Workers(jobs=1) as workers:
    ...     sorted(workers.run(abs, [-1, 2, -3]))
    [(0, 1), (1, 2), (2, 3)]
    """

    def __init__(self, *, jobs: int = -1, backend: str = "loky", address: str | None = None) -> None:
        if jobs != -1 and jobs < 1:
            raise ParameterError("jobs", f" must be -1 or at least 1, not {jobs}")
        if backend not in BACKENDS:
            raise ParameterError("backend", f" must be one of {', '.join(BACKENDS)}, not {backend!r}")
        if address is not None and backend == "loky":
            raise ParameterError(
                "address", f" {address!r} requires ", ParameterName("backend"), " 'dask' or 'ray', not 'loky'"
            )
        self.jobs = cpu_count() if jobs == -1 else jobs
        self.backend, self.address = backend, address
        self._resources = ExitStack()
        # Errors that mean a failed worker. TerminatedWorkerError of loky is a subclass of BrokenProcessPool.
        self._worker_errors: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __enter__(self) -> Workers:
        if self.backend == "dask":
            self._connect_dask()
        elif self.backend == "ray":
            self._connect_ray()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Call ``function`` with every task, and yield (index of the task, result) in the order of completion.

        If a worker process ends unexpectedly, its unfinished tasks are run again.

        Raises
        ------
        OSError
            If workers fail more than 3 times in a row, and no task finishes between the failures.
        """
        pending = list(range(len(tasks)))
        failures = 0
        while pending:
            unfinished = len(pending)
            try:
                for index, result in self._run_once(function, tasks, list(pending)):
                    pending.remove(index)
                    yield index, result
            except self._worker_errors as error:
                failures = failures + 1 if len(pending) == unfinished else 1
                if failures > MAX_RETRIES:
                    message = f"workers failed {failures} times in a row with {len(pending)} runs left"
                    raise OSError(
                        f"{message}; check the free memory, or use fewer processes (--jobs): {error}"
                    ) from error
                warnings.warn(f"a worker failed; repeating {len(pending)} unfinished runs", stacklevel=2)

    def _run_once(self, function: Callable[[Any], Any], tasks: Sequence[Any], indices: list[int]) -> Iterator[Any]:
        if self.backend == "loky":
            function = partial(_ignore_interrupts, os.getpid(), function)
        calls = [delayed(_call_with_index)(function, index, tasks[index]) for index in indices]
        if self.backend == "ray":
            # With Ray, joblib returns only complete lists of results. Several short lists make progress visible.
            portion = 8 * self.jobs
            with parallel_config(backend="ray"), Parallel(n_jobs=self.jobs, batch_size=1) as pool:
                for start in range(0, len(calls), portion):
                    yield from pool(calls[start : start + portion])
            return
        # n_jobs is not reduced to the number of tasks, because with n_jobs=1 joblib would run the task in this process.
        with parallel_config(backend="locb-dask" if self.backend == "dask" else "loky"):
            yield from Parallel(n_jobs=self.jobs, batch_size=1, return_as="generator_unordered")(calls)

    def _connect_dask(self) -> None:
        client = connect_dask(self.address, self.jobs, self._resources)
        from dask.distributed import KilledWorker

        from locb.parallel.dask_backend import DaskBackend

        if self.address is not None:
            self.jobs = max(1, sum(client.ncores().values()))
        self._worker_errors = (KilledWorker,)
        register_parallel_backend("locb-dask", lambda **arguments: DaskBackend(client=client, **arguments))

    def _connect_ray(self) -> None:
        ray = connect_ray(self.address, self.jobs, self._resources)
        if self.address is not None:
            self.jobs = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._worker_errors = (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError)
        import_module("ray.util.joblib").register_ray()


def _call_with_index(function: Callable[[Any], Any], index: int, task: Any) -> tuple[int, Any]:
    return index, function(task)


def _ignore_interrupts(owner: int, function: Callable[[Any], Any], task: Any) -> Any:
    """Call a function, and ignore Ctrl-C unless this process is the owner of the workers.

    A terminal sends Ctrl-C to all processes of a command. The owner then stops the workers. Workers that do not ignore
    Ctrl-C would print tracebacks.
    """
    if owner != os.getpid():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(task)
