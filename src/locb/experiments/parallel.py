"""Many runs on several processes or machines, through joblib: loky here, Dask or Ray for more than one machine."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from types import TracebackType
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config, register_parallel_backend

BACKENDS = ("loky", "dask", "ray")
RETRIES = 3  # deaths of workers in a row, without a single run finished in between, before giving up
SECONDS_TO_CONNECT = 10


class Workers(AbstractContextManager["Workers"]):
    """Processes to run on. Results do not depend on where they are.

    Parameters
    ----------
    jobs : int
        Processes; −1 for one a core. A cluster that is reached by its address has as many as it has.
    backend : "loky", "dask" or "ray"
        Processes of this machine, or a cluster.
    address : str
        Of the Dask scheduler or the Ray head; without it, dask and ray start workers on this machine.

    Examples
    --------
    >>> with Workers(jobs=1) as workers:
    ...     sorted(workers.run(abs, [-1, 2, -3]))
    [(0, 1), (1, 2), (2, 3)]
    """

    def __init__(self, *, jobs: int = -1, backend: str = "loky", address: str | None = None) -> None:
        if jobs != -1 and jobs < 1:
            raise ValueError(f"jobs must be -1 or at least 1, not {jobs}")
        if backend not in BACKENDS:
            raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
        if address is not None and backend == "loky":
            raise ValueError(f"address goes with --backend dask or ray, not with loky: {address!r}")
        self.jobs = cpu_count() if jobs == -1 else jobs
        self.backend, self.address = backend, address
        self._open = ExitStack()
        self._died: tuple[type[BaseException], ...] = (BrokenProcessPool,)  # loky's TerminatedWorkerError is one

    def __enter__(self) -> Workers:
        if self.backend == "dask":
            self._join_dask()
        elif self.backend == "ray":
            self._join_ray()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """``function`` of every task, as (place, result), whichever is ready first.

        What was lost with a worker that died is run again.
        """
        pending = list(range(len(tasks)))
        deaths = 0
        while pending:
            unfinished = len(pending)
            try:
                for place, result in self._once(function, tasks, list(pending)):
                    pending.remove(place)
                    yield place, result
            except self._died as error:
                deaths = deaths + 1 if len(pending) == unfinished else 1
                if deaths > RETRIES:
                    told = f"workers died {deaths} times in a row with {len(pending)} runs left, memory may be short"
                    raise OSError(f"{told}: {error}") from error
                warnings.warn(f"a worker died; {len(pending)} runs go on without it", stacklevel=2)

    def _once(self, function: Callable[[Any], Any], tasks: Sequence[Any], places: list[int]) -> Iterator[Any]:
        calls = [delayed(_numbered)(function, place, tasks[place]) for place in places]
        if self.backend == "ray":
            # Ray gives lists only, so that what is finished is known a portion at a time.
            portion = 8 * self.jobs
            with parallel_config(backend="ray"), Parallel(n_jobs=self.jobs, batch_size=1) as pool:
                for start in range(0, len(calls), portion):
                    yield from pool(calls[start : start + portion])
            return
        # Not fewer processes than asked for, even for a single run: one would be this process, and die with it.
        with parallel_config(backend="locb-dask" if self.backend == "dask" else "loky"):
            yield from Parallel(n_jobs=self.jobs, batch_size=1, return_as="generator_unordered")(calls)

    def _join_dask(self) -> None:
        try:
            dask: Any = import_module("dask.distributed")

            from locb.experiments.dask_backend import DaskBackend
        except ImportError as error:
            raise ValueError(f"backend dask needs more packages ({error.name}): pip install 'locb[dask]'") from error
        if self.address is None:
            own = {"n_workers": self.jobs, "threads_per_worker": 1, "dashboard_address": None}
            where: Any = self._open.enter_context(dask.LocalCluster(**own))
        else:
            where = self.address
            _knock(self.address, "Dask scheduler", "'dask scheduler', and workers with 'dask worker ADDRESS'")
        client = self._open.enter_context(dask.Client(where, timeout=SECONDS_TO_CONNECT))
        if self.address is not None:
            self.jobs = max(1, sum(client.ncores().values()))
        self._died = (dask.KilledWorker,)
        register_parallel_backend("locb-dask", lambda **arguments: DaskBackend(client=client, **arguments))

    def _join_ray(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
        try:
            ray: Any = import_module("ray")
            joblib: Any = import_module("ray.util.joblib")
        except ImportError as error:
            raise ValueError(f"backend ray needs more packages ({error.name}): pip install 'locb[ray]'") from error
        own = {"num_cpus": self.jobs, "include_dashboard": False} if self.address is None else {}
        if self.address is not None:
            _knock(self.address, "Ray head", "'ray start --head'")  # Ray itself would wait for two minutes
        ray.init(address=self.address or "local", logging_level="error", log_to_driver=False, **own)
        self._open.callback(ray.shutdown)
        if self.address is not None:
            self.jobs = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._died = (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError)
        joblib.register_ray()


def _knock(address: str, what: str, how: str) -> None:
    """A ValueError that says what to do unless something listens at host:port."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"address must be HOST:PORT of the {what}, not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise ValueError(f"address: no {what} answers at {address!r} ({error}); start one with {how}") from error


def _numbered(function: Callable[[Any], Any], place: int, task: Any) -> tuple[int, Any]:
    return place, function(task)
